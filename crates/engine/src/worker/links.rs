//! The links of one network as they are: wanted, recorded, on a device, and how they do, joined into one row each. It
//! refuses to plan.

mod row;
mod successor;

use std::{collections::BTreeMap, time::Duration};

use ipnet::IpNet;

use crate::{
    Backend, BootTime, DeviceId, DeviceName, GatewayName, LinkId, LinkRole, NetworkName, OnTimeout,
    PublicKey, Role,
};

use super::{Desired, DesiredNetwork, Host, ObservedDevice, ObservedTable, Recorded, RouteKind};

pub(super) use row::{Key, Row};
pub(super) use successor::Succession;

use row::{join, join_only_peer, join_peers};

/// One network's links.
pub(super) struct Links<'a> {
    pub(super) network: &'a NetworkName,
    pub(super) desired: &'a DesiredNetwork,
    pub(super) me: &'a GatewayName,
    pub(super) own_key: PublicKey,
    /// Sorted by peer and role.
    pub(super) rows: Vec<Row<'a>>,
    /// The prefixes of their peers with the place of each link in `rows`, sorted.
    pub(super) by_prefix: Vec<(IpNet, usize)>,
    /// Peers on our devices that belong to no link.
    pub(super) strangers: Vec<(DeviceName, PublicKey)>,
    /// Devices of this network; of an identity that has two the one of the wanted backend.
    pub(super) devices: BTreeMap<&'a DeviceId, &'a ObservedDevice>,
    /// Devices that give way to one of the other backend.
    pub(super) successions: BTreeMap<&'a DeviceId, Succession<'a>>,
    /// Wanted links that are not connected and for which unwanted links may wait.
    blockers: Vec<Key<'a>>,
    /// When the last of them became wanted.
    last_blocker: Duration,
    /// Whether an unwanted mesh link waits for nothing.
    mesh_is_free: bool,
    anything_wanted: bool,
    linger: Duration,
    now: &'a BootTime,
    host: &'a Host,
}

impl<'a> Links<'a> {
    /// Joins a network's links. `None`: the network is not in `desired`.
    pub(super) fn new(
        desired: &'a Desired,
        network: &'a NetworkName,
        recorded: &'a Recorded,
        host: &'a Host,
        now: &'a BootTime,
    ) -> Option<Self> {
        let wanted = desired.networks.get(network)?;
        let mut links = Self {
            network,
            desired: wanted,
            me: &desired.me,
            own_key: desired.own_key,
            rows: join(wanted, network, recorded, host),
            by_prefix: Vec::new(),
            strangers: Vec::new(),
            devices: devices(host, network, wanted.backend).collect(),
            successions: BTreeMap::new(),
            blockers: Vec::new(),
            last_blocker: Duration::ZERO,
            mesh_is_free: false,
            anything_wanted: false,
            linger: desired.settings.linger,
            now,
            host,
        };
        links.join_devices();
        links.successions = successor::find(wanted, network, &desired.me, host, &links.rows);
        links.find_blockers();
        Some(links)
    }

    fn join_devices(&mut self) {
        for (id, device) in self.devices.clone() {
            let strangers = match &id.peer {
                Some(peer) => {
                    let at = self.position((peer, id.role));
                    join_only_peer(at.and_then(|at| self.rows.get_mut(at)), device)
                }
                None => join_peers(&mut self.rows, id.role, device),
            };
            if !strangers.is_empty() {
                let name = device.name.clone().unwrap_or_else(|| id.name(self.me, self.desired.backend));
                self.strangers.extend(strangers.into_iter().map(|key| (name.clone(), key)));
            }
        }
        // What is not on its device can't work, whatever was heard before it went.
        for row in self.rows.iter_mut().filter(|row| row.peer.is_none() && row.is_connected()) {
            row.evidence = None;
        }
        self.list_prefixes();
    }

    /// Sorts the prefixes of all links: the first ones in the order of peers, then the others, are often two sorted runs.
    fn list_prefixes(&mut self) {
        let mut others = Vec::new();
        self.by_prefix.reserve(2 * self.rows.len());
        for (at, row) in self.rows.iter().enumerate() {
            if let Some((first, rest)) = row.prefixes().split_first() {
                self.by_prefix.push((*first, at));
                others.extend(rest.iter().map(|prefix| (*prefix, at)));
            }
        }
        self.by_prefix.append(&mut others);
        self.by_prefix.sort();
    }

