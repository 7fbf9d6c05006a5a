//! What happens to installed releases later: upgrade, deletion of pods, uninstall; and what is left then. It refuses to
//! touch a device itself.

use anyhow::{Context as _, Result};

use super::{Clusters, NAMESPACE, cluster::Cluster, command::output, install};
use crate::fleet::NETWORK;

/// A change of values that makes new pods.
const NEW_PODS: &str = "podAnnotations.spanwire\\.dev/turn";

impl Clusters {
    /// Brings every release to the present chart, with new pods of controllers and workers.
    pub(crate) fn upgrade(&self) -> Result<()> {
        install::controller(&self.control, &self.options.chart, &[&format!("controller.{NEW_PODS}=second")])?;
        self.install_workers(&[&format!("worker.{NEW_PODS}=second")])
    }

    /// Installs the present chart for every worker, with more values.
    pub(crate) fn install_workers(&self, more: &[&str]) -> Result<()> {
        self.workers.iter().try_for_each(|worker| install::worker(worker, &self.options.chart, more))
    }

    /// Deletes the pods of all workers and waits for the next ones.
    pub(crate) fn delete_worker_pods(&self) -> Result<()> {
        for worker in &self.workers {
            let label = "app.kubernetes.io/component=worker";
            worker.kubectl(&["delete", "pods", "--namespace", NAMESPACE, "--selector", label], "")?;
            let status = [
                "rollout",
                "status",
                "daemonset/spanwire-worker",
                "--namespace",
                NAMESPACE,
                "--timeout=120s",
            ];
            worker.kubectl(&status, "")?;
        }
        Ok(())
    }

    /// Takes the releases of all workers away.
    pub(crate) fn uninstall_workers(&self) -> Result<()> {
        self.workers.iter().try_for_each(install::uninstall)
    }

    /// What of ours stands on nodes: a line each.
    pub(crate) fn left_on_nodes(&self) -> Result<String> {
        let look = "ip -o link | grep -oE ': s[wk][udtm]-[^:@]+'; ip rule | grep 'proto 83'; nft list tables | grep -w spanwire; true";
        let mut text = String::new();
        for worker in &self.workers {
            for line in worker.on_node(&["sh", "-c", look])?.lines() {
                text.push_str(&format!("{}: {line}\n", worker.name));
            }
        }
        Ok(text)
    }

    /// What one worker's token may do to another's objects, though it must not: a line each. That it may read its own is
    /// asked, too.
    pub(crate) fn foreign_objects_readable(&self) -> Result<Vec<String>> {
        let [first, second, ..] = &self.workers[..] else { return Ok(Vec::new()) };
        let token = token(first)?;
        let get = |name: &str| self.with_token(&token, &["get", "workersliceconfigs", name]);
        let mut faults = Vec::new();
        if let Err(error) = get(&format!("{NETWORK}.{}", first.name)) {
            faults.push(format!("the token of {} may not read its own intent: {error:#}", first.name));
        }
        let foreign = format!("{NETWORK}.{}", second.name);
        let patch = [
            "patch",
            "gateways",
            &second.name,
            "--subresource=status",
            "--type=merge",
            "-p",
            "{\"status\":{}}",
        ];
        for (what, answer) in [
            ("read the intent of", get(&foreign)),
            ("list all intents, so those of", self.with_token(&token, &["get", "workersliceconfigs"])),
            ("write the status of", self.with_token(&token, &patch)),
            ("read Secrets beside", self.with_token(&token, &["get", "secrets"])),
        ] {
            match answer {
                Err(error) if format!("{error:#}").contains("orbidden") => {}
                Err(error) => faults.push(format!("not refused as forbidden, but: {error:#}")),
                Ok(_) => faults.push(format!("the token of {} may {what} {}", first.name, second.name)),
            }
        }
        Ok(faults)
    }

    fn with_token(&self, token: &str, arguments: &[&str]) -> Result<String> {
        let server = format!("https://{}:6443", self.control.address);
        let fixed = ["--kubeconfig=/dev/null", "--server", &server, "--insecure-skip-tls-verify"];
        let way = ["--token", token, "--namespace", NAMESPACE];
        output("kubectl", &[arguments, &fixed, &way].concat())
    }
}

/// The token that a worker has for the control cluster.
fn token(worker: &Cluster) -> Result<String> {
    let secret = format!("spanwire-control-{}", worker.name);
    let template = "--template={{.data.token | base64decode}}";
    let get = ["get", "secret", &secret, "--namespace", NAMESPACE, template];
    worker.kubectl(&get, "").context("reading a worker's token")
}
