//! What a platform team does by hand: the chart on both sides, and a worker's way to the control cluster. It refuses ways
//! of its own: what is installed here is what docs/install.md says.

use std::{
    path::{Path, PathBuf},
    process::Command,
};

use anyhow::{Context as _, Result};

use super::{
    NAMESPACE,
    cluster::Cluster,
    command::{at, run},
};

/// The release in every cluster.
const RELEASE: &str = "spanwire";
/// How long helm waits for the pods.
const LIMIT: &str = "180s";

/// The chart in the control cluster. `more` are values, `NAME=VALUE`.
pub(super) fn controller(cluster: &Cluster, chart: &Path, more: &[&str]) -> Result<()> {
    helm(cluster, chart, &[&["controller.enabled=true"], more].concat())
}

/// A worker in its own cluster.
pub(super) fn worker(cluster: &Cluster, chart: &Path, more: &[&str]) -> Result<()> {
    let gateway = format!("worker.gateway={}", cluster.name);
    helm(cluster, chart, &[&["worker.enabled=true", &gateway], more].concat())
}

fn helm(cluster: &Cluster, chart: &Path, values: &[&str]) -> Result<()> {
    let chart = chart.to_str().context("a chart whose name is no text")?;
    let fixed =
        ["upgrade", "--install", RELEASE, chart, "--namespace", NAMESPACE, "--create-namespace", "--wait"];
    let values = values.iter().flat_map(|value| ["--set", value]);
    let arguments: Vec<&str> = fixed.into_iter().chain(["--timeout", LIMIT]).chain(values).collect();
    at(&cluster.kubeconfig, "helm", &arguments, "").map(drop).with_context(|| {
        let pods = cluster.kubectl(&["get", "pods", "--namespace", NAMESPACE, "--output", "wide"], "");
        format!("installing in the cluster {}; its pods:\n{}", cluster.name, pods.unwrap_or_default())
    })
}

/// Takes the release away again.
pub(super) fn uninstall(cluster: &Cluster) -> Result<()> {
    let arguments = ["uninstall", RELEASE, "--namespace", NAMESPACE, "--wait", "--timeout", LIMIT];
    at(&cluster.kubeconfig, "helm", &arguments, "").map(drop)
}

/// Lets a worker's cluster join: its Gateway and account in the control cluster, a token in its own.
pub(super) fn join(control: &Cluster, worker: &Cluster) -> Result<()> {
    let (subnet, host) = (worker.pods.to_string(), worker.address.to_string());
    let ours = spanwirectl(control, &["join", &worker.name, "--subnet", &subnet, "--host", &host])?;
    control.kubectl(&["apply", "--namespace", NAMESPACE, "-f", "-"], &ours)?;
    let server = format!("https://{}:6443", control.address);
    let theirs = spanwirectl(control, &["join", &worker.name, "--side", "worker", "--server", &server])?;
    let namespace = format!("apiVersion: v1\nkind: Namespace\nmetadata: {{name: {NAMESPACE}}}\n");
    worker.kubectl(&["apply", "-f", "-"], &namespace)?;
    worker.kubectl(&["apply", "--namespace", NAMESPACE, "-f", "-"], &theirs).map(drop)
}

fn spanwirectl(control: &Cluster, arguments: &[&str]) -> Result<String> {
    let mut command = Command::new(tool()?);
    command.args(arguments).args(["--namespace", NAMESPACE]).env("KUBECONFIG", &control.kubeconfig);
    run(&mut command, "").with_context(|| format!("in the cluster {}", control.name))
}

/// Beside this program.
fn tool() -> Result<PathBuf> {
    let own = std::env::current_exe().context("finding this program")?;
    Ok(own.parent().context("a program without a folder")?.join("spanwirectl"))
}
