//! What devices show of the traffic with each peer, read when somebody asks. It refuses to remember: what is gone from a
//! device is gone here.

use std::{collections::BTreeMap, path::PathBuf, time::Duration};

use spanwire_engine::{DeviceName, PublicKey};

use crate::{
    configuration::PeerInfo,
    wireguard::{Error, Wireguard},
};

/// What a device shows of a peer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PeerTraffic {
    /// Age of the last finished handshake; `None`: there was none.
    pub handshake: Option<Duration>,
    /// Bytes received from it since it stands on the device.
    pub received: u64,
    /// Bytes sent to it since then.
    pub sent: u64,
}

/// Reads the devices of one network namespace.
pub struct Traffic(Wireguard);

impl Traffic {
    /// Of userspace devices with their sockets in `uapi_dir`, and of the kernel's in the caller's network namespace.
    ///
    /// # Errors
    /// No netlink socket.
    pub fn open(uapi_dir: PathBuf) -> Result<Self, Error> {
        Wireguard::open(uapi_dir).map(Self)
    }

    /// All peers on a device.
    ///
    /// # Errors
    /// The device is not there or does not answer.
    pub async fn of(&self, device: &DeviceName) -> Result<BTreeMap<PublicKey, PeerTraffic>, Error> {
        let peers = self.0.get(device).await?.peers.into_iter();
        Ok(peers.map(|(key, info)| (key, traffic(&info))).collect())
    }
}

fn traffic(info: &PeerInfo) -> PeerTraffic {
    let PeerInfo { preshared_key: _, endpoint: _, keepalive: _, allowed_ips: _, handshake, received, sent } =
        info;
    PeerTraffic { handshake: *handshake, received: *received, sent: *sent }
}
