//! Which link carries what (design §5 rule 3). It refuses to leave a working link for one that is not known to work,
//! and to take a route away where nothing better stands.

use std::collections::BTreeSet;

use crate::{DeviceName, LinkRole, Role};

use super::{
    Evidence, ObservedTable, RouteKind,
    links::{Key, Links, Row},
};

/// The routes of one network as they should be after this pass.
pub(super) struct Routes<'a> {
    /// The link of the wide route.
    pub(super) wide: Option<Key<'a>>,
    /// Of each row whether it carries the exact routes of its peer.
    pub(super) exact: Vec<bool>,
}

/// The link that has the wide route now. Where it stands half on one link and half on another (a kill in the middle)
/// it belongs to the first of them.
pub(super) fn wide_holder<'a>(links: &Links<'a>, table: Option<&ObservedTable>) -> Option<Key<'a>> {
    // Wide routes are the last ones.
    let wide = table?.routes.iter().rev().take_while(|((kind, _), _)| *kind == RouteKind::Wide);
    let devices: BTreeSet<&DeviceName> = wide.map(|(_, route)| &route.device).collect();
    if devices.is_empty() {
        return None;
    }
    let holds = |row: &Row<'a>| devices.iter().any(|device| links.is_carried_by(row, device));
    let mut rows = links.rows.iter().filter(|row| !row.role().shares_device());
    rows.find(|row| holds(row)).map(|row| row.key)
}

/// Decides the routes.
pub(super) fn decide<'a>(links: &Links<'a>, holder: Option<Key<'a>>) -> Routes<'a> {
    let wide = if links.desired.wide.is_empty() { None } else { wide(links, holder) };
    let wide_works = wide.and_then(|key| links.row(key)).is_some_and(Row::is_connected);
    let peers = links.rows.chunk_by(|a, b| a.key.0 == b.key.0);
    let mut carry = Vec::with_capacity(links.rows.len());
    for rows in peers {
        let carrier = exact(links, wide_works, rows);
        carry.extend(rows.iter().map(|row| Some(row.role()) == carrier));
    }
    Routes { exact: carry, wide }
}

fn wide<'a>(links: &Links<'a>, holder: Option<Key<'a>>) -> Option<Key<'a>> {
    let stays = |key: &Key<'a>| links.row(*key).is_some_and(|row| row.is_wanted() || !links.is_due(row));
    let holder = holder.filter(stays);
    match links.desired.role() {
        Role::Spoke => spoke_wide(links, holder),
        Role::Hub => hub_wide(links, holder),
    }
}

/// The links of `role` that are wanted and can be made, in peer order.
fn candidates<'a>(links: &Links<'a>, role: LinkRole) -> Vec<Key<'a>> {
    let rows = links.rows.iter().filter(|row| row.role() == role && row.wanted.is_some());
    let order = &links.desired.order;
    // Only hubs have such links: they are few, and the peers may be many.
    let mut found: Vec<_> =
        rows.filter_map(|row| Some((order.iter().position(|peer| peer == row.key.0)?, row.key))).collect();
    found.sort_unstable();
    found.into_iter().map(|(_, key)| key).collect()
}

fn is_connected(links: &Links<'_>, key: Key<'_>) -> bool {
    links.row(key).is_some_and(Row::is_connected)
}

/// The first wanted, connected uplink; else who has it; else the first wanted uplink; else nobody. The way back to an
/// uplink that was lost waits until it has settled, as long as the wanted one that has it works. A restart is no reason
/// to move: evidence comes back link by link, and a later uplink's may be there first.
fn spoke_wide<'a>(links: &Links<'a>, holder: Option<Key<'a>>) -> Option<Key<'a>> {
    let uplinks = candidates(links, LinkRole::Uplink);
    let holder_works = holder
        .and_then(|key| links.row(key))
        .is_some_and(|row| row.is_wanted() && (row.is_connected() || row.is_trusted()));
    let takes = |key: &Key<'a>| match links.row(*key).and_then(|row| row.evidence) {
        Some(Evidence::Connected { settled }) => settled || !holder_works || Some(*key) == holder,
        Some(Evidence::Receiving) => true,
        Some(Evidence::NotConnected { .. }) => false,
        None => holder_works && Some(*key) == holder,
    };
    uplinks.iter().copied().find(takes).or(holder).or(uplinks.first().copied())
}

/// The first hub sends what it has no exact route for over a trunk or nowhere; any other hub towards the first one.
fn hub_wide<'a>(links: &Links<'a>, holder: Option<Key<'a>>) -> Option<Key<'a>> {
    let trunks = candidates(links, LinkRole::Trunk);
    let keeps = |key: Key<'a>| Some(key) == holder && links.row(key).is_some_and(Row::is_trusted);
    let connected = || trunks.iter().copied().find(|key| is_connected(links, *key) || keeps(*key));
    let hubs =
        links.desired.applied.as_ref().map(|applied| applied.intent.hubs.as_slice()).unwrap_or_default();
    let first = hubs.first()?;
    if first == links.me {
        return connected();
    }
    let to_first = (first, LinkRole::Trunk);
    if trunks.contains(&to_first) && is_connected(links, to_first) {
        return Some(to_first);
    }
    if links.row(to_first).is_some_and(Row::is_lost) {
        return connected().or(holder);
    }
    holder
}

/// Which of a peer's links carries its exact routes.
fn exact<'a>(links: &Links<'a>, wide_works: bool, rows: &[Row<'a>]) -> Option<LinkRole> {
    let role = links.desired.role();
    let mesh_first = links.desired.mesh_routes();
    // What a hub forwards has a source that the other end accepts on its uplink and not on a mesh link.
    let order = match role {
        Role::Hub => [LinkRole::Downlink, LinkRole::Mesh, LinkRole::Uplink],
        Role::Spoke => [LinkRole::Mesh, LinkRole::Downlink, LinkRole::Uplink],
    };
    let takes_part = |row: &&Row<'a>| row.is_wanted() || !links.is_due(row);
    let candidates = order.map(|role| rows.iter().find(|row| row.role() == role).filter(takes_part));
    let may_start = |row: &Row<'_>| match row.role() {
        LinkRole::Mesh => mesh_first && row.is_wanted(),
        LinkRole::Downlink => role == Role::Hub,
        LinkRole::Uplink => links.desired.wide.is_empty(),
        LinkRole::Trunk => false,
    };
    // A spoke whose wide route works needs no exact route, but those of mesh links in a mesh.
    let may_stay = |row: &Row<'_>| match (role, row.role()) {
        (Role::Spoke, LinkRole::Downlink | LinkRole::Mesh) => may_start(row) || !wide_works,
        (Role::Hub, LinkRole::Downlink | LinkRole::Mesh) => true,
        (Role::Spoke | Role::Hub, LinkRole::Uplink | LinkRole::Trunk) => may_start(row),
    };
    let stands = |row: &Row<'_>| row.exact_stands && may_stay(row);
    let works = |row: &Row<'_>| {
        (row.is_connected() && may_start(row)) || ((row.is_connected() || row.is_trusted()) && stands(row))
    };
    let first = |fits: &dyn Fn(&Row<'_>) -> bool| candidates.into_iter().flatten().find(|row| fits(row));
    let found = first(&works)
        .or_else(|| first(&|row| stands(row) && !row.is_down()))
        .or_else(|| first(&|row| stands(row) && !wide_works));
    found.map(Row::role)
}
