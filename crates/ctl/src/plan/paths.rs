//! Between which gateways packets arrive, walked hop by hop over the routes that the workers report and the horizon of
//! design §5. It refuses to take a route for a path: the other end has to accept and pass on.

use std::collections::{BTreeMap, BTreeSet};

use serde::Serialize;
use spanwire_engine::{
    GatewayName, Intent, LinkRole, LinkState, NetworkName, PeerStatus, RouteState, Transit, port::ControlView,
};

/// An ordered pair of gateways.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct Pair {
    /// Who sends.
    pub from: String,
    /// Who receives.
    pub to: String,
}

/// More hops than any path has: spoke, hub, hub, spoke.
const MOST_HOPS: usize = 5;

/// Whether links of that role carry everything that has no route of its own.
pub(super) fn is_wide(role: LinkRole) -> bool {
    match role {
        LinkRole::Uplink | LinkRole::Trunk => true,
        LinkRole::Downlink | LinkRole::Mesh => false,
    }
}

/// All pairs between which packets arrive.
pub(super) fn pairs(view: &ControlView, network: &NetworkName) -> BTreeSet<Pair> {
    let standing = view.intents.iter().filter(|((name, _), _)| name == network);
    let map = Map {
        hosts: standing
            .map(|((_, me), standing)| (me, (&standing.intent, standing.status.peers.as_slice())))
            .collect(),
    };
    let all = map.hosts.keys().flat_map(|from| map.hosts.keys().map(move |to| (*from, *to)));
    all.filter(|(from, to)| from != to && map.delivers(from, to))
        .map(|(from, to)| Pair { from: from.to_string(), to: to.to_string() })
        .collect()
}

struct Map<'a> {
    hosts: BTreeMap<&'a GatewayName, (&'a Intent, &'a [PeerStatus])>,
}

impl<'a> Map<'a> {
    fn delivers(&self, from: &GatewayName, to: &GatewayName) -> bool {
        let (mut at, mut arrived) = (from, None);
        for _ in 0..MOST_HOPS {
            let Some((next, role)) = self.next(at, to) else { return false };
            if !self.passes(at, arrived, role, from, to) || !self.accepts(next, role.other_end(), at, from) {
                return false;
            }
            if next == to {
                return true;
            }
            (at, arrived) = (next, Some(role.other_end()));
        }
        false
    }

    /// Where a packet leaves: by the exact route, else by the wide one.
    fn next(&self, at: &GatewayName, to: &GatewayName) -> Option<(&'a GatewayName, LinkRole)> {
        let (_, rows) = self.hosts.get(at)?;
        let active = rows.iter().filter(|row| row.route == RouteState::Active);
        let active = active.filter_map(|row| row.role.map(|role| (row.peer.as_str(), role)));
        let exact = active.clone().find(|(peer, role)| !is_wide(*role) && *peer == to.as_str());
        let (peer, role) = exact.or_else(|| active.clone().find(|(_, role)| is_wide(*role)))?;
        let (name, _) = self.hosts.get_key_value(&peer.parse::<GatewayName>().ok()?)?;
        Some((*name, role))
    }

    /// Whether a host passes on what arrived on one link by another.
    fn passes(
        &self,
        at: &GatewayName,
        arrived: Option<LinkRole>,
        leaves: LinkRole,
        from: &GatewayName,
        to: &GatewayName,
    ) -> bool {
        match arrived {
            None => true,
            Some(LinkRole::Uplink | LinkRole::Mesh) => false,
            Some(LinkRole::Trunk) => leaves == LinkRole::Downlink,
            Some(LinkRole::Downlink) => self.hosts.get(at).is_some_and(|(intent, _)| {
                intent.transit == Transit::Routed || intent.hubs.contains(from) || intent.hubs.contains(to)
            }),
        }
    }

    /// Whether a host takes a packet of `from` from its neighbour: narrow links take the neighbour's own alone.
    fn accepts(&self, at: &GatewayName, role: LinkRole, neighbour: &GatewayName, from: &GatewayName) -> bool {
        let Some((_, rows)) = self.hosts.get(at) else { return false };
        let link = rows.iter().find(|row| row.is_link(neighbour, role));
        link.is_some_and(|row| row.state == LinkState::Connected) && (is_wide(role) || neighbour == from)
    }
}
