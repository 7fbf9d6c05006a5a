//! What runs: networks, hubs, gateways, links with both ends joined. It refuses to add a verdict to the controller's.

use serde::Serialize;
use spanwire_engine::{
    Condition, GatewayName, NetworkName,
    port::{ControlView, NetworkView},
    status::ConditionStatus,
};

pub use crate::links::{End, Link, LinkName, Refused};
use crate::{Error, links};

/// Everything in a control store.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Report {
    /// Networks, by name.
    pub networks: Vec<Network>,
    /// Objects that are there and cannot be read: unknown, not absent.
    pub unreadable: Vec<Unreadable>,
}

/// One network.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Network {
    /// Its name.
    pub name: String,
    /// As declared.
    pub topology: String,
    /// `Valid`, or `Invalid: ` and why; empty: no verdict yet.
    pub state: String,
    /// Whether the controller has seen the declaration as it stands.
    pub observed: bool,
    /// First of the published hubs.
    pub active_hub: Option<String>,
    /// The other published hubs, in order.
    pub standby_hubs: Vec<String>,
    /// The change that is running.
    pub change: Option<Change>,
    /// Links: that should be there, connected at both ends, reported not connected.
    pub edges: Edges,
    /// Conditions of the controller.
    pub conditions: Vec<ConditionLine>,
    /// Members, then leavers.
    pub gateways: Vec<Gateway>,
    /// Links, both ends joined.
    pub links: Vec<Link>,
    /// Peers that could not become a link.
    pub refused: Vec<Refused>,
}

/// A running change.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Change {
    /// Adding, Switching, Demoting or Removing.
    pub phase: &'static str,
    /// Hubs, or `mesh`, before.
    pub from: Vec<String>,
    /// Hubs, or `mesh`, after.
    pub to: Vec<String>,
    /// When the phase began.
    pub started_at: String,
}

/// Counts of links.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Edges {
    /// That should be there.
    pub desired: u32,
    /// Connected at both ends.
    pub ready: u32,
    /// Reported not connected.
    pub failing: u32,
}

/// A condition.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ConditionLine {
    /// Its name.
    #[serde(rename = "type")]
    pub kind: String,
    /// True, False or Unknown.
    pub status: &'static str,
    /// In one word.
    pub reason: String,
    /// In words.
    pub message: String,
}

/// A member of a network.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Gateway {
    /// Its name.
    pub name: String,
    /// The role that its worker has applied; absent: none yet.
    pub role: Option<&'static str>,
    /// Its address in the network.
    pub tunnel_address: Option<String>,
    /// The host that others dial.
    pub endpoint: Option<String>,
    /// kernel or userspace.
    pub backend: Option<String>,
    /// Whether its worker has confirmed the intent that stands.
    pub confirmed: bool,
    /// Why it is left out, or what is wrong with it.
    pub note: Option<String>,
}

/// An object that cannot be read.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Unreadable {
    /// Kind in the plural.
    pub kind: String,
    /// Its name.
    pub name: String,
    /// Path, place and what is wrong.
    pub cause: String,
}

/// Reports on a store.
pub fn report(view: &ControlView) -> Report {
    let unreadable = view.unreadable.iter().cloned();
    Report {
        networks: view.networks.iter().map(|(name, network)| self::network(view, name, network)).collect(),
        unreadable: unreadable
            .map(|spanwire_engine::Unreadable { kind, name, cause }| Unreadable { kind, name, cause })
            .collect(),
    }
}

impl Report {
    /// The report on one network.
    ///
    /// # Errors
    /// [`Error::NoNetwork`] names the networks that there are.
    pub fn only(self, name: &str) -> Result<Self, Error> {
        let names: Vec<String> = self.networks.iter().map(|network| network.name.clone()).collect();
        let networks: Vec<Network> =
            self.networks.into_iter().filter(|network| network.name == name).collect();
        let is_unreadable = self.unreadable.iter().any(|object| object.name == name);
        if networks.is_empty() && !is_unreadable {
            return Err(Error::NoNetwork(name.to_owned(), names.join(", ")));
        }
        Ok(Self { networks, unreadable: self.unreadable })
    }

    /// Whether everything can be read and every network says that it is ready.
    pub fn is_ready(&self) -> bool {
        let ready = |network: &Network| {
            network.observed
                && network.conditions.iter().any(|line| line.kind == "Ready" && line.status == "True")
        };
        self.unreadable.is_empty() && self.networks.iter().all(ready)
    }
}

fn network(view: &ControlView, name: &NetworkName, network: &NetworkView) -> Network {
    let NetworkView { meta, spec, status } = network;
    let published = status.published.as_ref().map(|published| published.hubs.clone()).unwrap_or_default();
    let hub = status.active_hub.clone();
    let standby = published.iter().filter(|other| Some(*other) != hub.as_ref());
    let (links, refused) = links::joined(view, name);
    let edges = status.edges;
    Network {
        name: name.to_string(),
        topology: spec.topology.clone(),
        state: status.state.clone(),
        observed: status.observed_generation == meta.generation && status.observed_generation > 0,
        active_hub: hub.as_ref().map(ToString::to_string),
        standby_hubs: standby.map(ToString::to_string).collect(),
        change: status.change.as_ref().map(change),
        edges: Edges { desired: edges.desired, ready: edges.ready, failing: edges.failing },
        conditions: status.conditions.iter().map(condition).collect(),
        gateways: status.members.iter().map(|member| gateway(view, name, member)).collect(),
        links,
        refused,
    }
}

fn change(change: &spanwire_engine::Change) -> Change {
    let hubs = |published: &spanwire_engine::Published| match published.hubs.as_slice() {
        [] => vec![published.topology.to_string()],
        hubs => hubs.iter().map(ToString::to_string).collect(),
    };
    Change {
        phase: change.phase.as_str(),
        from: hubs(&change.from),
        to: hubs(&change.to),
        started_at: change.started_at.clone(),
    }
}

fn condition(condition: &Condition) -> ConditionLine {
    let status = match condition.status {
        ConditionStatus::True => "True",
        ConditionStatus::False => "False",
        ConditionStatus::Unknown => "Unknown",
    };
    let Condition { kind, reason, message, .. } = condition.clone();
    ConditionLine { kind, status, reason, message }
}

fn gateway(view: &ControlView, network: &NetworkName, member: &spanwire_engine::MemberStatus) -> Gateway {
    let name: &GatewayName = &member.gateway;
    let facts = view.gateways.get(name);
    let standing = view.intents.get(&(network.clone(), name.clone()));
    let confirmed = standing.is_some_and(|standing| {
        standing.meta.generation > 0 && standing.status.observed_generation == standing.meta.generation
    });
    let note = member.reason.as_ref().map(|(reason, message)| format!("{reason}: {message}"));
    let state = match (member.accepted, member.leaving, member.joining) {
        (_, true, _) => Some("leaving"),
        (false, false, _) => Some("left out"),
        (true, false, true) => Some("joining"),
        (true, false, false) => None,
    };
    Gateway {
        name: name.to_string(),
        role: standing.and_then(|standing| standing.status.role).map(spanwire_engine::Role::as_str),
        tunnel_address: member.tunnel_address.map(|address| address.to_string()),
        endpoint: facts.and_then(|gateway| gateway.host()).map(str::to_owned),
        backend: facts.and_then(|gateway| gateway.facts.backend.clone()),
        confirmed,
        note: match (state, note) {
            (Some(state), Some(note)) => Some(format!("{state}: {note}")),
            (Some(state), None) => Some(state.to_owned()),
            (None, note) => note,
        },
    }
}