    /// The wanted links that could take the place of unwanted ones (design §5 rule 4) and are not connected.
    fn find_blockers(&mut self) {
        let wanted = || self.rows.iter().filter(|row| row.is_wanted());
        let only_mesh = wanted().all(|row| row.role() == LinkRole::Mesh);
        let hub_links = wanted().any(|row| matches!(row.role(), LinkRole::Uplink | LinkRole::Downlink));
        let role = self.desired.role();
        let replaces = |row: &Row<'a>, alive: bool| match role {
            _ if only_mesh => true,
            Role::Spoke => row.role() == LinkRole::Uplink,
            Role::Hub => alive,
        };
        let mut blocking = Vec::new();
        for of_peer in self.rows.chunk_by(|a, b| a.key.0 == b.key.0) {
            let alive = of_peer.iter().any(Row::is_connected);
            let missing = of_peer.iter().filter(|row| row.is_wanted() && !row.is_connected());
            blocking.extend(missing.filter(|row| replaces(row, alive)));
        }
        let since = blocking.iter().map(|row| self.wanted_since(row).since_boot).max();
        let blockers = blocking.iter().map(|row| row.key).collect();
        self.anything_wanted = wanted().next().is_some();
        self.mesh_is_free = !hub_links;
        self.last_blocker = since.unwrap_or_default();
        self.blockers = blockers;
    }

    fn position(&self, key: Key<'_>) -> Option<usize> {
        self.rows.binary_search_by(|row| row.key.cmp(&key)).ok()
    }

    pub(super) fn row(&self, key: Key<'_>) -> Option<&Row<'a>> {
        self.position(key).and_then(|at| self.rows.get(at))
    }

    pub(super) fn id(&self, key: Key<'_>) -> LinkId {
        LinkId { network: self.network.clone(), peer: key.0.clone(), role: key.1 }
    }

    /// The device that carries a link.
    pub(super) fn device_id(&self, key: Key<'_>) -> DeviceId {
        let peer = (!key.1.shares_device()).then(|| key.0.clone());
        DeviceId { network: self.network.clone(), role: key.1, peer }
    }

    /// What becomes of the device of a link that gives way to another.
    pub(super) fn succession(&self, row: &Row<'a>) -> Option<&Succession<'a>> {
        if self.successions.is_empty() { None } else { self.successions.get(&self.device_id(row.key)) }
    }

    /// Whether a device carries a link, or carried it until now.
    pub(super) fn is_carried_by(&self, row: &Row<'a>, device: &DeviceName) -> bool {
        row.device.and_then(|device| device.name.as_ref()) == Some(device)
            || self.succession(row).is_some_and(|succession| succession.old_name == device)
    }

    /// The name of the device that carries a link: of the one that is there and stays, else the one to be made.
    pub(super) fn device_name(&self, row: &Row<'a>) -> DeviceName {
        if let Some(succession) = self.succession(row) {
            return succession.new_name.clone();
        }
        let observed = row.device.and_then(|device| device.name.clone());
        observed.unwrap_or_else(|| self.device_id(row.key).name(self.me, self.desired.backend))
    }

    /// Marks the links over which the exact routes of their peers lead, from the table.
    pub(super) fn read_exact_routes(&mut self, table: Option<&ObservedTable>) {
        let Some(table) = table else { return };
        let mut standing = table.routes.iter().peekable();
        for (prefix, at) in &self.by_prefix {
            let route = (RouteKind::Exact, *prefix);
            while standing.next_if(|(other, _)| **other < route).is_some() {}
            let stands =
                standing.peek().filter(|(other, _)| **other == route).map(|(_, stands)| &stands.device);
            let Some((row, device)) = self.rows.get(*at).zip(stands) else { continue };
            if self.is_carried_by(row, device)
                && let Some(row) = self.rows.get_mut(*at)
            {
                row.exact_stands = true;
            }
        }
    }

    /// Whether a link is dialled by a name that has no address (yet).
    pub(super) fn is_unresolved(&self, row: &Row<'a>) -> bool {
        let endpoint = row.wanted.and_then(|link| link.endpoint.as_ref());
        endpoint.is_some_and(|endpoint| self.host.address_of(&endpoint.host).is_none())
    }

    /// Since when a link is wanted, on this boot.
    pub(super) fn wanted_since(&self, row: &Row<'a>) -> &'a BootTime {
        row.wanted_since.filter(|since| self.now.since(since).is_some()).unwrap_or(self.now)
    }

    /// Since when no intent wants a link, on this boot.
    pub(super) fn unwanted_since(&self, row: &Row<'a>) -> &'a BootTime {
        let since = row.recorded.and_then(|link| link.status.unwanted_since.as_ref());
        since.filter(|since| self.now.since(since).is_some()).unwrap_or(self.now)
    }

    fn is_free(&self, row: &Row<'a>) -> bool {
        row.role() == LinkRole::Mesh && self.mesh_is_free
    }

    /// The wanted links for which an unwanted one waits.
    pub(super) fn holders(&self, row: &Row<'a>) -> impl Iterator<Item = Key<'a>> + '_ {
        let unwanted = *row;
        let blockers = self.blockers.iter().copied().filter(move |_| !self.is_free(&unwanted));
        blockers.filter(move |key| {
            let since = self.row(*key).map(|wanted| self.wanted_since(wanted).since_boot);
            !self.has_timed_out(since.unwrap_or_default(), &unwanted)
        })
    }

    /// Whether an unwanted link may go: each wanted link that could take its place is connected, or had its time, and
    /// what was under way has arrived.
    pub(super) fn is_due(&self, row: &Row<'a>) -> bool {
        let waits = !self.is_free(row) && !self.blockers.is_empty();
        self.desired.keep.is_none()
            && (!waits || self.has_timed_out(self.last_blocker, row))
            && self.linger_left(row).is_zero()
    }

    /// Whether a link goes in this pass: it is unwanted and due, or nothing of it can be taken on.
    pub(super) fn goes(&self, row: &Row<'a>) -> bool {
        let adoptable =
            || row.recorded.is_some() || row.device.is_some_and(|device| !device.peers.is_empty());
        let idle = || !adoptable() && self.desired.keep.is_none();
        row.is_unwanted() && (self.is_due(row) || idle())
    }

    /// How much longer the wanted links have to connect before an unwanted one goes without them.
    pub(super) fn time_left(&self, row: &Row<'a>) -> Duration {
        let waits = !self.is_free(row) && !self.blockers.is_empty();
        let change = self.desired.applied.as_ref().map(|applied| applied.intent.hub_change);
        let left = change.filter(|_| waits).map(|change| {
            let later = self.last_blocker.max(self.unwanted_since(row).since_boot);
            change.connect_timeout.saturating_sub(self.now.since_boot.saturating_sub(later))
        });
        left.unwrap_or_default().max(self.linger_left(row))
    }

    /// How much longer an unwanted link stays for packets under way. With nothing wanted there are none to save.
    pub(super) fn linger_left(&self, row: &Row<'a>) -> Duration {
        if !row.present || !self.anything_wanted {
            return Duration::ZERO;
        }
        self.linger.saturating_sub(self.now.since(self.unwanted_since(row)).unwrap_or_default())
    }

    fn has_timed_out(&self, wanted_since: Duration, unwanted: &Row<'a>) -> bool {
        let Some(applied) = &self.desired.applied else { return false };
        let change = applied.intent.hub_change;
        let later = wanted_since.max(self.unwanted_since(unwanted).since_boot);
        change.on_timeout == OnTimeout::Proceed
            && self.now.since_boot.saturating_sub(later) >= change.connect_timeout
    }
}

/// The devices of a network; of an identity that has two the one of `backend`.
fn devices<'a>(
    host: &'a Host,
    network: &NetworkName,
    backend: Backend,
) -> impl Iterator<Item = (&'a DeviceId, &'a ObservedDevice)> {
    let ours = host.devices.keys().filter(move |id| id.network == *network);
    ours.filter_map(move |id| Some((id, host.device(id, backend)?)))
}
