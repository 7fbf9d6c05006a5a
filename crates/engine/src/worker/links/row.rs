//! One link as it is: what is known of it from each place, joined. It refuses to look at another link.

use std::{cmp::Ordering, net::IpAddr};

use crate::{
    BootTime, GatewayName, LinkRole, LinkState, NetworkName, PublicKey,
    worker::{
        DesiredNetwork, Evidence, Host, ObservedDevice, ObservedPeer, Recorded, RecordedLink, WantedLink,
    },
};

/// The two parts that name a link within its network.
pub(in crate::worker) type Key<'a> = (&'a GatewayName, LinkRole);

/// One link.
#[derive(Debug, Clone, Copy)]
pub(in crate::worker) struct Row<'a> {
    pub(in crate::worker) key: Key<'a>,
    pub(in crate::worker) wanted: Option<&'a WantedLink>,
    /// Wanted, but it can't be made yet.
    pub(in crate::worker) waiting: bool,
    /// Since when it is wanted, as recorded.
    pub(in crate::worker) wanted_since: Option<&'a BootTime>,
    pub(in crate::worker) recorded: Option<&'a RecordedLink>,
    /// The device that carries it.
    pub(in crate::worker) device: Option<&'a ObservedDevice>,
    /// The peer on that device, under the wanted key, else under the recorded one.
    pub(in crate::worker) peer: Option<(PublicKey, &'a ObservedPeer)>,
    /// Whether it has a device of its own, or a peer on a shared one.
    pub(in crate::worker) present: bool,
    pub(in crate::worker) evidence: Option<Evidence>,
    /// Whether exact routes of the peer lead over it now.
    pub(in crate::worker) exact_stands: bool,
    /// Whether it is dialled by a name that has no address (yet).
    pub(in crate::worker) unresolved: bool,
}

/// What is known of a link from one place.
enum Part<'a> {
    Wanted(&'a WantedLink),
    Waiting,
    WantedSince(&'a BootTime),
    Recorded(&'a RecordedLink),
    OwnDevice(&'a ObservedDevice),
    Evidence(Evidence),
}

impl<'a> Row<'a> {
    fn new(key: Key<'a>) -> Self {
        Self {
            key,
            wanted: None,
            waiting: false,
            wanted_since: None,
            recorded: None,
            device: None,
            peer: None,
            present: false,
            evidence: None,
            exact_stands: false,
            unresolved: false,
        }
    }

    fn note(&mut self, part: Part<'a>, host: &Host) {
        match part {
            Part::Wanted(link) => {
                self.wanted = Some(link);
                self.unresolved = link.endpoint.as_ref().is_some_and(|endpoint| {
                    endpoint.host.parse::<IpAddr>().is_err() && !host.resolved.contains_key(&endpoint.host)
                });
            }
            Part::Waiting => self.waiting = true,
            Part::WantedSince(since) => self.wanted_since = Some(since),
            Part::Recorded(link) => self.recorded = Some(link),
            Part::OwnDevice(device) => {
                self.device = Some(device);
                self.present = true;
            }
            Part::Evidence(evidence) => self.evidence = Some(evidence),
        }
    }

    /// The keys under which its peer may stand on a device: the wanted one, and the recorded one if that is another.
    fn keys(&self) -> impl Iterator<Item = PublicKey> + use<> {
        let wanted = self.wanted.map(|link| link.public_key);
        let recorded = self.recorded.map(|link| link.public_key).filter(|key| Some(*key) != wanted);
        wanted.into_iter().chain(recorded)
    }

    /// Notes its peer on the device that carries it; the one under the wanted key counts.
    fn take_peer(&mut self, key: PublicKey, peer: &'a ObservedPeer) {
        self.present = true;
        if self.peer.is_none() || self.wanted.is_some_and(|link| link.public_key == key) {
            self.peer = Some((key, peer));
        }
    }

    /// Whether there is a link at all, not only talk of one.
    fn is_there(&self) -> bool {
        self.is_wanted() || self.recorded.is_some() || self.present
    }

    pub(in crate::worker) fn role(&self) -> LinkRole {
        self.key.1
    }

    pub(in crate::worker) fn is_wanted(&self) -> bool {
        self.wanted.is_some() || self.waiting
    }

    /// Recorded or present, and not wanted.
    pub(in crate::worker) fn is_unwanted(&self) -> bool {
        !self.is_wanted() && (self.recorded.is_some() || self.present)
    }

    pub(in crate::worker) fn is_connected(&self) -> bool {
        self.evidence.is_some_and(Evidence::is_connected)
    }

    /// Whether nothing is known of it yet, as after a start of the worker, and it worked when that last knew.
    pub(in crate::worker) fn is_trusted(&self) -> bool {
        let worked = self.recorded.is_some_and(|link| link.status.state == LinkState::Connected);
        worked && self.peer.is_some() && self.evidence.is_none()
    }

    /// Whether the link is known not to work, which is more than not being known to work.
    pub(in crate::worker) fn is_down(&self) -> bool {
        self.peer.is_none() || matches!(self.evidence, Some(Evidence::NotConnected { .. }))
    }

    /// Whether the link worked once and does not any more.
    pub(in crate::worker) fn is_lost(&self) -> bool {
        self.recorded.is_some_and(|link| link.status.connected_once) && self.is_down()
    }

    /// The prefixes of the peer's exact routes: as wanted, else as recorded.
    pub(in crate::worker) fn prefixes(&self) -> &'a [ipnet::IpNet] {
        let wanted = self.wanted.map(|link| link.prefixes.as_slice());
        wanted.or_else(|| self.recorded.map(|link| link.prefixes.as_slice())).unwrap_or_default()
    }
}

/// One row a link, from everything that is known of the links of a network. Each place lists its links in the order of
/// peer and role, so that each is walked once beside the rows that are there already.
pub(super) fn join<'a>(
    wanted: &'a DesiredNetwork,
    network: &'a NetworkName,
    recorded: &'a Recorded,
    host: &'a Host,
) -> Vec<Row<'a>> {
    let mut rows = Vec::new();
    let links = wanted.links.iter().map(|((peer, role), link)| ((peer, *role), Part::Wanted(link)));
    note_all(&mut rows, links, host);
    let waiting = wanted.waiting.iter().map(|(peer, role)| ((peer, *role), Part::Waiting));
    note_all(&mut rows, waiting, host);
    let since = wanted.applied.iter().flat_map(|applied| &applied.wanted_since);
    note_all(&mut rows, since.map(|((peer, role), since)| ((peer, *role), Part::WantedSince(since))), host);
    let links = recorded.links.iter().filter(|(id, _)| id.network == *network);
    note_all(&mut rows, links.map(|(id, link)| ((&id.peer, id.role), Part::Recorded(link))), host);
    let evidence = host.evidence.iter().filter(|(id, _)| id.network == *network);
    let evidence = evidence.map(|(id, evidence)| ((&id.peer, id.role), Part::Evidence(*evidence)));
    note_all(&mut rows, evidence, host);
    let devices = super::devices(host, network, wanted.backend);
    let own =
        devices.filter_map(|(id, device)| Some(((id.peer.as_ref()?, id.role), Part::OwnDevice(device))));
    let mut own: Vec<_> = own.collect();
    own.sort_by_key(|(key, _)| *key);
    note_all(&mut rows, own, host);
    rows.retain(Row::is_there);
    rows
}

