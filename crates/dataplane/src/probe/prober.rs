//! The handle on the probing of all links of a worker. It refuses to block: targets go in, evidence comes out.

use std::{collections::BTreeMap, net::IpAddr, path::PathBuf};

use spanwire_engine::{DeviceName, LinkId, PublicKey, port::Changes, worker::Evidence};
use tokio::{
    sync::{Mutex, mpsc, watch},
    task::JoinHandle,
};

use super::{session, state::Timing};

/// A link to probe.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Target {
    /// Which link.
    pub link: LinkId,
    /// The device that carries it.
    pub device: DeviceName,
    /// The peer's key on that device.
    pub public_key: PublicKey,
    /// Our tunnel address and the peer's. `None`: one end has none, so what the device receives is all the evidence.
    pub addresses: Option<(IpAddr, IpAddr)>,
    /// Whether it was ever connected.
    pub connected_once: bool,
    /// Whether it was not connected when it was last judged.
    pub lost: bool,
}

/// What a [`Prober`] has to know.
#[derive(Debug, Clone)]
pub struct ProberConfig {
    /// The control socket of the dataplane process, which knows whose probes arrive.
    pub control_socket: PathBuf,
    /// The directory of the devices' configuration sockets, for counters of peers that do not probe.
    pub uapi_dir: PathBuf,
    /// How often.
    pub timing: Timing,
}

/// Probes links until it is dropped.
pub struct Prober {
    targets: mpsc::UnboundedSender<Vec<Target>>,
    evidence: watch::Receiver<BTreeMap<LinkId, Evidence>>,
    seen: Mutex<watch::Receiver<BTreeMap<LinkId, Evidence>>>,
    task: JoinHandle<()>,
}

impl Drop for Prober {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl Prober {
    /// Starts without targets, in the network namespace of the calling thread. Call it within a Tokio runtime.
    pub fn start(config: ProberConfig) -> Self {
        let (targets, queue) = mpsc::unbounded_channel();
        let (publish, evidence) = watch::channel(BTreeMap::new());
        let task = tokio::spawn(session::run(config, queue, publish));
        Self { targets, seen: Mutex::new(evidence.clone()), evidence, task }
    }

    /// Probes these links and no others. A link whose device and addresses are as before keeps what is known of it.
    pub fn set_targets(&self, targets: Vec<Target>) {
        if self.targets.send(targets).is_err() {
            tracing::error!("the probing of links has ended");
        }
    }

    /// What is known of each link; no entry: nothing yet.
    pub fn evidence(&self) -> BTreeMap<LinkId, Evidence> {
        self.evidence.borrow().clone()
    }

    /// Resolves when the evidence has changed since the last call returned.
    pub async fn changed(&self) {
        if self.seen.lock().await.changed().await.is_err() {
            // The session has ended: nothing will change any more.
            std::future::pending::<()>().await;
        }
    }
}

impl Changes for Prober {
    async fn changed(&mut self) {
        Prober::changed(self).await;
    }
}
