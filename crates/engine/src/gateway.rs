//! What is known of a gateway. It refuses to judge it: validation is the controller's, use the worker's.

use std::collections::BTreeMap;
use std::net::IpAddr;

use ipnet::IpNet;

use crate::{Condition, Endpoint, GatewayName, LinkRole, Meta, NetworkName};

/// One `Gateway` object, spec and status joined. Text that people or other hosts wrote stays text where a fault must
/// be answered for this gateway alone instead of failing the read of all.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Gateway {
    /// Identity and versions.
    pub meta: Meta,
    /// `spec.subnets` as written: host bits and syntax are judged later, by name.
    pub subnets: Vec<String>,
    /// `spec.advertise.dialOnly`: behind NAT, nobody can dial it.
    pub dial_only: bool,
    /// `spec.advertise.host`: what others dial instead of what the worker found.
    pub advertise_host: Option<String>,
    /// `spec.advertise.ports`: ports that others dial instead of the worker's own.
    pub advertise_ports: Vec<Listener>,
    /// `spec.maintenance`: moved to the end of the target list of hubs.
    pub maintenance: bool,
    /// What the worker published.
    pub facts: GatewayFacts,
    /// `status.networks`, owned by the controller: tunnel address by network.
    pub networks: BTreeMap<NetworkName, Option<IpAddr>>,
}

/// The condition of a Gateway that says whether its kernel has WireGuard.
pub const KERNEL_WIREGUARD: &str = "KernelWireGuard";

/// The status that a worker publishes of its gateway.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct GatewayFacts {
    /// Public key as written; `None`: not published yet.
    pub public_key: Option<String>,
    /// Counts the keys of this gateway; peers follow only a higher one.
    pub key_generation: i64,
    /// The host that others dial.
    pub endpoint: Option<String>,
    /// Ports on which the worker listens.
    pub listeners: Vec<Listener>,
    /// `kernel` or `userspace`.
    pub backend: Option<String>,
    /// Conditions of the worker.
    pub conditions: Vec<Condition>,
}

impl GatewayFacts {
    /// The condition of this kind.
    pub fn condition(&self, kind: &str) -> Option<&Condition> {
        self.conditions.iter().find(|condition| condition.kind == kind)
    }
}

/// One listening port.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Listener {
    /// The network.
    pub network: NetworkName,
    /// `downlink`, `mesh` or `trunk`.
    pub role: LinkRole,
    /// The peer, for a trunk.
    pub peer: Option<GatewayName>,
    /// UDP port.
    pub port: u16,
}

impl Gateway {
    /// The subnets that are valid prefixes without host bits.
    pub fn valid_subnets(&self) -> impl Iterator<Item = IpNet> + '_ {
        self.subnets.iter().filter_map(|text| text.parse::<IpNet>().ok().filter(|net| net.trunc() == *net))
    }

    /// Own prefixes in `network`: the tunnel address and the subnets.
    pub fn own_prefixes(&self, network: &NetworkName) -> Vec<IpNet> {
        let tunnel = self.tunnel_address(network).map(IpNet::from);
        let mut prefixes: Vec<IpNet> = tunnel.into_iter().chain(self.valid_subnets()).collect();
        prefixes.sort();
        prefixes.dedup();
        prefixes
    }

    /// The address of the gateway in `network`, where it is known.
    pub fn tunnel_address(&self, network: &NetworkName) -> Option<IpAddr> {
        self.networks.get(network).copied().flatten()
    }

    /// The host that others dial: the advertised one before the one found.
    pub fn host(&self) -> Option<&str> {
        if self.dial_only { None } else { self.advertise_host.as_deref().or(self.facts.endpoint.as_deref()) }
    }

    /// Where `dialler` reaches the end of this gateway that plays `role`; `None`: not known (yet), or dial-only.
    pub fn endpoint(&self, network: &NetworkName, role: LinkRole, dialler: &GatewayName) -> Option<Endpoint> {
        let fits = |listener: &&Listener| {
            listener.network == *network
                && listener.role == role
                && listener.peer.as_ref().is_none_or(|peer| peer == dialler)
        };
        let host = self.host()?.to_owned();
        let advertised = self.advertise_ports.iter().find(fits);
        let port = advertised.or_else(|| self.facts.listeners.iter().find(fits))?.port;
        Some(Endpoint { host, port })
    }
}
