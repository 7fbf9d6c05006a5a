//! One link as it is: what is known of it from each place, joined. It refuses to look at another link.

use std::iter::Peekable;

use crate::{
    Backend, BootTime, GatewayName, LinkRole, LinkState, NetworkName, PublicKey,
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
    pub(in crate::worker) peer: Option<&'a ObservedPeer>,
    /// Whether that peer stands under the wanted key.
    pub(in crate::worker) has_wanted_key: bool,
    /// Whether it has a device of its own, or a peer on a shared one.
    pub(in crate::worker) present: bool,
    pub(in crate::worker) evidence: Option<Evidence>,
    /// Whether exact routes of the peer lead over it now.
    pub(in crate::worker) exact_stands: bool,
}

impl<'a> Row<'a> {
    /// The keys under which its peer may stand on a device: the wanted one, and the recorded one if that is another.
    fn keys(&self) -> impl Iterator<Item = PublicKey> + use<> {
        let wanted = self.wanted.map(|link| link.public_key);
        let recorded = self.recorded.map(|link| link.public_key);
        wanted.into_iter().chain(recorded.filter(|key| Some(*key) != wanted))
    }

    /// Notes its peer on the device that carries it; the one under the wanted key counts.
    fn take_peer(&mut self, key: PublicKey, peer: &'a ObservedPeer) {
        let is_wanted = self.wanted.is_some_and(|link| link.public_key == key);
        if self.peer.is_none() || is_wanted {
            (self.peer, self.has_wanted_key) = (Some(peer), is_wanted);
        }
        self.present = true;
    }

    /// The key under which its peer stands on the device.
    pub(in crate::worker) fn peer_key(&self) -> Option<PublicKey> {
        self.peer?;
        let wanted = self.wanted.filter(|_| self.has_wanted_key).map(|link| link.public_key);
        wanted.or_else(|| self.recorded.map(|link| link.public_key))
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
/// peer and role, so that all are walked once, side by side.
pub(super) fn join<'a>(
    wanted: &'a DesiredNetwork,
    network: &'a NetworkName,
    recorded: &'a Recorded,
    host: &'a Host,
) -> Vec<Row<'a>> {
    let mut rows = Vec::with_capacity(wanted.links.len().max(recorded.links.len()));
    let mut links = wanted.links.iter().map(|((peer, role), link)| ((peer, *role), link)).peekable();
    let mut waiting = wanted.waiting.iter().map(|(peer, role)| ((peer, *role), ())).peekable();
    let since = wanted.applied.iter().flat_map(|applied| &applied.wanted_since);
    let mut since = since.map(|((peer, role), since)| ((peer, *role), since)).peekable();
    let records = recorded.links.iter().filter(|(id, _)| id.network == *network);
    let mut records = records.map(|(id, link)| ((&id.peer, id.role), link)).peekable();
    let evidence = host.evidence.iter().filter(|(id, _)| id.network == *network);
    let mut evidence = evidence.map(|(id, evidence)| ((&id.peer, id.role), *evidence)).peekable();
    let mut devices = own_devices(network, wanted.backend, host).into_iter().peekable();
    loop {
        let keys = [
            next_key(&mut links),
            next_key(&mut waiting),
            next_key(&mut since),
            next_key(&mut records),
            next_key(&mut evidence),
            next_key(&mut devices),
        ];
        let Some(key) = keys.into_iter().flatten().min() else { return rows };
        let device = take(&mut devices, key);
        let (wanted, recorded) = (take(&mut links, key), take(&mut records, key));
        let row = Row {
            key,
            wanted,
            waiting: take(&mut waiting, key).is_some(),
            wanted_since: take(&mut since, key),
            recorded,
            device,
            peer: None,
            has_wanted_key: false,
            present: device.is_some(),
            evidence: take(&mut evidence, key),
            exact_stands: false,
        };
        if row.is_there() {
            rows.push(row);
        }
    }
}

/// The devices of a network that carry one link each, with that link.
fn own_devices<'a>(
    network: &NetworkName,
    backend: Backend,
    host: &'a Host,
) -> Vec<(Key<'a>, &'a ObservedDevice)> {
    let devices = super::devices(host, network, backend);
    let own = devices.filter_map(|(id, device)| Some(((id.peer.as_ref()?, id.role), device)));
    let mut own: Vec<_> = own.collect();
    own.sort_by_key(|(key, _)| *key);
    own
}

/// The link that a place lists next.
fn next_key<'a, T>(place: &mut Peekable<impl Iterator<Item = (Key<'a>, T)>>) -> Option<Key<'a>> {
    place.peek().map(|(key, _)| *key)
}

/// What a place knows of this link, if it lists it next.
fn take<'a, T>(place: &mut Peekable<impl Iterator<Item = (Key<'a>, T)>>, key: Key<'a>) -> Option<T> {
    place.next_if(|(next, _)| *next == key).map(|(_, known)| known)
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
