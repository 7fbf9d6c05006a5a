//! A directory store for one test, filled and looked at by hand. It refuses to be reused.

use std::{
    collections::BTreeMap,
    fs,
    future::Future,
    os::unix::fs::MetadataExt as _,
    path::{Path, PathBuf},
    time::Duration,
};

use spanwire_engine::{
    Intent, LinkId, LinkRole, LinkState, NetworkName, PublicKey, Reason, Uid, Unreadable,
    port::{ControlView, ControllerStore},
    worker::{LinkStatus, RecordStep, RecordedLink},
};
use spanwire_store::dir::{Controller, Local, Worker};

pub(crate) struct Sandbox {
    folder: tempfile::TempDir,
}

pub(crate) fn name<T: std::str::FromStr<Err: std::fmt::Debug>>(text: &str) -> T {
    text.parse().unwrap()
}

pub(crate) const NETWORK: &str = "apiVersion: spanwire.dev/v1alpha1\nkind: GatewayNetwork\nmetadata: {name: demo}\n\
    spec:\n  topology: hub-spoke\n  hub: hub-a\n  members: [hub-a, spoke-1]\n  cidr: 10.9.0.0/24\n";

pub(crate) fn gateway(name: &str) -> String {
    format!(
        "apiVersion: spanwire.dev/v1alpha1\nkind: Gateway\nmetadata: {{name: {name}}}\nspec: {{subnets: [10.1.0.0/24]}}\n"
    )
}

impl Sandbox {
    pub(crate) fn new() -> Self {
        let sandbox = Self { folder: in_memory() };
        fs::create_dir(sandbox.root()).unwrap();
        sandbox
    }

    /// Two gateways and a network.
    pub(crate) fn declared() -> Self {
        let sandbox = Self::new();
        sandbox.put("gateways/hub-a.yaml", &gateway("hub-a"));
        sandbox.put("gateways/spoke-1.yaml", &gateway("spoke-1"));
        sandbox.put("gatewaynetworks/demo.yaml", NETWORK);
        sandbox
    }

    pub(crate) fn root(&self) -> PathBuf {
        self.folder.path().join("store")
    }

    pub(crate) fn path(&self, file: &str) -> PathBuf {
        self.root().join(file)
    }

    pub(crate) fn put(&self, file: &str, text: &str) {
        let path = self.path(file);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    pub(crate) fn text(&self, file: &str) -> String {
        fs::read_to_string(self.path(file)).unwrap()
    }

    pub(crate) fn has(&self, file: &str) -> bool {
        self.path(file).exists()
    }

    pub(crate) fn controller(&self) -> Controller {
        Controller::open(self.root()).unwrap()
    }

    pub(crate) fn worker(&self) -> Worker {
        Worker::open(self.root()).unwrap()
    }

    pub(crate) fn local(&self) -> Local {
        Local::open(self.root()).unwrap()
    }

    pub(crate) async fn view(&self) -> ControlView {
        self.controller().read().await.unwrap()
    }

    /// Inode, mtime and size of every file.
    pub(crate) fn prints(&self) -> BTreeMap<PathBuf, (u64, i64, i64, u64)> {
        let mut prints = BTreeMap::new();
        collect(&self.root(), &mut prints);
        prints
    }
}

/// A directory on a file system in memory where there is one: what a busy disk takes to sync is not what is tested.
fn in_memory() -> tempfile::TempDir {
    tempfile::tempdir_in("/dev/shm").or_else(|_| tempfile::tempdir()).unwrap()
}

fn collect(folder: &Path, prints: &mut BTreeMap<PathBuf, (u64, i64, i64, u64)>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let about = fs::symlink_metadata(&path).unwrap();
        if about.is_dir() {
            collect(&path, prints);
        } else {
            prints.insert(path, (about.ino(), about.mtime(), about.mtime_nsec(), about.size()));
        }
    }
}

/// The only unreadable object: kind, name and what is said after the path of the store.
pub(crate) fn only(unreadable: &[Unreadable]) -> (&str, &str, &str) {
    let [Unreadable { kind, name, cause }] = unreadable else { panic!("not one: {unreadable:?}") };
    let cause = cause.split_once("/store/").map_or(cause.as_str(), |(_, cause)| cause);
    (kind, name, cause)
}

pub(crate) fn intent(network: &str, gateway: &str) -> Intent {
    Intent::bare(name(network), name(gateway), None)
}

pub(crate) fn link(peer: &str) -> RecordedLink {
    RecordedLink {
        id: LinkId { network: name::<NetworkName>("demo"), peer: name(peer), role: LinkRole::Mesh },
        peer_uid: Uid("u".into()),
        device: name("swm-abcdefghij"),
        listen_port: 51820,
        public_key: PublicKey([9; 32]),
        key_generation: 1,
        allowed_ips: vec!["10.9.0.1/32".parse().unwrap()],
        prefixes: vec!["10.9.0.1/32".parse().unwrap()],
        probe: None,
        endpoint: None,
        keepalive: Duration::from_secs(25),
        intent_generation: 1,
        status: LinkStatus {
            state: LinkState::Connected,
            reason: Reason::ProbeAnswered,
            message: String::new(),
            last_transition: "2026-11-30T02:30:33Z".into(),
            connected_once: true,
            unwanted_since: None,
        },
    }
}

pub(crate) fn record(peer: &str) -> RecordStep {
    RecordStep::Link(Box::new(link(peer)))
}

/// Waits for a condition, with a deadline.
pub(crate) async fn eventually<T, F: Future<Output = Option<T>>>(
    what: &str,
    mut look: impl FnMut() -> F,
) -> T {
    let looked = async {
        loop {
            if let Some(found) = look().await {
                return found;
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    match tokio::time::timeout(Duration::from_secs(60), looked).await {
        Ok(found) => found,
        Err(_) => panic!("not within a minute: {what}"),
    }
}
