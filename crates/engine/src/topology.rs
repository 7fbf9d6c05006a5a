//! Which roles the links between two gateways have. It refuses to know addresses or devices.

use std::{fmt, str::FromStr};

use crate::{GatewayName, LinkRole};

/// The declared shape of a network.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Topology {
    /// Every member has a link to every other.
    Mesh,
    /// Every member has a link to each hub.
    HubSpoke,
}

/// The names that [`Topology`] knows.
pub const TOPOLOGIES: &str = "mesh, hub-spoke";

impl Topology {
    /// The word used in objects.
    pub fn as_str(self) -> &'static str {
        match self {
            Topology::Mesh => "mesh",
            Topology::HubSpoke => "hub-spoke",
        }
    }
}

/// The word is not a topology.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("topology {0:?} is not known: use one of {TOPOLOGIES}")]
pub struct UnknownTopology(pub String);

impl FromStr for Topology {
    type Err = UnknownTopology;
    fn from_str(text: &str) -> Result<Self, UnknownTopology> {
        match text {
            "mesh" => Ok(Topology::Mesh),
            "hub-spoke" => Ok(Topology::HubSpoke),
            other => Err(UnknownTopology(other.to_owned())),
        }
    }
}

impl fmt::Display for Topology {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// The part that a gateway plays in one network.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Role {
    /// Forwards between its downlinks.
    Hub,
    /// Sends everything through a hub (or over mesh links).
    Spoke,
}

impl Role {
    /// The word used in objects.
    pub fn as_str(self) -> &'static str {
        match self {
            Role::Hub => "hub",
            Role::Spoke => "spoke",
        }
    }
}

/// The roles of the links that `me` has towards `peer`, from `hubs` and the mesh flag (design §5 rule 1).
pub fn roles(me: &GatewayName, peer: &GatewayName, hubs: &[GatewayName], mesh_links: bool) -> Vec<LinkRole> {
    let (i_am_hub, peer_is_hub) = (hubs.contains(me), hubs.contains(peer));
    let mut roles = Vec::new();
    if peer_is_hub {
        roles.push(LinkRole::Uplink);
    }
    if i_am_hub {
        roles.push(LinkRole::Downlink);
    }
    if i_am_hub && peer_is_hub {
        roles.push(LinkRole::Trunk);
    }
    if mesh_links || !(i_am_hub || peer_is_hub) {
        roles.push(LinkRole::Mesh);
    }
    roles
}
