//! The steps of a plan. Each names everything that its applier needs: addresses, ports, tables and order are chosen. It
//! refuses to leave a choice open.

use std::{
    net::{IpAddr, SocketAddr},
    time::Duration,
};

use ipnet::IpNet;

use crate::{DeviceId, DeviceName, LinkId, NetworkName, PublicKey, firewall::Firewall};

use super::{AppliedIntent, RecordedLink};

/// One step of a plan, applied in the order of the plan.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Step {
    /// To the local store.
    Record(RecordStep),
    /// To the host.
    Host(HostStep),
}

/// A write to the local store.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RecordStep {
    /// Writes the intent that is about to be applied.
    Intent(Box<AppliedIntent>),
    /// Writes a link: creates it, or changes what differs.
    Link(Box<RecordedLink>),
    /// Deletes the record of a link whose device entry is gone.
    ForgetLink(LinkId),
    /// Deletes the record of an intent whose links are gone.
    ForgetIntent(NetworkName),
}

/// A write to the host.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum HostStep {
    /// Replaces the packet filter table in one transaction.
    Firewall(Firewall),
    /// Makes a table's unreachable and throw routes and its rule for the host's own traffic as given.
    Table(TableConfig),
    /// Creates a device, or changes what differs of one that is there: key, port, address, MTU, up.
    Device(DeviceConfig),
    /// Leads what arrives on a device to a table.
    AddRule {
        /// The table.
        table: u32,
        /// The device.
        device: DeviceName,
    },
    /// Creates a peer, or changes what differs of one that is there; never another peer.
    Peer(PeerConfig),
    /// Lets a device that is ready listen at the port of the one whose place it takes. Its peers begin where those of the
    /// other are now.
    TakeOver {
        /// The device whose place is taken; it gets another port.
        from: DeviceName,
        /// The device that takes it.
        to: DeviceName,
        /// The port.
        port: u16,
    },
    /// Makes or moves a route.
    Route {
        /// The table.
        table: u32,
        /// Exact or wide.
        kind: RouteKind,
        /// The destination.
        prefix: IpNet,
        /// The device it leaves by.
        device: DeviceName,
        /// The preferred source address.
        source: Option<IpAddr>,
    },
    /// Removes a route.
    RemoveRoute {
        /// The table.
        table: u32,
        /// Exact or wide.
        kind: RouteKind,
        /// The destination.
        prefix: IpNet,
    },
    /// Removes a peer from a device.
    RemovePeer {
        /// The device.
        device: DeviceName,
        /// The peer.
        public_key: PublicKey,
    },
    /// Removes the rule of a device.
    RemoveRule {
        /// The table.
        table: u32,
        /// The device.
        device: DeviceName,
    },
    /// Removes a device.
    RemoveDevice(DeviceName),
    /// Removes a table: its routes and rules.
    RemoveTable(u32),
}

impl Step {
    /// Whether the step takes something away. After a failed step of a pass no such step is taken.
    pub fn is_destructive(&self) -> bool {
        match self {
            Step::Record(step) => match step {
                RecordStep::Intent(_) | RecordStep::Link(_) => false,
                RecordStep::ForgetLink(_) | RecordStep::ForgetIntent(_) => true,
            },
            Step::Host(step) => match step {
                HostStep::Firewall(_)
                | HostStep::Table(_)
                | HostStep::Device(_)
                | HostStep::AddRule { .. }
                | HostStep::Peer(_)
                | HostStep::TakeOver { .. }
                | HostStep::Route { .. } => false,
                HostStep::RemoveRoute { .. }
                | HostStep::RemovePeer { .. }
                | HostStep::RemoveRule { .. }
                | HostStep::RemoveDevice(_)
                | HostStep::RemoveTable(_) => true,
            },
        }
    }
}

/// The two kinds of routes over devices; an exact one wins over a wide one for the same prefix.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum RouteKind {
    /// For one peer's own prefixes.
    Exact,
    /// For the wide prefixes.
    Wide,
}

/// The fixed part of a routing table.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct TableConfig {
    /// Its number.
    pub table: u32,
    /// Position among the host's networks, from 0: orders the rules for the host's own traffic.
    pub order: u32,
    /// Prefixes that end unreachable.
    pub unreachable: Vec<IpNet>,
    /// Own prefixes, left to the host's other tables.
    pub throw: Vec<IpNet>,
}

/// A device as it should be.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct DeviceConfig {
    /// Its identity, written as ifalias.
    pub id: DeviceId,
    /// Its name.
    pub name: DeviceName,
    /// The UDP port on which it listens.
    pub port: u16,
    /// The tunnel address, set as /32 or /128.
    pub address: Option<IpAddr>,
    /// MTU in bytes.
    pub mtu: u32,
}

/// A peer as it should be.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct PeerConfig {
    /// The device.
    pub device: DeviceName,
    /// The peer's key.
    pub public_key: PublicKey,
    /// All its allowed IPs, sorted.
    pub allowed_ips: Vec<IpNet>,
    /// The endpoint to set; `None`: keep what is there.
    pub endpoint: Option<SocketAddr>,
    /// Persistent keepalive; zero: off.
    pub keepalive: Duration,
}
