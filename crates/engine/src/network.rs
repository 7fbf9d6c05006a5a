//! A declared network and the state of its change. It refuses to decide: `controller` does.

use std::net::IpAddr;

use crate::{BootTime, Condition, GatewayName, HubChange, Topology, Transit, Tunnel, Uid};

/// `GatewayNetwork.spec`. Names and prefixes stay text where a fault must become a verdict instead of a failed read.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct NetworkSpec {
    /// As written; judged by the reconciler.
    pub topology: String,
    /// The active hub.
    pub hub: Option<String>,
    /// Hubs that are kept connected.
    pub standby_hubs: Vec<String>,
    /// All members, in order.
    pub members: Vec<String>,
    /// Tunnel addresses are taken from it.
    pub cidr: String,
    /// Whether spokes reach each other.
    pub transit: Transit,
    /// Time-outs of make-before-break.
    pub hub_change: HubChange,
    /// Settings of the devices.
    pub tunnel: Tunnel,
}

/// `GatewayNetwork.status`: the whole memory of the controller.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
pub struct NetworkStatus {
    /// Generation that this status speaks of.
    pub observed_generation: i64,
    /// `Valid` or `Invalid: <reason>`; empty: no verdict yet.
    pub state: String,
    /// First of the published hubs.
    pub active_hub: Option<GatewayName>,
    /// What the last finished change left; `None`: nothing yet.
    pub published: Option<Published>,
    /// The change that is running.
    pub change: Option<Change>,
    /// Counts of directed links, both ends joined.
    pub edges: Edges,
    /// One entry a member, in member order, then leavers whose address is still reserved.
    pub members: Vec<MemberStatus>,
    /// `Valid`, `TopologyConverged`, `Ready`.
    pub conditions: Vec<Condition>,
}

/// A topology with its hubs.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Published {
    /// The topology.
    pub topology: Topology,
    /// Hubs, the active one first; empty for a mesh.
    pub hubs: Vec<GatewayName>,
}

/// A change between two published states.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Change {
    /// What was published when it began.
    pub from: Published,
    /// What it ends with.
    pub to: Published,
    /// Where it is.
    pub phase: Phase,
    /// When the phase began, for people: RFC 3339.
    pub started_at: String,
    /// When the phase began, for its age.
    pub started: BootTime,
}

/// The four phases of a change (design §5). One that changes nothing is skipped.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Phase {
    /// Links to what is new, beside the old ones.
    Adding,
    /// Traffic moves to what is new.
    Switching,
    /// Old hubs send through the new one and still accept.
    Demoting,
    /// Old links go.
    Removing,
}

impl Phase {
    /// All phases, in order.
    pub const ALL: [Phase; 4] = [Phase::Adding, Phase::Switching, Phase::Demoting, Phase::Removing];

    /// The word used in objects.
    pub fn as_str(self) -> &'static str {
        match self {
            Phase::Adding => "Adding",
            Phase::Switching => "Switching",
            Phase::Demoting => "Demoting",
            Phase::Removing => "Removing",
        }
    }
}

/// `status.edges`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Edges {
    /// Links that should be there, each counted once for its two ends.
    pub desired: u32,
    /// Connected at both ends.
    pub ready: u32,
    /// The rest of the desired ones that a worker has reported not connected.
    pub failing: u32,
}

/// `status.members[]`.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct MemberStatus {
    /// The gateway.
    pub gateway: GatewayName,
    /// Its address in the network; reserved as long as the entry stands.
    pub tunnel_address: Option<IpAddr>,
    /// Whether it takes part.
    pub accepted: bool,
    /// Not yet reported its routes since it joined.
    pub joining: bool,
    /// No longer in `members`; its links are being removed.
    pub leaving: bool,
    /// When it began to leave, for the deadline of its teardown.
    pub leaving_since: Option<BootTime>,
    /// UID of its Gateway at acceptance.
    pub uid: Uid,
    /// Why it is left out, or what is wrong with it: reason and message.
    pub reason: Option<(String, String)>,
}
