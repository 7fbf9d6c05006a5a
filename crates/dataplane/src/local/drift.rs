//! Notices what somebody changed by hand: interfaces, addresses, routes and rules by the kernel's word, and what devices
//! are told, of which the kernel says nothing, by reading it. It refuses to use more than a small part of a processor for
//! that.

use std::{
    hash::{DefaultHasher, Hash as _, Hasher as _},
    path::PathBuf,
    time::Duration,
};

use spanwire_engine::{DeviceName, port::Changes};
use tokio::time::{Instant, sleep_until};

use crate::{
    configuration::DeviceInfo,
    netlink::{Netlink, monitor::HostChanges},
    wireguard::Wireguard,
};

use super::Error;

/// How often devices are read at most.
const SHORTEST: Duration = Duration::from_secs(1);
/// The pause after a reading is at least this many times as long as the reading took.
const REST: u32 = 400;

/// Changes of this host, coalesced.
pub struct Drift {
    host: HostChanges,
    netlink: Netlink,
    wireguard: Wireguard,
    /// What the devices were told when they were read last.
    told: Option<u64>,
    next: Instant,
}

impl Drift {
    pub(super) fn open(protocol: u8, uapi_dir: PathBuf) -> Result<Self, Error> {
        Ok(Self {
            host: HostChanges::open(protocol).map_err(Error::Netlink)?,
            netlink: Netlink::open().map_err(Error::Netlink)?,
            wireguard: Wireguard::open(uapi_dir).map_err(Error::Configuration)?,
            told: None,
            next: Instant::now(),
        })
    }

    /// Resolves when something may have changed since the last call returned.
    pub async fn changed(&mut self) {
        loop {
            tokio::select! {
                () = self.host.changed() => return,
                () = sleep_until(self.next) => {}
            }
            let begun = Instant::now();
            let told = self.read().await;
            self.next = Instant::now() + (begun.elapsed() * REST).max(SHORTEST);
            let before = std::mem::replace(&mut self.told, told);
            if before.is_some() && told != before {
                return;
            }
        }
    }

    /// A digest of what our devices were told; `None`: not all could be read.
    async fn read(&self) -> Option<u64> {
        let links = self.netlink.links().await.ok()?;
        let mut digest = DefaultHasher::new();
        for link in links.iter().filter(|link| link.is_ours()) {
            let name: DeviceName = link.name.parse().ok()?;
            let info = self.wireguard.get(&name).await.ok()?;
            name.hash(&mut digest);
            tell(&info, &mut digest);
        }
        Some(digest.finish())
    }
}

/// Without what moves by itself.
fn tell(info: &DeviceInfo, digest: &mut DefaultHasher) {
    let DeviceInfo { private_key, listen_port, mark, peers } = info;
    (private_key.as_ref().map(|key| key.public().0), listen_port, mark).hash(digest);
    for (key, peer) in peers {
        (key.0, peer.keepalive, &peer.allowed_ips).hash(digest);
    }
}

impl Changes for Drift {
    async fn changed(&mut self) {
        Drift::changed(self).await;
    }
}
