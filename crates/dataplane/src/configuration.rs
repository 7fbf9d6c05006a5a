//! What a WireGuard device is told and what it shows, whichever implementation it is of. It refuses to know how either is
//! written down.

use std::{
    collections::{BTreeMap, BTreeSet},
    net::SocketAddr,
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use ipnet::IpNet;
use spanwire_engine::PublicKey;

use crate::key::{PresharedKey, SecretKey};

/// A configuration change.
#[derive(Default)]
pub(crate) struct SetDevice {
    pub(crate) private_key: Option<SecretKey>,
    pub(crate) listen_port: Option<u16>,
    pub(crate) mark: Option<u32>,
    pub(crate) replace_peers: bool,
    pub(crate) peers: Vec<SetPeer>,
}

/// The part of a change that concerns one peer.
#[derive(Clone)]
pub(crate) struct SetPeer {
    pub(crate) public_key: PublicKey,
    pub(crate) remove: bool,
    pub(crate) update_only: bool,
    /// `Some(None)`: take it away.
    pub(crate) preshared_key: Option<Option<PresharedKey>>,
    pub(crate) endpoint: Option<SocketAddr>,
    pub(crate) keepalive: Option<u16>,
    pub(crate) replace_allowed_ips: bool,
    pub(crate) allowed_ips: Vec<AllowedIp>,
}

impl SetPeer {
    pub(crate) fn new(public_key: PublicKey) -> Self {
        Self {
            public_key,
            remove: false,
            update_only: false,
            preshared_key: None,
            endpoint: None,
            keepalive: None,
            replace_allowed_ips: false,
            allowed_ips: Vec::new(),
        }
    }
}

/// An allowed IP to add or to take away.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct AllowedIp {
    pub(crate) remove: bool,
    pub(crate) prefix: IpNet,
}

/// A device as it shows itself.
#[derive(Default)]
pub(crate) struct DeviceInfo {
    pub(crate) private_key: Option<SecretKey>,
    pub(crate) listen_port: u16,
    pub(crate) mark: u32,
    pub(crate) peers: BTreeMap<PublicKey, PeerInfo>,
}

/// A peer as its device shows it.
#[derive(Default, Clone)]
pub(crate) struct PeerInfo {
    pub(crate) preshared_key: Option<PresharedKey>,
    pub(crate) endpoint: Option<SocketAddr>,
    pub(crate) keepalive: u16,
    pub(crate) allowed_ips: BTreeSet<IpNet>,
    /// Age of the last handshake.
    pub(crate) handshake: Option<Duration>,
    pub(crate) received: u64,
    pub(crate) sent: u64,
}

/// Time since the epoch: WireGuard tells moments of the wall clock.
pub(crate) fn wall() -> Duration {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default()
}
