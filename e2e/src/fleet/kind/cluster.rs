//! One cluster of kind with one node: made, looked into, deleted. It refuses to take over a cluster that is there already
//! unless it was told to, and to change the kubeconfig of the person who runs it.

use std::{
    net::IpAddr,
    path::{Path, PathBuf},
    sync::{Mutex, PoisonError},
    time::Duration,
};

use anyhow::{Context as _, Result, bail};
use ipnet::IpNet;
use serde_json::Value;
use spanwire_testkit::lab::{Host, Namespace};

use super::command::{at, output};
use crate::{interrupt, setup::Clusters as Options};

/// Every cluster of a run begins so.
const PREFIX: &str = "spanwire-e2e-";
/// How long a pod may take to run.
const POD_LIMIT: Duration = Duration::from_secs(120);

/// Names of the clusters that this program made.
static MADE: Mutex<Vec<String>> = Mutex::new(Vec::new());

/// A cluster.
#[derive(Debug)]
pub(super) struct Cluster {
    /// Its name without the prefix: the gateway's, or `control`.
    pub(super) name: String,
    /// Addresses of its pods.
    pub(super) pods: IpNet,
    /// Where its node, and its API server at port 6443, are reached from other nodes.
    pub(super) address: IpAddr,
    /// Process of its node.
    pid: u32,
    pub(super) kubeconfig: PathBuf,
}

impl Cluster {
    /// Makes it, or takes the one that is there where that is allowed. `number` sets its pods and services apart from
    /// those of the others.
    pub(super) fn provide(name: &str, number: u8, options: &Options, folder: &Path) -> Result<Self> {
        let whole = format!("{PREFIX}{name}");
        let pods = IpNet::new([10, 200_u8.saturating_add(number), 0, 0].into(), 16).context("a subnet")?;
        let kubeconfig = folder.join(format!("{name}.kubeconfig"));
        let file = kubeconfig.to_str().context("a folder whose name is no text")?;
        let there = output("kind", &["get", "clusters"])?.lines().any(|line| line == whole);
        if !there {
            create(&whole, number, pods, options, file)?;
        } else if options.reuse || made().contains(&whole) {
            output("kind", &["export", "kubeconfig", "--name", &whole, "--kubeconfig", file])?;
        } else {
            bail!(
                "the cluster {whole} is there already: use it with --reuse, or delete it with \
                 `kind delete cluster --name {whole}`"
            );
        }
        let format = "{{.State.Pid}} {{range .NetworkSettings.Networks}}{{.IPAddress}} {{end}}";
        let text = output("docker", &["inspect", "--format", format, &node(&whole)])?;
        let mut words = text.split_whitespace();
        let pid = words.next().context("a node without a process")?.parse().context("the node's process")?;
        let address = words.next().context("a node without an address")?.parse().context("its address")?;
        Ok(Self { name: name.to_owned(), pods, address, pid, kubeconfig })
    }

    /// Gives its node an image from an archive.
    pub(super) fn load(&self, archive: &Path) -> Result<()> {
        let archive = archive.to_str().context("an archive whose name is no text")?;
        output("kind", &["load", "image-archive", archive, "--name", &self.whole_name()]).map(drop)
    }

    pub(super) fn whole_name(&self) -> String {
        format!("{PREFIX}{}", self.name)
    }

    /// Runs `kubectl` in it.
    pub(super) fn kubectl(&self, arguments: &[&str], input: &str) -> Result<String> {
        at(&self.kubeconfig, "kubectl", arguments, input)
            .with_context(|| format!("in the cluster {}", self.name))
    }

    /// Runs a program on its node.
    pub(super) fn on_node(&self, arguments: &[&str]) -> Result<String> {
        let node = node(&self.whole_name());
        output("docker", &[&["exec", &node], arguments].concat())
    }

    /// Its node as a host: the far end of its cable is on this machine.
    pub(super) fn host(&self) -> Result<Host> {
        let namespace = self.namespace(Path::new(&format!("/proc/{}/ns/net", self.pid)))?;
        let here = Namespace::of("this machine", Path::new("/proc/self/ns/net"))?;
        let index = self.on_node(&["cat", "/sys/class/net/eth0/iflink"])?;
        let port = device_of_index(index.trim())?;
        Ok(Host::adopted(&self.name, namespace, (here, port), self.address))
    }

