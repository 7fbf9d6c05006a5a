//! What one worker should be connected to: the content of a `WorkerSliceConfig`. It refuses to resolve names to facts.

use std::{net::IpAddr, time::Duration};

use ipnet::IpNet;

use crate::{GatewayName, Meta, NetworkName, Role, Topology};

/// One object of a store: content and what the store knows of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Stored<T> {
    /// Identity and versions.
    pub meta: Meta,
    /// The content.
    pub value: T,
}

/// `WorkerSliceConfig.spec`.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Intent {
    /// `sliceName`.
    pub network: NetworkName,
    /// The gateway whose worker this is for.
    pub gateway: GatewayName,
    /// The list that alone decides which peers; `None`: every other member. Entries stay text, so that one bad name
    /// is reported instead of failing the rest.
    pub peers: Option<Vec<String>>,
    /// The topology, where the writer knows one.
    pub topology: Option<Topology>,
    /// The role; `None`: hub if in `hubs`, else spoke.
    pub role: Option<Role>,
    /// Hubs, the active one first.
    pub hubs: Vec<GatewayName>,
    /// Mesh links to every peer besides those that `hubs` gives.
    pub mesh_links: bool,
    /// All members; empty: all gateways of the store.
    pub members: Vec<GatewayName>,
    /// The worker's own address in this network.
    pub tunnel_address: Option<IpAddr>,
    /// The network's cidr and the subnets of all its members.
    pub wide_cidrs: Vec<IpNet>,
    /// Whether spokes reach each other.
    pub transit: Transit,
    /// Time-outs of make-before-break.
    pub hub_change: HubChange,
    /// Settings of the devices.
    pub tunnel: Tunnel,
}

impl Intent {
    /// An intent with `peers` and nothing else.
    pub fn bare(network: NetworkName, gateway: GatewayName, peers: Option<Vec<String>>) -> Self {
        Self {
            network,
            gateway,
            peers,
            topology: None,
            role: None,
            hubs: Vec::new(),
            mesh_links: false,
            members: Vec::new(),
            tunnel_address: None,
            wide_cidrs: Vec::new(),
            transit: Transit::Isolated,
            hub_change: HubChange::default(),
            tunnel: Tunnel::default(),
        }
    }

    /// The role that is asked for.
    pub fn role(&self) -> Role {
        self.role.unwrap_or(if self.hubs.contains(&self.gateway) { Role::Hub } else { Role::Spoke })
    }

    /// Whether every link of the network is to be torn down: `peers: []` with a topology.
    pub fn is_teardown(&self) -> bool {
        self.topology.is_some() && self.peers.as_ref().is_some_and(Vec::is_empty)
    }

    /// The intent that tears everything down: no peers, and a topology so that this is meant. Addresses and rules stay
    /// until the last link is gone.
    #[must_use]
    pub fn teardown(&self) -> Intent {
        let bare = Intent::bare(self.network.clone(), self.gateway.clone(), Some(Vec::new()));
        Intent {
            topology: self.topology.or(Some(Topology::Mesh)),
            tunnel_address: self.tunnel_address,
            wide_cidrs: self.wide_cidrs.clone(),
            hub_change: self.hub_change,
            tunnel: self.tunnel,
            ..bare
        }
    }

    /// The object's name, `<network>.<gateway>`.
    pub fn object_name(&self) -> String {
        format!("{}.{}", self.network, self.gateway)
    }
}

/// Whether spokes reach each other through the hub.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub enum Transit {
    /// They do.
    Routed,
    /// They reach hubs only.
    #[default]
    Isolated,
}

/// What happens when the other side does not connect in time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub enum OnTimeout {
    /// Go on without it.
    #[default]
    Proceed,
    /// Keep what is there.
    Hold,
}

/// Time-outs of make-before-break.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct HubChange {
    /// How long a new link may take to connect.
    pub connect_timeout: Duration,
    /// What then.
    pub on_timeout: OnTimeout,
}

impl Default for HubChange {
    fn default() -> Self {
        Self { connect_timeout: Duration::from_secs(60), on_timeout: OnTimeout::Proceed }
    }
}

/// Which WireGuard implementation to use.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub enum TunnelMode {
    /// The kernel's where it has one, else userspace.
    #[default]
    Auto,
    /// The kernel's or none.
    Kernel,
    /// Userspace.
    Userspace,
}

/// Settings of the devices of a network.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Tunnel {
    /// Implementation.
    pub mode: TunnelMode,
    /// MTU in bytes; `None`: what the underlay leaves.
    pub mtu: Option<u32>,
    /// Persistent keepalive in whole seconds; zero: off.
    pub keepalive: Duration,
}

impl Default for Tunnel {
    fn default() -> Self {
        Self { mode: TunnelMode::Auto, mtu: None, keepalive: Duration::from_secs(25) }
    }
}
