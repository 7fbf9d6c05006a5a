//! Clusters of kind for a fleet: one for the controller and one for each member, with the chart on them as users install
//! it. It refuses to start a process of the product by itself: the kubelet does.

mod cluster;
mod command;
mod containers;
mod install;
mod lifecycle;

use std::{
    collections::BTreeMap,
    path::Path,
    time::{Duration, Instant},
};

use anyhow::{Context as _, Result, bail};
use kube::config::{KubeConfigOptions, Kubeconfig};

use super::{
    Member,
    admin::{self, Admin},
};
use crate::{Say, interrupt, setup::Clusters as Options};
use cluster::Cluster;
use command::output;

/// Where the product and its objects are, in every cluster.
const NAMESPACE: &str = "spanwire";
/// The cluster of the controller.
const CONTROL: &str = "control";
/// How many clusters are made at one time: each needs a processor for itself.
const AT_ONCE: usize = 2;
/// How long the containers are watched at rest.
const REST: Duration = Duration::from_secs(10);

/// All clusters of a fleet.
pub(crate) struct Clusters {
    admin: Admin,
    control: Cluster,
    workers: Vec<Cluster>,
    options: Options,
}

impl std::fmt::Debug for Clusters {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Clusters").field("control", &self.control).field("workers", &self.workers).finish()
    }
}

impl Clusters {
    /// Makes the clusters, installs the product on them, and says how long each step took.
    pub(crate) fn start(options: &Options, names: &[String], folder: &Path, say: Say) -> Result<Self> {
        preflight(options)?;
        let steps = Steps(say);
        let mut all = steps.timed("made the clusters", || provide(options, names, folder))?;
        steps.timed("gave the image to every node", || {
            all.iter().try_for_each(|one| one.load(&options.image))
        })?;
        let control = all.remove(0);
        let workers = all;
        let first_chart = options.previous_chart.as_deref().unwrap_or(&options.chart);
        steps.timed("installed the controller (helm)", || install::controller(&control, first_chart, &[]))?;
        steps.timed("joined the workers (spanwirectl join)", || {
            workers.iter().try_for_each(|worker| install::join(&control, worker))
        })?;
        steps.timed("installed the workers (helm)", || {
            workers.iter().try_for_each(|worker| install::worker(worker, first_chart, &[]))
        })?;
        let runtime = admin::runtime()?;
        let client = runtime.block_on(client(&control))?;
        let admin = Admin::new(runtime, client, NAMESPACE);
        Ok(Self { admin, control, workers, options: options.clone() })
    }

    /// The members: their nodes as hosts, and a pod on each between which traffic is measured.
    pub(crate) fn members(&self, folder: &Path) -> Result<Vec<Member>> {
        let member = |worker: &Cluster| {
            Ok(Member::of_cluster(worker.host()?, worker.traffic_pod()?, worker.pods, folder))
        };
        self.workers.iter().map(member).collect()
    }

    pub(crate) fn admin(&self) -> &Admin {
        &self.admin
    }

    /// Writes an object as a person would.
    pub(crate) fn apply(&self, text: &str) -> Result<()> {
        self.control.kubectl(&["apply", "--namespace", NAMESPACE, "-f", "-"], text).map(drop)
    }

    /// Kills the processes of one kind (-9), everywhere or in one cluster; the kubelet starts them again.
    pub(crate) fn kill(&self, process: &str, only: Option<&str>) -> Result<()> {
        let pattern = format!("^/usr/local/bin/spanwire {process}");
        let all = std::iter::once(&self.control).chain(&self.workers);
        for cluster in all.filter(|cluster| only.is_none_or(|name| cluster.name == name)) {
            // No process of that kind is no fault: each runs on one side only.
            let kill = ["sh", "-c", &format!("pkill -9 -f '{pattern}' || test $? = 1")];
            cluster.on_node(&kill)?;
        }
        Ok(())
    }

    /// Deletes the Secret of a worker's private key.
    pub(crate) fn delete_key(&self, gateway: &str) -> Result<()> {
        let name = spanwire_api::rbac::worker_secret_name(gateway);
        self.worker(gateway)?.kubectl(&["delete", "secret", &name, "--namespace", NAMESPACE], "").map(drop)
    }

    /// What the product's containers take while nothing changes.
    pub(crate) fn at_rest(&self, say: Say) -> Result<()> {
        let all = || std::iter::once(&self.control).chain(&self.workers);
        let look = || all().map(containers::look).collect::<Result<Vec<BTreeMap<_, _>>>>();
        let (begun, before) = (Instant::now(), look()?);
        interrupt::pause(REST)?;
        let (time, after) = (begun.elapsed(), look()?);
        for (cluster, (before, after)) in all().zip(before.iter().zip(&after)) {
            say.line(format!("At rest, {}: {}", cluster.name, containers::words(before, after, time)));
        }
        Ok(())
    }

