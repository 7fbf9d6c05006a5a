//! One link as it is: what is known of it from each place, joined. It refuses to look at another link.

use std::net::IpAddr;

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
pub(super) enum Part<'a> {
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

/// Everything that is known of the links of a network, from all places; each place is in the order of peer and role.
pub(super) fn parts<'a>(
    wanted: &'a DesiredNetwork,
    network: &'a NetworkName,
    recorded: &'a Recorded,
    host: &'a Host,
) -> Vec<(Key<'a>, Part<'a>)> {
    let mut parts = Vec::new();
    parts.extend(wanted.links.iter().map(|((peer, role), link)| ((peer, *role), Part::Wanted(link))));
    parts.extend(wanted.waiting.iter().map(|(peer, role)| ((peer, *role), Part::Waiting)));
    let since = wanted.applied.iter().flat_map(|applied| &applied.wanted_since);
    parts.extend(since.map(|((peer, role), since)| ((peer, *role), Part::WantedSince(since))));
    let links = recorded.links.iter().filter(|(id, _)| id.network == *network);
    parts.extend(links.map(|(id, link)| ((&id.peer, id.role), Part::Recorded(link))));
    let evidence = host.evidence.iter().filter(|(id, _)| id.network == *network);
    parts.extend(evidence.map(|(id, evidence)| ((&id.peer, id.role), Part::Evidence(*evidence))));
    for (id, device) in host.devices.iter().filter(|(id, _)| id.network == *network) {
        parts.extend(id.peer.as_ref().map(|peer| ((peer, id.role), Part::OwnDevice(device))));
    }
    parts
}

/// One row a link. The sort finds the runs that are in order already and merges them.
pub(super) fn join<'a>(mut parts: Vec<(Key<'a>, Part<'a>)>, host: &Host) -> Vec<Row<'a>> {
    parts.sort_by_key(|(key, _)| *key);
    let mut rows: Vec<Row<'a>> = Vec::new();
    for (key, part) in parts {
        match rows.last_mut().filter(|row| row.key == key) {
            Some(row) => row.note(part, host),
            None => {
                let mut row = Row::new(key);
                row.note(part, host);
                rows.push(row);
            }
        }
    }
    rows.retain(Row::is_there);
    rows
}

/// Joins a link with its peer on a device, and notes every key of the device that belongs to the link.
pub(super) fn join_peer<'a>(row: &mut Row<'a>, device: &'a ObservedDevice, seen: &mut Vec<PublicKey>) {
    row.device = Some(device);
    let wanted = row.wanted.map(|link| link.public_key);
    let recorded = row.recorded.map(|link| link.public_key);
    let mut found = wanted.into_iter().chain(recorded.filter(|key| Some(*key) != wanted));
    for key in found.by_ref() {
        let Some(peer) = device.peers.get(&key) else { continue };
        seen.push(key);
        row.present = true;
        if row.peer.is_none() {
            row.peer = Some((key, peer));
        }
    }
}