    /// A pod that does nothing, as the place from which traffic is sent; named after the gateway.
    pub(super) fn traffic_pod(&self) -> Result<Host> {
        let address = self.run_pod()?.parse().context("the address of a pod")?;
        let id = self.on_node(&["crictl", "pods", "--name", "traffic", "--state", "ready", "--quiet"])?;
        let pod: Value = serde_json::from_str(&self.on_node(&["crictl", "inspectp", id.trim()])?)
            .context("reading what crictl says of a pod")?;
        let pid = pod["info"]["pid"].as_u64().context("a pod without a process")?;
        let inside = Path::new("/proc").join(self.pid.to_string()).join("root");
        let namespace = self.namespace(&inside.join(format!("proc/{pid}/ns/net")))?;
        Ok(Host::adopted(&self.name, namespace.clone(), (namespace, "eth0".to_owned()), address))
    }

    fn run_pod(&self) -> Result<String> {
        let images: Value = serde_json::from_str(&self.on_node(&["crictl", "images", "--output", "json"])?)
            .context("reading the images of a node")?;
        let tags = images["images"]
            .as_array()
            .into_iter()
            .flatten()
            .filter_map(|image| image["repoTags"][0].as_str());
        let pause =
            tags.into_iter().find(|tag| tag.contains("/pause:")).context("the node has no pause image")?;
        let text = format!(
            "apiVersion: v1\nkind: Pod\nmetadata: {{name: traffic, namespace: default}}\nspec:\n  \
             terminationGracePeriodSeconds: 0\n  containers: [{{name: pause, image: '{pause}', imagePullPolicy: Never}}]\n"
        );
        // A new cluster has no default account at once.
        let applied = interrupt::wait_for(POD_LIMIT, || Ok(self.kubectl(&["apply", "-f", "-"], &text).ok()))?;
        applied.with_context(|| format!("the cluster {} takes no pod", self.name))?;
        let limit = format!("--timeout={}s", POD_LIMIT.as_secs());
        self.kubectl(&["wait", "--for=condition=Ready", "pod/traffic", &limit], "")?;
        self.kubectl(&["get", "pod", "traffic", "--output", "jsonpath={.status.podIP}"], "")
    }

    fn namespace(&self, path: &Path) -> Result<Namespace> {
        Namespace::of(&self.name, path)
            .context("entering a container; this needs root on the machine of the containers")
    }
}

/// Deletes every cluster that this program made.
///
/// # Errors
/// One could not be deleted; the others are gone.
pub(super) fn delete_made() -> Result<()> {
    let names = std::mem::take(&mut *lock());
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    if names.is_empty() {
        return Ok(());
    }
    output("kind", &[&["delete", "clusters"], &names[..]].concat()).map(drop)
}

/// The clusters that this program made.
fn made() -> Vec<String> {
    lock().clone()
}

fn lock() -> std::sync::MutexGuard<'static, Vec<String>> {
    MADE.lock().unwrap_or_else(PoisonError::into_inner)
}

fn create(name: &str, number: u8, pods: IpNet, options: &Options, kubeconfig: &str) -> Result<()> {
    let services = 100_u8.saturating_add(number);
    let config = format!(
        "kind: Cluster\napiVersion: kind.x-k8s.io/v1alpha4\nnetworking:\n  podSubnet: {pods}\n  serviceSubnet: \
         10.{services}.0.0/16\nnodes:\n- role: control-plane\n  labels: {{spanwire.dev/gateway: \"true\"}}\n"
    );
    // Before it is made: what failed half-way is deleted, too.
    lock().push(name.to_owned());
    let mut command = std::process::Command::new("kind");
    command.args([
        "create",
        "cluster",
        "--name",
        name,
        "--config",
        "-",
        "--kubeconfig",
        kubeconfig,
        "--wait",
        "180s",
    ]);
    if let Some(image) = &options.node_image {
        command.args(["--image", image]);
    }
    super::command::run(&mut command, &config).map(drop).with_context(|| {
        format!(
            "making the cluster {name}. Nodes need a privileged container with its own cgroup: see \
             https://kind.sigs.k8s.io/docs/user/known-issues; without a registry, tools/kind-node makes a node image"
        )
    })
}

/// The container of a cluster's only node.
fn node(cluster: &str) -> String {
    format!("{cluster}-control-plane")
}

/// The name of a device of this machine.
fn device_of_index(index: &str) -> Result<String> {
    let devices = std::fs::read_dir("/sys/class/net").context("listing devices")?;
    let mut names = devices.flatten().map(|entry| entry.file_name().to_string_lossy().into_owned());
    let is_it = |name: &String| {
        let text = std::fs::read_to_string(format!("/sys/class/net/{name}/ifindex"));
        text.is_ok_and(|text| text.trim() == index)
    };
    names.find(is_it).with_context(|| format!("no device with the number {index} on this machine"))
}
