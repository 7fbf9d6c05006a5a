//! What the packet filter of a host has to know of each network. It refuses to know rule syntax: the dataplane renders.

use std::net::IpAddr;

use ipnet::IpNet;
use sha2::{Digest as _, Sha256};

use crate::{DeviceName, LinkRole, NetworkName, Transit};

/// The parts of all networks of a host, in the order of their names.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Firewall {
    /// One part a network.
    pub networks: Vec<NetworkFirewall>,
}

/// What one network contributes. Every list is sorted and free of repeats.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct NetworkFirewall {
    /// The network.
    pub network: NetworkName,
    /// Its devices with the role of their links.
    pub devices: Vec<(LinkRole, DeviceName)>,
    /// Own prefixes: what peers may reach here.
    pub own: Vec<IpNet>,
    /// Wide prefixes: the overlay.
    pub wide: Vec<IpNet>,
    /// Own tunnel address, the source of what is not from own prefixes.
    pub tunnel_address: Option<IpAddr>,
    /// Whether the listener passes packets between two spokes.
    pub transit: Transit,
    /// Prefixes of the gateways in `hubs`: with `Isolated` the listener passes packets from or to these and no others.
    pub hub_prefixes: Vec<IpNet>,
}

impl Firewall {
    /// A short digest of the whole content; equal content has an equal digest on every machine.
    pub fn digest(&self) -> String {
        let digest = Sha256::digest(format!("{self:?}"));
        digest.iter().take(16).map(|byte| format!("{byte:02x}")).collect()
    }
}
