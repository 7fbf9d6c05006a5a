//! The image in containers with the rights that a cluster gives it: read-only, no capability but NET_ADMIN. It refuses to
//! build the image, and without Docker or the image's file it says so and looks at nothing.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test fails by panicking")]

use std::{env, fs, path::PathBuf, time::Duration};

use futures::StreamExt as _;
use testcontainers::{
    ContainerAsync, ContainerRequest, GenericImage, ImageExt as _,
    bollard::{body_full, query_parameters::ImportImageOptions},
    core::{Mount, WaitFor, client::docker_client_instance, wait::ExitWaitStrategy},
    runners::AsyncRunner as _,
};
use tokio::sync::OnceCell;

const VERSION: &str = env!("CARGO_PKG_VERSION");
/// The file of the image, where it is not in its usual place.
const VARIABLE: &str = "SPANWIRE_IMAGE_FILE";
/// How long a container may take to begin or to end.
const LIMIT: Duration = Duration::from_secs(60);

/// The image as it was loaded, with the name under which it was packed.
#[derive(Clone)]
struct Loaded {
    name: String,
    tag: String,
}

static LOADED: OnceCell<Option<Loaded>> = OnceCell::const_new();

/// Loads the image once; `None`, and a word on standard error: there is no Docker or no file.
async fn image() -> Option<Loaded> {
    LOADED
        .get_or_init(|| async {
            let loaded = load().await;
            loaded.map_err(|why| eprintln!("skipped: the image was not tried: {why}")).ok()
        })
        .await
        .clone()
}

async fn load() -> Result<Loaded, String> {
    let file = env::var_os(VARIABLE).map_or_else(usual_file, PathBuf::from);
    let bytes = fs::read(&file)
        .map_err(|error| format!("{}: {error}; make it with: cargo xtask image", file.display()))?;
    let docker = docker_client_instance().await.map_err(|error| format!("no Docker is reached: {error}"))?;
    docker.ping().await.map_err(|error| format!("no Docker is reached: {error}"))?;
    let mut said = docker.import_image(ImportImageOptions::default(), body_full(bytes.into()), None);
    let mut words = String::new();
    while let Some(line) = said.next().await {
        words.push_str(&line.expect("Docker takes the image").stream.unwrap_or_default());
    }
    let full = words.trim().strip_prefix("Loaded image: ").expect("Docker names what it loaded");
    let (name, tag) = full.rsplit_once(':').expect("the image has a tag");
    Ok(Loaded { name: name.to_owned(), tag: tag.to_owned() })
}

fn usual_file() -> PathBuf {
    let architecture = if cfg!(target_arch = "aarch64") { "arm64" } else { "amd64" };
    spanwire_testkit::folder::workspace().join(format!("target/image/spanwire-{VERSION}-{architecture}.tar"))
}

impl Loaded {
    /// A container without any right, which ends by itself with this code.
    fn ends(&self, program: &str, code: i64) -> ContainerRequest<GenericImage> {
        let exits = WaitFor::exit(ExitWaitStrategy::new().with_exit_code(code));
        self.with_rights(program, exits)
    }

    /// As the chart runs it, but for the capability.
    fn with_rights(&self, program: &str, until: WaitFor) -> ContainerRequest<GenericImage> {
        let image = GenericImage::new(self.name.clone(), self.tag.clone());
        image
            .with_entrypoint(program)
            .with_wait_for(until)
            .with_network("none")
            .with_readonly_rootfs(true)
            .with_cap_drop("ALL")
            .with_security_opt("no-new-privileges")
            .with_mount(Mount::tmpfs_mount("/run/spanwire"))
            .with_mount(Mount::tmpfs_mount("/var/run/wireguard"))
            .with_startup_timeout(LIMIT)
    }
}

async fn out(container: &ContainerAsync<GenericImage>) -> String {
    String::from_utf8(container.stdout_to_vec().await.unwrap()).unwrap()
}

async fn log(container: &ContainerAsync<GenericImage>) -> String {
    String::from_utf8(container.stderr_to_vec().await.unwrap()).unwrap()
}

const SPANWIRE: &str = "/usr/local/bin/spanwire";
const NFT: &str = "/usr/sbin/nft";

#[tokio::test]
async fn every_program_starts_without_any_right() {
    let Some(image) = image().await else { return };
    for (program, words) in
        [(SPANWIRE, "spanwire "), ("/usr/local/bin/kubectl-spanwire", "spanwirectl "), (NFT, "nftables v")]
    {
        let container = image.ends(program, 0).with_cmd(["--version"]).start().await.unwrap();
        let said = out(&container).await;
        assert!(said.starts_with(words), "{program}: {said}");
    }
}

#[tokio::test]
async fn worker_and_dataplane_refuse_to_start_without_net_admin() {
    let Some(image) = image().await else { return };
    let worker = ["worker", "--gateway=a", "--control=dir:/run/spanwire", "--local=dir:/run/spanwire"];
    for arguments in [&worker[..], &["dataplane"]] {
        let container = image.ends(SPANWIRE, 1).with_cmd(arguments.iter().copied()).start().await.unwrap();
        let log = log(&container).await;
        let words = format!("NET_ADMIN is missing: without it the {}", arguments[0]);
        assert!(log.contains(&words) && log.contains("add: [NET_ADMIN]"), "{log}");
    }
}

#[tokio::test]
async fn with_net_admin_alone_the_dataplane_gets_ready_and_nft_reads_the_filter() {
    let Some(image) = image().await else { return };
    let ready = image.with_rights(SPANWIRE, WaitFor::message_on_stderr("dataplane is ready"));
    let tun = |host: &mut testcontainers::bollard::models::HostConfig| {
        host.devices = Some(vec![testcontainers::bollard::models::DeviceMapping {
            path_on_host: Some("/dev/net/tun".to_owned()),
            path_in_container: Some("/dev/net/tun".to_owned()),
            cgroup_permissions: Some("rw".to_owned()),
        }]);
    };
    let dataplane = ready.with_cap_add("NET_ADMIN").with_host_config_modifier(tun).with_cmd(["dataplane"]);
    let dataplane = dataplane.start().await.unwrap();
    assert!(dataplane.is_running().await.unwrap());
    let filter = image.ends(NFT, 0).with_cap_add("NET_ADMIN").with_cmd(["--json", "list", "ruleset"]);
    let said = out(&filter.start().await.unwrap()).await;
    assert!(said.contains("json_schema_version"), "{said}");
}
