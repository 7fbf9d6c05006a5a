//! Whether a state, or a plan on it, keeps what the product promises. It refuses to plan or to repair: it says what is
//! wrong, and who is concerned.
//!
//! [`state`] looks at what stands, [`plan`] at the order of steps. A state from which a plan starts may be bad (a link
//! broke, somebody deleted a route); a plan must lead out of it, and no step of it may make anything worse.

mod order;
mod standing;

use std::fmt;

use ipnet::IpNet;

use crate::{
    DeviceName, LinkId, NetworkName, PublicKey,
    worker::{Desired, Host, Recorded, RouteKind, Step},
};

/// A broken promise.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum Violation {
    /// A route leads over a link that is known to be down, while another that may carry it is connected.
    DeadRoute {
        /// Exact or wide.
        kind: RouteKind,
        /// The destination.
        prefix: IpNet,
        /// The link it leads over.
        over: LinkId,
        /// The link that could carry it.
        instead: LinkId,
    },
    /// Two peers of a device have the same prefix.
    SharedPrefix {
        /// The device.
        device: DeviceName,
        /// The prefix.
        prefix: IpNet,
        /// The two peers.
        keys: [PublicKey; 2],
    },
    /// A device has a peer, and something that keeps overlay traffic inside is missing.
    Uncovered {
        /// The device.
        device: DeviceName,
        /// What is missing.
        lacks: Cover,
    },
    /// A step takes something of a network away before a later one has added what is missing.
    RemoveBeforeAdd {
        /// Position of the removal.
        removal: usize,
        /// Position of the addition.
        addition: usize,
    },
    /// A step takes away a link that is wanted.
    WantedRemoved {
        /// Position of the step.
        step: usize,
        /// The link.
        link: LinkId,
    },
    /// A step stands before one that it depends on.
    OutOfOrder {
        /// Position of the step.
        step: usize,
        /// What should have been done before.
        needs: Need,
    },
    /// A step of one network touches something of another.
    Crossing {
        /// Position of the step.
        step: usize,
        /// The network of the step.
        network: NetworkName,
        /// The network whose part is touched.
        touches: NetworkName,
    },
}

/// What keeps overlay traffic of a device inside.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum Cover {
    /// The rule that leads what arrives on the device to the network's table.
    Rule,
    /// The rules that lead the host's own traffic to the table.
    HostRule,
    /// An unreachable route behind this prefix.
    Unreachable(IpNet),
    /// The packet filter, or the device's part of it.
    Firewall,
}

/// What a step depends on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Need {
    /// The intent's record is the first write of its network.
    IntentFirst,
    /// A new link is recorded before it is made.
    RecordBeforeLink,
    /// The device is made before it is used.
    Device,
    /// The table is made before it is used.
    Table,
    /// Rule, table and filter stand before the first peer.
    CoverBeforePeer,
    /// Routes leave a device before it goes.
    RoutesBeforeRemoval,
    /// A link leaves the host before its record goes.
    LinkBeforeRecord,
    /// All links of a network go before its intent's record.
    LinksBeforeIntent,
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Violation::DeadRoute { kind, prefix, over, instead } => {
                write!(f, "the {kind:?} route to {prefix} leads over {over}, which is down; {instead} works")
            }
            Violation::SharedPrefix { device, prefix, keys: [a, b] } => {
                write!(f, "{prefix} is on two peers of {device}: {a} and {b}")
            }
            Violation::Uncovered { device, lacks } => write!(f, "{device} has a peer and lacks {lacks:?}"),
            Violation::RemoveBeforeAdd { removal, addition } => {
                write!(f, "step {removal} removes before step {addition} adds")
            }
            Violation::WantedRemoved { step, link } => {
                write!(f, "step {step} removes {link}, which is wanted")
            }
            Violation::OutOfOrder { step, needs } => write!(f, "step {step} comes too early: {needs:?}"),
            Violation::Crossing { step, network, touches } => {
                write!(f, "step {step} of {network} touches {touches}")
            }
        }
    }
}

/// Everything that is wrong with what stands on a host, sorted.
pub fn state(desired: &Desired, recorded: &Recorded, host: &Host) -> Vec<Violation> {
    let mut found = standing::violations(desired, recorded, host);
    found.sort();
    found
}

/// Everything that is wrong with the order of `steps`, planned for this state; sorted.
pub fn plan(desired: &Desired, recorded: &Recorded, host: &Host, steps: &[Step]) -> Vec<Violation> {
    let mut found = order::violations(desired, recorded, host, steps);
    found.sort();
    found
}
