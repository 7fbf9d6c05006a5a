//! What a worker says of its networks, from what stands after a pass. It refuses to say "connected" without evidence,
//! or "all connected" of nothing.

use std::collections::{BTreeMap, BTreeSet};

use crate::{
    Condition, LinkId, LinkRole, LinkState, Listener, NetworkName, Now, PeerStatus, Reason, Role, RouteState,
    WorkerStatus,
    status::{ConditionStatus, RESTORED, Summary},
};

use super::{
    Desired, DesiredNetwork, Host, PeerNote, Recorded,
    links::{Key, Links, Row},
    routes,
};

/// What there is to say.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Statuses {
    /// The status of each intent that is in the control store.
    pub intents: BTreeMap<NetworkName, WorkerStatus>,
    /// The ports on which this host listens.
    pub listeners: Vec<Listener>,
    /// What the host waits for, for people.
    pub waits: Vec<String>,
}

/// Reports on records and host as they stand after a pass. `previous`: what was said last; `failed`: links of which a
/// step failed, with the cause.
pub fn report(
    desired: &Desired,
    recorded: &Recorded,
    host: &Host,
    now: &Now,
    previous: &BTreeMap<NetworkName, WorkerStatus>,
    failed: &BTreeMap<LinkId, String>,
) -> Statuses {
    let mut statuses = Statuses { listeners: listeners(host), ..Statuses::default() };
    for (network, wanted) in &desired.networks {
        let Some(mut links) = Links::new(desired, network, recorded, host, &now.boot) else { continue };
        let names: BTreeSet<_> = links.devices.values().filter_map(|device| device.name.as_ref()).collect();
        let table = host.tables.values().find(|table| table.rules.iter().any(|name| names.contains(name)));
        links.read_exact_routes(table);
        let wide = routes::wide_holder(&links, table);
        let rows = peer_rows(&links, wide, failed);
        statuses.waits.extend(rows.iter().filter(|row| row.state != LinkState::Connected).map(|row| {
            let role = row.role.map(|role| format!(" {role}")).unwrap_or_default();
            format!("{network}: {}{role}: {} {}", row.peer, row.reason.as_str(), row.message)
        }));
        if wanted.current && !wanted.absent {
            let last = previous.get(network);
            statuses.intents.insert(network.clone(), status(wanted, &links, rows, last, now));
        }
    }
    statuses
}

fn listeners(host: &Host) -> Vec<Listener> {
    let listening =
        host.devices.iter().filter(|(id, device)| id.role != LinkRole::Uplink && device.port != 0);
    listening
        .map(|(id, device)| Listener {
            network: id.network.clone(),
            role: id.role,
            peer: id.peer.clone(),
            port: device.port,
        })
        .collect()
}

/// One row a link, one a peer without a link.
fn peer_rows(links: &Links<'_>, wide: Option<Key<'_>>, failed: &BTreeMap<LinkId, String>) -> Vec<PeerStatus> {
    let mut rows = Vec::new();
    for row in &links.rows {
        let (key, Some(link)) = (row.key, row.recorded) else { continue };
        let failure = failed.get(&link.id);
        rows.push(PeerStatus {
            peer: key.0.to_string(),
            role: Some(key.1),
            state: if failure.is_some() && !row.is_connected() {
                LinkState::NotConnected
            } else {
                link.status.state
            },
            route: route_of(row, link.status.state, wide),
            reason: failure.map_or(link.status.reason, |_| Reason::StepFailed),
            message: failure.cloned().unwrap_or_else(|| link.status.message.clone()),
            last_transition: link.status.last_transition.clone(),
        });
    }
    rows.extend(links.desired.notes.iter().map(note_row));
    rows.sort_by(|a, b| (&a.peer, a.role).cmp(&(&b.peer, b.role)));
    rows
}

fn note_row(note: &PeerNote) -> PeerStatus {
    PeerStatus {
        peer: note.peer.clone(),
        role: None,
        state: LinkState::Pending,
        route: RouteState::None,
        reason: note.reason,
        message: note.message.clone(),
        last_transition: String::new(),
    }
}

/// A state that was kept for want of evidence counts like a fresh one.
fn route_of(row: &Row<'_>, state: LinkState, wide: Option<Key<'_>>) -> RouteState {
    if row.exact_stands || wide == Some(row.key) {
        RouteState::Active
    } else if state == LinkState::Connected {
        RouteState::Standby
    } else {
        RouteState::None
    }
}

fn status(
    desired: &DesiredNetwork,
    links: &Links<'_>,
    peers: Vec<PeerStatus>,
    last: Option<&WorkerStatus>,
    now: &Now,
) -> WorkerStatus {
    let generation = desired.applied.as_ref().map_or(0, |applied| applied.generation);
    let still_hub = links.rows.iter().any(|row| row.role() == LinkRole::Downlink && row.exact_stands);
    let role = if still_hub { Role::Hub } else { desired.role() };
    let wanted = |row: &&PeerStatus| !matches!(row.reason, Reason::Unwanted | Reason::Held | Reason::OwnName);
    let count = |state: fn(LinkState) -> bool| {
        u32::try_from(peers.iter().filter(wanted).filter(|row| state(row.state)).count()).unwrap_or(u32::MAX)
    };
    let summary = Summary {
        desired: count(|_| true),
        ready: count(|state| state == LinkState::Connected),
        failing: count(|state| state != LinkState::Connected),
    };
    let failing = peers.iter().filter(wanted).find(|row| row.state != LinkState::Connected);
    let ready = ready_condition(&summary, failing, generation);
    let mut conditions = vec![ready];
    if desired.restored || last.is_some_and(|last| last.says_restored(generation)) {
        let message = "the intent's generation went back and a consistent read confirmed it".to_owned();
        conditions.push(Condition::new(
            RESTORED,
            ConditionStatus::True,
            "GenerationWentBack",
            message,
            generation,
        ));
    }
    for condition in &mut conditions {
        let before = last.and_then(|last| last.conditions.iter().find(|old| old.kind == condition.kind));
        let same = before.filter(|old| old.status == condition.status);
        condition.last_transition = same.map_or_else(|| now.wall.clone(), |old| old.last_transition.clone());
    }
    let peers = peers.into_iter().map(|row| keep_transition(row, last, now)).collect();
    WorkerStatus { observed_generation: generation, role: Some(role), peers, summary, conditions }
}

/// Rows without a record take their moment from what was said last.
fn keep_transition(mut row: PeerStatus, last: Option<&WorkerStatus>, now: &Now) -> PeerStatus {
    if row.last_transition.is_empty() {
        let same =
            |old: &&PeerStatus| old.peer == row.peer && old.role == row.role && old.reason == row.reason;
        let before = last.and_then(|last| last.peers.iter().find(same));
        row.last_transition = before.map_or_else(|| now.wall.clone(), |old| old.last_transition.clone());
    }
    row
}

fn ready_condition(summary: &Summary, failing: Option<&PeerStatus>, generation: i64) -> Condition {
    let (status, reason, message) = match failing {
        _ if summary.desired == 0 => {
            (ConditionStatus::False, "NothingToConnect", "the intent asks for no link".to_owned())
        }
        None => (ConditionStatus::True, "AllConnected", format!("{} links connected", summary.ready)),
        Some(row) => {
            let message =
                format!("{} of {} connected; first failing: {}", summary.ready, summary.desired, row.peer);
            (ConditionStatus::False, row.reason.as_str(), message)
        }
    };
    Condition::new("Ready", status, reason, message, generation)
}
