//! Which link carries what (design §5 rule 3). It refuses to leave a working link for one that is not known to work,
//! and to take a route away where nothing better stands.

use std::collections::{BTreeMap, BTreeSet};

use crate::{DeviceName, GatewayName, LinkRole, Role};

use super::{
    Evidence, ObservedTable, RouteKind,
    links::{Key, Links, Row},
};

/// The routes of one network as they should be after this pass.
pub(super) struct Routes {
    /// The link of the wide route.
    pub(super) wide: Option<Key>,
    /// The link of each peer's exact routes.
    pub(super) exact: BTreeMap<GatewayName, Key>,
}

/// The link that has the wide route now. Where it stands half on one link and half on another (a kill in the middle)
/// it belongs to the first of them.
pub(super) fn wide_holder(links: &Links<'_>, table: Option<&ObservedTable>) -> Option<Key> {
    let wide = table?.routes.iter().filter(|((kind, _), _)| *kind == RouteKind::Wide);
    let devices: BTreeSet<&DeviceName> = wide.map(|(_, route)| &route.device).collect();
    let holds = |row: &Row<'_>| {
        row.device.and_then(|device| device.name.as_ref()).is_some_and(|name| devices.contains(name))
    };
    let mut rows = links.rows.iter().filter(|((_, role), _)| !role.shares_device());
    rows.find(|(_, row)| holds(row)).map(|(key, _)| key.clone())
}

/// Decides the routes.
pub(super) fn decide(links: &Links<'_>, holder: Option<&Key>) -> Routes {
    let wide = if links.desired.wide.is_empty() { None } else { wide(links, holder) };
    let wide_works = wide.as_ref().and_then(|key| links.row(key)).is_some_and(Row::is_connected);
    let peers: BTreeSet<&GatewayName> = links.rows.keys().map(|(peer, _)| peer).collect();
    let exact =
        peers.into_iter().filter_map(|peer| exact(links, wide_works, peer).map(|key| (peer.clone(), key)));
    Routes { exact: exact.collect(), wide }
}

fn wide(links: &Links<'_>, holder: Option<&Key>) -> Option<Key> {
    let stays = |key: &&Key| links.row(key).is_some_and(|row| row.is_wanted() || !links.is_due(key.1, row));
    let holder = holder.filter(stays);
    match links.desired.role() {
        Role::Spoke => spoke_wide(links, holder),
        Role::Hub => hub_wide(links, holder),
    }
}

/// The links of `role` that are wanted and can be made, in peer order.
fn candidates(links: &Links<'_>, role: LinkRole) -> Vec<Key> {
    let keys = links.desired.order.iter().map(|peer| (peer.clone(), role));
    keys.filter(|key| links.row(key).is_some_and(|row| row.wanted.is_some())).collect()
}

fn is_connected(links: &Links<'_>, key: &Key) -> bool {
    links.row(key).is_some_and(Row::is_connected)
}

/// The first wanted, connected uplink; else who has it; else the first wanted uplink; else nobody. The way back to an
/// uplink that was lost waits until it has settled, as long as the wanted one that has it works. A restart is no reason
/// to move: evidence comes back link by link, and a later uplink's may be there first.
fn spoke_wide(links: &Links<'_>, holder: Option<&Key>) -> Option<Key> {
    let uplinks = candidates(links, LinkRole::Uplink);
    let holder_works = holder
        .and_then(|key| links.row(key))
        .is_some_and(|row| row.is_wanted() && (row.is_connected() || row.is_trusted()));
    let takes = |key: &&Key| match links.row(key).and_then(|row| row.evidence) {
        Some(Evidence::Connected { settled }) => settled || !holder_works || Some(*key) == holder,
        Some(Evidence::NotConnected { .. }) => false,
        None => holder_works && Some(*key) == holder,
    };
    uplinks.iter().find(takes).or(holder).or(uplinks.first()).cloned()
}

/// The first hub sends what it has no exact route for over a trunk or nowhere; any other hub towards the first one.
fn hub_wide(links: &Links<'_>, holder: Option<&Key>) -> Option<Key> {
    let trunks = candidates(links, LinkRole::Trunk);
    let keeps = |key: &Key| Some(key) == holder && links.row(key).is_some_and(Row::is_trusted);
    let connected = || trunks.iter().find(|key| is_connected(links, key) || keeps(key)).cloned();
    let hubs =
        links.desired.applied.as_ref().map(|applied| applied.intent.hubs.as_slice()).unwrap_or_default();
    let first = hubs.first()?;
    if first == links.me {
        return connected();
    }
    let to_first = (first.clone(), LinkRole::Trunk);
    if trunks.contains(&to_first) && is_connected(links, &to_first) {
        return Some(to_first);
    }
    if links.row(&to_first).is_some_and(Row::is_lost) {
        return connected().or_else(|| holder.cloned());
    }
    holder.cloned()
}

/// The link that carries a peer's exact routes.
fn exact(links: &Links<'_>, wide_works: bool, peer: &GatewayName) -> Option<Key> {
    let role = links.desired.role();
    let mesh_first = links.desired.mesh_routes();
    // What a hub forwards has a source that the other end accepts on its uplink and not on a mesh link.
    let order = match role {
        Role::Hub => [LinkRole::Downlink, LinkRole::Mesh, LinkRole::Uplink],
        Role::Spoke => [LinkRole::Mesh, LinkRole::Downlink, LinkRole::Uplink],
    };
    let keys = order.into_iter().map(|role| (peer.clone(), role));
    let rows = keys.filter_map(|key| links.row(&key).map(|row| (key, row)));
    let candidates: Vec<(Key, &Row<'_>)> =
        rows.filter(|((_, role), row)| row.is_wanted() || !links.is_due(*role, row)).collect();
    let may_start = |link: LinkRole, row: &Row<'_>| match link {
        LinkRole::Mesh => mesh_first && row.is_wanted(),
        LinkRole::Downlink => role == Role::Hub,
        LinkRole::Uplink => links.desired.wide.is_empty(),
        LinkRole::Trunk => false,
    };
    // A spoke whose wide route works needs no exact route, but those of mesh links in a mesh.
    let may_stay = |link: LinkRole, row: &Row<'_>| match (role, link) {
        (Role::Spoke, LinkRole::Downlink | LinkRole::Mesh) => may_start(link, row) || !wide_works,
        (Role::Hub, LinkRole::Downlink | LinkRole::Mesh) => true,
        (Role::Spoke | Role::Hub, LinkRole::Uplink | LinkRole::Trunk) => may_start(link, row),
    };
    let stands = |((_, link), row): &&(Key, &Row<'_>)| row.exact_stands && may_stay(*link, row);
    let works = |entry: &&(Key, &Row<'_>)| {
        let ((_, link), row) = entry;
        (row.is_connected() && may_start(*link, row))
            || ((row.is_connected() || row.is_trusted()) && stands(entry))
    };
    let found = candidates
        .iter()
        .find(works)
        .or_else(|| candidates.iter().find(|entry| stands(entry) && !entry.1.is_down()))
        .or_else(|| candidates.iter().find(|entry| stands(entry) && !wide_works));
    found.map(|(key, _)| key.clone())
}
