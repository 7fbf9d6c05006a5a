//! Looks up peers that do not answer: their counters at the device, and whether they ask. It refuses to hold up the
//! probing meanwhile.

use std::{collections::BTreeMap, time::Duration};

use spanwire_engine::{DeviceName, LinkId, PublicKey};
use tokio::{sync::mpsc, task::JoinHandle};

use crate::{
    control,
    control::HeardEntry,
    uapi::{self, DeviceInfo},
};

use super::super::{
    evidence::Counters,
    prober::{ProberConfig, Target},
};

/// What was found of one link.
pub(super) struct Seen {
    pub(super) link: LinkId,
    pub(super) counters: Option<Counters>,
    /// Age of the peer's last question.
    pub(super) heard: Option<Duration>,
}

/// See the module.
pub(super) struct Look {
    control: control::Client,
    uapi: uapi::Client,
    seen: mpsc::Sender<Seen>,
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
    pub(super) fn new(config: &ProberConfig, seen: mpsc::Sender<Seen>) -> Self {
        let control = control::Client::new(config.control_socket.clone());
        Self { control, uapi: uapi::Client::new(config.uapi_dir.clone()), seen, running: None }
    }

    /// Starts to look, unless the last look is still going on.
    pub(super) fn start(&mut self, silent: &[&Target]) {
        if self.running.as_ref().is_some_and(|running| !running.is_finished()) {
            return;
        }
        let targets = silent.iter().map(|target| (*target).clone()).collect();
        let look = look(self.control.clone(), self.uapi.clone(), targets, self.seen.clone());
        self.running = Some(tokio::spawn(look));
    }
}

async fn look(control: control::Client, uapi: uapi::Client, targets: Vec<Target>, seen: mpsc::Sender<Seen>) {
    let heard = control.heard().await.unwrap_or_else(|error| {
        tracing::debug!(%error, "could not ask who probes");
        Vec::new()
    });
    let mut devices: BTreeMap<DeviceName, Option<DeviceInfo>> = BTreeMap::new();
    for target in targets {
        if !devices.contains_key(&target.device) {
            let info = uapi.get(&target.device).await;
            let info = info.inspect_err(|error| tracing::debug!(%error, "could not read counters")).ok();
            devices.insert(target.device.clone(), info);
        }
        let info = devices.get(&target.device).and_then(Option::as_ref);
        let counters = info.and_then(|info| counters(info, &target.public_key));
        let heard = asked(&heard, &target);
        if seen.send(Seen { link: target.link, counters, heard }).await.is_err() {
            return;
        }
    }
}

fn asked(heard: &[HeardEntry], target: &Target) -> Option<Duration> {
    let fits = |entry: &&HeardEntry| {
        let remote = target.addresses.map(|(_, remote)| remote);
        entry.device == target.device.as_str() && Some(entry.remote) == remote
    };
    heard.iter().find(fits).map(|entry| Duration::from_millis(entry.age))
}

fn counters(info: &DeviceInfo, key: &PublicKey) -> Option<Counters> {
    let peer = info.peers.get(key)?;
    Some(Counters {
        received: peer.received,
        keepalive: Duration::from_secs(peer.keepalive.into()),
        handshake: peer.handshake,
    })
}