/// Notes sorted parts in sorted rows, with a new row for each link that has none.
fn note_all<'a>(rows: &mut Vec<Row<'a>>, parts: impl IntoIterator<Item = (Key<'a>, Part<'a>)>, host: &Host) {
    let known = rows.len();
    let mut at = 0;
    for (key, part) in parts {
        let mut order = Ordering::Greater;
        while let Some(row) = rows.get(at).filter(|_| at < known) {
            order = row.key.cmp(&key);
            if order.is_ge() {
                break;
            }
            at += 1;
        }
        match rows.get_mut(at).filter(|_| order.is_eq()) {
            Some(row) => row.note(part, host),
            None => {
                let mut row = Row::new(key);
                row.note(part, host);
                rows.push(row);
            }
        }
    }
    if rows.len() > known {
        rows.sort_by_key(|row| row.key);
    }
}

/// Joins the only link of a device with its peer there. Gives the keys of the device that belong to nobody.
pub(super) fn join_only_peer<'a>(row: Option<&mut Row<'a>>, device: &'a ObservedDevice) -> Vec<PublicKey> {
    let mut strangers: Vec<PublicKey> = device.peers.keys().copied().collect();
    let Some(row) = row else { return strangers };
    row.device = Some(device);
    for key in row.keys() {
        if let Some(peer) = device.peers.get(&key) {
            row.take_peer(key, peer);
            strangers.retain(|stranger| *stranger != key);
        }
    }
    strangers
}

/// Joins the links of one role with their peers on the device that they share, walking the keys of both once. Gives
/// the keys of the device that belong to nobody.
pub(super) fn join_peers<'a>(
    rows: &mut [Row<'a>],
    role: LinkRole,
    device: &'a ObservedDevice,
) -> Vec<PublicKey> {
    let mut keys = Vec::with_capacity(rows.len());
    for (at, row) in rows.iter_mut().enumerate().filter(|(_, row)| row.role() == role) {
        row.device = Some(device);
        keys.extend(row.keys().map(|key| (key, at)));
    }
    keys.sort_unstable();
    let mut strangers = Vec::new();
    let mut keys = keys.into_iter().peekable();
    for (key, peer) in &device.peers {
        while keys.next_if(|(other, _)| other < key).is_some() {}
        let mut known = false;
        while let Some((_, at)) = keys.next_if(|(other, _)| other == key) {
            known = true;
            if let Some(row) = rows.get_mut(at) {
                row.take_peer(*key, peer);
            }
        }
        if !known {
            strangers.push(*key);
        }
    }
    strangers
}