    /// Puts the logs of all pods and our objects into a folder.
    pub(crate) fn save(&self, folder: &Path) -> Result<()> {
        std::fs::write(folder.join("control-objects.yaml"), self.admin.objects()?)
            .context("writing objects")?;
        for cluster in std::iter::once(&self.control).chain(&self.workers) {
            let into = folder.join(&cluster.name);
            let into = into.to_str().context("a folder whose name is no text")?;
            output("kind", &["export", "logs", into, "--name", &cluster.whole_name()])?;
        }
        Ok(())
    }

    /// Commands that show the clusters.
    pub(crate) fn how_to_look(&self) -> Vec<String> {
        let file = |cluster: &Cluster| cluster.kubeconfig.display().to_string();
        let control = format!("kubectl --kubeconfig {} -n {NAMESPACE} get spanwire", file(&self.control));
        let pods = self.workers.iter();
        let pods =
            pods.map(|worker| format!("kubectl --kubeconfig {} -n {NAMESPACE} get pods", file(worker)));
        std::iter::once(control).chain(pods).collect()
    }

    fn worker(&self, gateway: &str) -> Result<&Cluster> {
        let worker = self.workers.iter().find(|worker| worker.name == gateway);
        worker.with_context(|| format!("{gateway} has no cluster"))
    }
}

async fn client(cluster: &Cluster) -> Result<kube::Client> {
    let file = Kubeconfig::read_from(&cluster.kubeconfig).context("reading a kubeconfig")?;
    let config = kube::Config::from_custom_kubeconfig(file, &KubeConfigOptions::default()).await;
    kube::Client::try_from(config.context("understanding a kubeconfig")?).context("making a client")
}

/// What has to be there before anything is made.
fn preflight(options: &Options) -> Result<()> {
    for (program, arguments, remedy) in [
        (
            "docker",
            &["version"][..],
            "start its daemon, or name it by DOCKER_HOST; tools/kind-node/dockerd.sh starts one",
        ),
        (
            "kind",
            &["version"][..],
            "see https://kind.sigs.k8s.io; `cargo xtask e2e` builds it where Go is there",
        ),
        ("kubectl", &["version", "--client"][..], "`cargo xtask e2e` builds it where Go is there"),
        ("helm", &["version"][..], "`cargo xtask e2e` builds it where Go is there"),
    ] {
        output(program, arguments).with_context(|| format!("kind needs {program}: {remedy}"))?;
    }
    if !nix::unistd::geteuid().is_root() {
        bail!("kind needs root here: traffic is measured from inside the pods of its nodes");
    }
    if !options.image.is_file() {
        bail!("no image at {}: `cargo xtask image` makes it", options.image.display());
    }
    Ok(())
}

/// The control cluster, then the others in order; two are made at a time.
fn provide(options: &Options, names: &[String], folder: &Path) -> Result<Vec<Cluster>> {
    let names: Vec<(u8, &str)> =
        (1..).zip(std::iter::once(CONTROL).chain(names.iter().map(String::as_str))).collect();
    let mut all = Vec::new();
    for some in names.chunks(AT_ONCE) {
        let made = std::thread::scope(|scope| {
            let threads: Vec<_> = some
                .iter()
                .map(|(number, name)| scope.spawn(move || Cluster::provide(name, *number, options, folder)))
                .collect();
            threads.into_iter().map(std::thread::ScopedJoinHandle::join).collect::<Vec<_>>()
        });
        for cluster in made {
            all.push(cluster.map_err(|_| anyhow::anyhow!("the thread that made a cluster panicked"))??);
        }
    }
    Ok(all)
}

/// The clusters that this program made; dropping it deletes them. Scenarios that follow each other use the same ones.
#[derive(Debug)]
pub struct MadeClusters {
    /// Leave them.
    pub keep: bool,
}

impl Drop for MadeClusters {
    fn drop(&mut self) {
        if self.keep {
            return;
        }
        if let Err(error) = cluster::delete_made() {
            eprintln!("clusters could not be deleted: {error:#}");
        }
    }
}

/// Says what was done and how long it took.
struct Steps(Say);

impl Steps {
    fn timed<T>(&self, what: &str, work: impl FnOnce() -> Result<T>) -> Result<T> {
        let begun = Instant::now();
        let done = work()?;
        self.0.line(format!("{:6.1} s  {what}", begun.elapsed().as_secs_f64()));
        Ok(done)
    }
}
