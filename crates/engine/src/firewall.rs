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
        let mut content = Vec::new();
        for network in &self.networks {
            network.put(&mut content);
        }
        let digest = Sha256::digest(content);
        digest.iter().take(16).map(|byte| format!("{byte:02x}")).collect()
    }
}

impl NetworkFirewall {
    /// Everything that it says as bytes: each list and text is preceded by its length.
    fn put(&self, content: &mut Vec<u8>) {
        let Self { network, devices, own, wide, tunnel_address, transit, hub_prefixes } = self;
        put_text(network.as_str(), content);
        put_length(devices.len(), content);
        for (role, device) in devices {
            put_text(role.as_str(), content);
            put_text(device.as_str(), content);
        }
        let tunnel_address: Vec<IpNet> = tunnel_address.map(IpNet::from).into_iter().collect();
        for list in [own, wide, hub_prefixes, &tunnel_address] {
            put_length(list.len(), content);
            for prefix in list {
                put_prefix(*prefix, content);
            }
        }
        content.push(match transit {
            Transit::Routed => 0,
            Transit::Isolated => 1,
        });
    }
}

fn put_length(length: usize, content: &mut Vec<u8>) {
    content.extend((length as u64).to_be_bytes());
}

fn put_text(text: &str, content: &mut Vec<u8>) {
    put_length(text.len(), content);
    content.extend(text.bytes());
}

fn put_prefix(prefix: IpNet, content: &mut Vec<u8>) {
    match prefix {
        IpNet::V4(prefix) => {
            content.push(4);
            content.extend(prefix.addr().octets());
        }
        IpNet::V6(prefix) => {
            content.push(6);
            content.extend(prefix.addr().octets());
        }
    }
    content.push(prefix.prefix_len());
}
