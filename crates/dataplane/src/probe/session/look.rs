//! Looks up peers that do not answer: their counters at the device, and whether they ask. It refuses to hold up the
//! probing meanwhile.

use std::{collections::BTreeMap, net::IpAddr, sync::Arc, time::Duration};

use spanwire_engine::{DeviceName, LinkId, PublicKey};
use tokio::{sync::mpsc, task::JoinHandle};

use crate::{configuration::DeviceInfo, control, control::HeardEntry, wireguard::Wireguard};

use super::super::{
    evidence::Counters,
    prober::{ProberConfig, Target},
};

/// What was found of one link.
pub(super) struct Seen {
    pub(super) link: LinkId,
    pub(super) counters: Option<Counters>,
    /// The peer's last question.
    pub(super) heard: Option<Question>,
}

/// A question of a peer.
#[derive(Debug, Clone, Copy)]
pub(super) struct Question {
    /// How long ago it arrived.
    pub(super) age: Duration,
    /// How long before it the peer had heard an answer of ours.
    pub(super) answered: Option<Duration>,
}

/// How much to look up.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Depth {
    /// Questions alone.
    Questions,
    /// Questions and the counters of devices.
    Counters,
}

/// See the module.
pub(super) struct Look {
    control: control::Client,
    wireguard: Option<Arc<Wireguard>>,
    seen: mpsc::Sender<Vec<Seen>>,
    running: Option<JoinHandle<()>>,
}

impl Drop for Look {
    fn drop(&mut self) {
        if let Some(running) = &self.running {
            running.abort();
        }
    }
}

impl Look {
    pub(super) fn new(config: &ProberConfig, seen: mpsc::Sender<Vec<Seen>>) -> Self {
        let control = control::Client::new(config.control_socket.clone());
        let wireguard = Wireguard::open(config.uapi_dir.clone())
            .inspect_err(|error| tracing::warn!(%error, "the counters of devices are not read"));
        Self { control, wireguard: wireguard.ok().map(Arc::new), seen, running: None }
    }

    /// Starts to look, unless the last look is still going on.
    pub(super) fn start(&mut self, of: &[&Target], depth: Depth) {
        if self.running.as_ref().is_some_and(|running| !running.is_finished()) {
            return;
        }
        let targets = of.iter().map(|target| (*target).clone()).collect();
        let wireguard = self.wireguard.clone().filter(|_| depth == Depth::Counters);
        let look = look(self.control.clone(), wireguard, targets, self.seen.clone());
        self.running = Some(tokio::spawn(look));
    }
}

async fn look(
    control: control::Client,
    wireguard: Option<Arc<Wireguard>>,
    targets: Vec<Target>,
    seen: mpsc::Sender<Vec<Seen>>,
) {
    let heard = control.heard().await.unwrap_or_else(|error| {
        tracing::debug!(%error, "could not ask who probes");
        Vec::new()
    });
    let heard: BTreeMap<(&str, IpAddr), &HeardEntry> =
        heard.iter().map(|entry| ((entry.device.as_str(), entry.remote), entry)).collect();
    let mut devices: BTreeMap<DeviceName, Option<DeviceInfo>> = BTreeMap::new();
    let mut found = Vec::with_capacity(targets.len());
    for target in targets {
        if let Some(wireguard) = wireguard.as_ref().filter(|_| !devices.contains_key(&target.device)) {
            let info = wireguard.get(&target.device).await;
            let info = info.inspect_err(|error| tracing::debug!(%error, "could not read counters")).ok();
            devices.insert(target.device.clone(), info);
        }
        let info = devices.get(&target.device).and_then(Option::as_ref);
        let counters = info.and_then(|info| counters(info, &target.public_key));
        let heard = asked(&heard, &target);
        found.push(Seen { link: target.link, counters, heard });
    }
    // The session may have ended.
    let _ = seen.send(found).await;
}

fn asked(heard: &BTreeMap<(&str, IpAddr), &HeardEntry>, target: &Target) -> Option<Question> {
    let (_, remote) = target.addresses?;
    let entry = heard.get(&(target.device.as_str(), remote))?;
    let answered = entry.answered.map(Duration::from_millis);
    Some(Question { age: Duration::from_millis(entry.age), answered })
}

fn counters(info: &DeviceInfo, key: &PublicKey) -> Option<Counters> {
    let peer = info.peers.get(key)?;
    Some(Counters {
        received: peer.received,
        keepalive: Duration::from_secs(peer.keepalive.into()),
        handshake: peer.handshake,
    })
}
