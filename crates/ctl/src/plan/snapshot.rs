//! What stands in one network at one moment, and what differs between two moments. It refuses to look at intents: what
//! the workers report is what counts.

use std::collections::{BTreeMap, BTreeSet};

use serde::Serialize;
use spanwire_engine::{LinkRole, NetworkName, RouteState, port::ControlView};

use super::paths::{self, Pair};
use crate::links::{self, LinkName};

/// One moment.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Snapshot {
    /// Links of which at least one end is reported.
    pub(super) links: BTreeSet<LinkName>,
    /// By gateway and destination (`None`: everything without a route of its own): next gateway and role of the link.
    routes: BTreeMap<(String, Option<String>), (String, LinkRole)>,
    roles: BTreeMap<String, &'static str>,
    /// Pairs between which packets arrive.
    pub(super) paths: BTreeSet<Pair>,
}

/// A link that is made or removed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct LinkChange {
    /// `made` or `removed`.
    pub change: &'static str,
    /// Which link.
    #[serde(flatten)]
    pub link: LinkName,
}

/// A route that moves, comes or goes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct RouteChange {
    /// The gateway whose route it is.
    pub gateway: String,
    /// The gateway behind which the destination lies; absent: everything that has no route of its own.
    pub to: Option<String>,
    /// Where it went: next gateway and role of the link; absent: nowhere.
    pub before: Option<Via>,
    /// Where it goes.
    pub after: Option<Via>,
}

/// A next hop.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Via {
    /// The next gateway.
    pub peer: String,
    /// The role of the link.
    pub role: &'static str,
}

/// A gateway that changes its role.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct RoleChange {
    /// The gateway.
    pub gateway: String,
    /// Before; absent: none.
    pub before: Option<&'static str>,
    /// After; absent: none.
    pub after: Option<&'static str>,
}

impl Snapshot {
    /// What the workers of a network report.
    pub(super) fn of(view: &ControlView, network: &NetworkName) -> Self {
        let (all, _) = links::joined(view, network);
        let reported = all.into_iter().filter(|link| link.from_end.is_some() || link.to_end.is_some());
        let mut snapshot = Self {
            links: reported.map(|link| link.name).collect(),
            paths: paths::pairs(view, network),
            ..Self::default()
        };
        for ((_, me), standing) in view.intents.iter().filter(|((name, _), _)| name == network) {
            if let Some(role) = standing.status.role {
                snapshot.roles.insert(me.to_string(), role.as_str());
            }
            for row in standing.status.peers.iter().filter(|row| row.route == RouteState::Active) {
                let Some(role) = row.role else { continue };
                let to = (!paths::is_wide(role)).then(|| row.peer.clone());
                snapshot.routes.insert((me.to_string(), to), (row.peer.clone(), role));
            }
        }
        snapshot
    }
}

/// Links that were made, then links that were removed.
pub(super) fn link_changes(before: &Snapshot, after: &Snapshot) -> Vec<LinkChange> {
    let made = after.links.difference(&before.links).map(|link| ("made", link));
    let removed = before.links.difference(&after.links).map(|link| ("removed", link));
    made.chain(removed).map(|(change, link)| LinkChange { change, link: link.clone() }).collect()
}

/// Routes that differ.
pub(super) fn route_changes(before: &Snapshot, after: &Snapshot) -> Vec<RouteChange> {
    let keys: BTreeSet<_> = before.routes.keys().chain(after.routes.keys()).collect();
    let via = |snapshot: &Snapshot, key| {
        let (peer, role): &(String, LinkRole) = snapshot.routes.get(key)?;
        Some(Via { peer: peer.clone(), role: role.as_str() })
    };
    keys.into_iter()
        .map(|key| RouteChange {
            gateway: key.0.clone(),
            to: key.1.clone(),
            before: via(before, key),
            after: via(after, key),
        })
        .filter(|change| change.before != change.after)
        .collect()
}

/// Roles that differ.
pub(super) fn role_changes(before: &Snapshot, after: &Snapshot) -> Vec<RoleChange> {
    let names: BTreeSet<&String> = before.roles.keys().chain(after.roles.keys()).collect();
    names
        .into_iter()
        .map(|name| RoleChange {
            gateway: name.clone(),
            before: before.roles.get(name).copied(),
            after: after.roles.get(name).copied(),
        })
        .filter(|change| change.before != change.after)
        .collect()
}
