//! The links of a network, both ends joined, from what the workers say and what their intents ask for. It refuses to
//! call a link connected that one end alone calls so.

use std::collections::BTreeMap;

use serde::Serialize;
use spanwire_engine::{
    GatewayName, LinkRole, LinkState, NetworkName, PeerStatus,
    port::{ControlView, WorkerView},
    worker::{Host, Recorded},
};

use crate::imagine;

/// A link: two gateways and the role of the first. The first dials, or comes first by name where both do.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct LinkName {
    /// One end.
    pub from: String,
    /// The other end.
    pub to: String,
    /// The role of the first end: uplink, trunk or mesh.
    pub role: &'static str,
}

/// A link with what both ends say.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Link {
    /// Which link.
    #[serde(flatten)]
    pub name: LinkName,
    /// Connected, OneWay, NotConnected or Pending.
    pub state: &'static str,
    /// What the first end says; absent: nothing (yet).
    pub from_end: Option<End>,
    /// What the other end says.
    pub to_end: Option<End>,
}

/// What one end says.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct End {
    /// Connected, NotConnected or Pending.
    pub state: &'static str,
    /// Active, Standby or None.
    pub route: &'static str,
    /// Why, in one word.
    pub reason: &'static str,
    /// Why, in words.
    pub message: String,
    /// Since when.
    pub last_transition_time: String,
}

/// A peer that could not become a link.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Refused {
    /// The gateway whose intent names it.
    pub gateway: String,
    /// The peer as it is named.
    pub peer: String,
    /// Why, in one word.
    pub reason: &'static str,
    /// Why, in words.
    pub message: String,
}

/// All links of a network, and the peers that did not become one.
pub(crate) fn joined(view: &ControlView, network: &NetworkName) -> (Vec<Link>, Vec<Refused>) {
    let mut links: BTreeMap<LinkName, [Option<End>; 2]> = BTreeMap::new();
    let mut refused = Vec::new();
    let mut seen = imagine::seen_by_all(view);
    for ((_, me), standing) in view.intents.iter().filter(|((name, _), _)| name == network) {
        imagine::seen_by(me, view, &mut seen);
        for (peer, role) in wanted(&seen, network, me) {
            links.entry(name(me.as_str(), peer.as_str(), role).0).or_default();
        }
        for row in &standing.status.peers {
            match row.role {
                Some(role) => {
                    let (name, end) = name(me.as_str(), &row.peer, role);
                    links.entry(name).or_default()[end] = Some(said(row));
                }
                None => refused.push(Refused {
                    gateway: me.to_string(),
                    peer: row.peer.clone(),
                    reason: row.reason.as_str(),
                    message: row.message.clone(),
                }),
            }
        }
    }
    let link = |(name, [from_end, to_end]): (LinkName, [Option<End>; 2])| Link {
        name,
        state: state(&from_end, &to_end),
        from_end,
        to_end,
    };
    (links.into_iter().map(link).collect(), refused)
}

/// The links that the standing intent of a gateway asks for.
fn wanted(seen: &WorkerView, network: &NetworkName, me: &GatewayName) -> Vec<(GatewayName, LinkRole)> {
    let own = seen.gateways.get(me);
    let key = imagine::key_of(me, own.and_then(|own| own.facts.public_key.as_deref()));
    let desired = imagine::desire(me, key, seen, &Recorded::default(), &Host::default());
    let Some(desired) = desired.networks.get(network) else { return Vec::new() };
    desired.links.keys().chain(&desired.waiting).cloned().collect()
}

/// The link that an end belongs to, and which of its two ends that is.
fn name(me: &str, peer: &str, role: LinkRole) -> (LinkName, usize) {
    let me_first = match role {
        LinkRole::Uplink => true,
        LinkRole::Downlink => false,
        LinkRole::Trunk | LinkRole::Mesh => me < peer,
    };
    let (from, to, role, end) = if me_first { (me, peer, role, 0) } else { (peer, me, role.other_end(), 1) };
    (LinkName { from: from.to_owned(), to: to.to_owned(), role: role.as_str() }, end)
}

fn said(row: &PeerStatus) -> End {
    End {
        state: row.state.as_str(),
        route: row.route.as_str(),
        reason: row.reason.as_str(),
        message: row.message.clone(),
        last_transition_time: row.last_transition.clone(),
    }
}

fn state(from: &Option<End>, to: &Option<End>) -> &'static str {
    let is =
        |end: &Option<End>, state: LinkState| end.as_ref().is_some_and(|end| end.state == state.as_str());
    let connected = (is(from, LinkState::Connected), is(to, LinkState::Connected));
    let failing = is(from, LinkState::NotConnected) || is(to, LinkState::NotConnected);
    match connected {
        (true, true) => LinkState::Connected.as_str(),
        (true, false) | (false, true) => "OneWay",
        (false, false) if failing => LinkState::NotConnected.as_str(),
        (false, false) => LinkState::Pending.as_str(),
    }
}
