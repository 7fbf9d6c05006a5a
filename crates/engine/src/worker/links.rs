//! The links of one network as they are: wanted, recorded, on a device, and how they do, joined into one row each. It
//! refuses to plan.

use std::{collections::BTreeMap, net::IpAddr, time::Duration};

use crate::{
    BootTime, DeviceId, DeviceName, GatewayName, LinkId, LinkRole, LinkState, NetworkName, OnTimeout,
    PublicKey, Role,
};

use super::{
    Desired, DesiredNetwork, Evidence, Host, ObservedDevice, ObservedPeer, ObservedTable, Recorded,
    RecordedLink, RouteKind, WantedLink,
};

/// The two parts that name a link within its network.
pub(super) type Key = (GatewayName, LinkRole);

/// One link.
#[derive(Debug, Clone, Default)]
pub(super) struct Row<'a> {
    pub(super) wanted: Option<&'a WantedLink>,
    /// Wanted, but it can't be made yet.
    pub(super) waiting: bool,
    pub(super) recorded: Option<&'a RecordedLink>,
    /// The device that carries it.
    pub(super) device: Option<&'a ObservedDevice>,
    /// The peer on that device, under the wanted key, else under the recorded one.
    pub(super) peer: Option<(PublicKey, &'a ObservedPeer)>,
    /// Whether it has a device of its own, or a peer on a shared one.
    pub(super) present: bool,
    pub(super) evidence: Option<Evidence>,
    /// Whether exact routes of the peer lead over it now.
    pub(super) exact_stands: bool,
    /// Whether it is dialled by a name that has no address (yet).
    pub(super) unresolved: bool,
}

impl<'a> Row<'a> {
    pub(super) fn is_wanted(&self) -> bool {
        self.wanted.is_some() || self.waiting
    }

    /// Recorded or present, and not wanted.
    pub(super) fn is_unwanted(&self) -> bool {
        !self.is_wanted() && (self.recorded.is_some() || self.present)
    }

    pub(super) fn is_connected(&self) -> bool {
        self.evidence.is_some_and(Evidence::is_connected)
    }

    /// Whether nothing is known of it yet, as after a start of the worker, and it worked when that last knew.
    pub(super) fn is_trusted(&self) -> bool {
        let worked = self.recorded.is_some_and(|link| link.status.state == LinkState::Connected);
        worked && self.peer.is_some() && self.evidence.is_none()
    }

    /// Whether the link is known not to work, which is more than not being known to work.
    pub(super) fn is_down(&self) -> bool {
        self.peer.is_none() || matches!(self.evidence, Some(Evidence::NotConnected { .. }))
    }

    /// Whether the link worked once and does not any more.
    pub(super) fn is_lost(&self) -> bool {
        self.recorded.is_some_and(|link| link.status.connected_once) && self.is_down()
    }

    /// The prefixes of the peer's exact routes: as wanted, else as recorded.
    pub(super) fn prefixes(&self) -> &'a [ipnet::IpNet] {
        let wanted = self.wanted.map(|link| link.prefixes.as_slice());
        wanted.or_else(|| self.recorded.map(|link| link.prefixes.as_slice())).unwrap_or_default()
    }
}

/// One network's links.
pub(super) struct Links<'a> {
    pub(super) network: &'a NetworkName,
    pub(super) desired: &'a DesiredNetwork,
    pub(super) me: &'a GatewayName,
    pub(super) own_key: PublicKey,
    pub(super) rows: BTreeMap<Key, Row<'a>>,
    /// Peers on our devices that belong to no link.
    pub(super) strangers: Vec<(DeviceName, PublicKey)>,
    /// Devices of this network.
    pub(super) devices: BTreeMap<&'a DeviceId, &'a ObservedDevice>,
    /// Wanted links that are not connected and for which unwanted links may wait.
    blockers: Vec<Key>,
    /// Whether an unwanted mesh link waits for nothing.
    mesh_is_free: bool,
    anything_wanted: bool,
    linger: Duration,
    now: &'a BootTime,
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
            rows: BTreeMap::new(),
            strangers: Vec::new(),
            devices: host.devices.iter().filter(|(id, _)| id.network == *network).collect(),
            blockers: Vec::new(),
            mesh_is_free: false,
            anything_wanted: false,
            linger: desired.settings.linger,
            now,
        };
        for (key, link) in &wanted.links {
            let row = links.rows.entry(key.clone()).or_default();
            row.wanted = Some(link);
            row.unresolved = link.endpoint.as_ref().is_some_and(|endpoint| {
                endpoint.host.parse::<IpAddr>().is_err() && !host.resolved.contains_key(&endpoint.host)
            });
        }
        for key in &wanted.waiting {
            links.rows.entry(key.clone()).or_default().waiting = true;
        }
        for (id, link) in recorded.links.iter().filter(|(id, _)| id.network == *network) {
            links.rows.entry((id.peer.clone(), id.role)).or_default().recorded = Some(link);
        }
        links.join_devices();
        for (id, evidence) in host.evidence.iter().filter(|(id, _)| id.network == *network) {
            if let Some(row) =
                links.rows.get_mut(&(id.peer.clone(), id.role)).filter(|row| row.peer.is_some())
            {
                row.evidence = Some(*evidence);
            }
        }
        links.find_blockers();
        Some(links)
    }

    fn join_devices(&mut self) {
        for (id, device) in self.devices.clone() {
            if let Some(peer) = &id.peer {
                let row = self.rows.entry((peer.clone(), id.role)).or_default();
                row.present = true;
            }
            let mut seen = Vec::new();
            for ((_, role), row) in &mut self.rows {
                if *role != id.role || id.peer.is_some() {
                    continue;
                }
                join_peer(row, device, &mut seen);
            }
            if let Some(row) = id.peer.as_ref().and_then(|peer| self.rows.get_mut(&(peer.clone(), id.role))) {
                join_peer(row, device, &mut seen);
            }
            seen.sort();
            let name = device.name.clone().unwrap_or_else(|| id.name(self.me));
            let strangers = device.peers.keys().filter(|key| seen.binary_search(key).is_err());
            self.strangers.extend(strangers.map(|key| (name.clone(), *key)));
        }
    }

    /// The wanted links that could take the place of unwanted ones (design §5 rule 4) and are not connected.
    fn find_blockers(&mut self) {
        let wanted = || self.rows.iter().filter(|(_, row)| row.is_wanted());
        let only_mesh = wanted().all(|((_, role), _)| *role == LinkRole::Mesh);
        let hub_links = wanted().any(|((_, role), _)| matches!(role, LinkRole::Uplink | LinkRole::Downlink));
        let mut alive: Vec<&GatewayName> =
            self.rows.iter().filter(|(_, row)| row.is_connected()).map(|((peer, _), _)| peer).collect();
        alive.dedup();
        let replaces = |(peer, role): &Key| match self.desired.role() {
            _ if only_mesh => true,
            Role::Spoke => *role == LinkRole::Uplink,
            Role::Hub => alive.binary_search(&peer).is_ok(),
        };
        let blockers = wanted().filter(|(key, row)| replaces(key) && !row.is_connected());
        let blockers: Vec<Key> = blockers.map(|(key, _)| key.clone()).collect();
        self.anything_wanted = wanted().next().is_some();
        self.mesh_is_free = !hub_links;
        self.blockers = blockers;
    }

    pub(super) fn row(&self, key: &Key) -> Option<&Row<'a>> {
        self.rows.get(key)
    }

    pub(super) fn id(&self, key: &Key) -> LinkId {
        LinkId { network: self.network.clone(), peer: key.0.clone(), role: key.1 }
    }

    /// The name of the device that carries a link: of the one that is there, else the one to be made.
    pub(super) fn device_name(&self, key: &Key) -> DeviceName {
        let observed = self.row(key).and_then(|row| row.device).and_then(|device| device.name.clone());
        observed.unwrap_or_else(|| self.id(key).device().name(self.me))
    }

    /// Marks the links over which the exact routes of their peers lead, from the table.
    pub(super) fn read_exact_routes(&mut self, table: Option<&ObservedTable>) {
        let Some(table) = table else { return };
        for row in self.rows.values_mut() {
            let Some(name) = row.device.and_then(|device| device.name.as_ref()) else { continue };
            let stands = |prefix: &ipnet::IpNet| {
                table.routes.get(&(RouteKind::Exact, *prefix)).is_some_and(|route| route.device == *name)
            };
            row.exact_stands = row.prefixes().iter().any(stands);
        }
    }

    /// Since when a link is wanted, on this boot.
    pub(super) fn wanted_since(&self, key: &Key) -> &BootTime {
        let since = self.desired.applied.as_ref().and_then(|applied| applied.wanted_since.get(key));
        since.filter(|since| self.now.since(since).is_some()).unwrap_or(self.now)
    }

    /// Since when no intent wants a link, on this boot.
    pub(super) fn unwanted_since(&self, row: &Row<'a>) -> &'a BootTime {
        let since = row.recorded.and_then(|link| link.status.unwanted_since.as_ref());
        since.filter(|since| self.now.since(since).is_some()).unwrap_or(self.now)
    }

    /// The wanted links for which an unwanted one waits.
    pub(super) fn holders(&self, role: LinkRole, row: &Row<'a>) -> Vec<&Key> {
        if role == LinkRole::Mesh && self.mesh_is_free {
            return Vec::new();
        }
        self.blockers.iter().filter(|wanted| !self.has_timed_out(wanted, row)).collect()
    }

    /// Whether an unwanted link may go: each wanted link that could take its place is connected, or had its time, and
    /// what was under way has arrived.
    pub(super) fn is_due(&self, role: LinkRole, row: &Row<'a>) -> bool {
        let free = role == LinkRole::Mesh && self.mesh_is_free;
        self.desired.keep.is_none()
            && (free || self.blockers.iter().all(|wanted| self.has_timed_out(wanted, row)))
            && self.linger_left(row).is_zero()
    }

    /// How much longer an unwanted link stays for packets under way. With nothing wanted there are none to save.
    pub(super) fn linger_left(&self, row: &Row<'a>) -> Duration {
        if !row.present || !self.anything_wanted {
            return Duration::ZERO;
        }
        self.linger.saturating_sub(self.now.since(self.unwanted_since(row)).unwrap_or_default())
    }

    fn has_timed_out(&self, wanted: &Key, unwanted: &Row<'a>) -> bool {
        let Some(applied) = &self.desired.applied else { return false };
        let change = applied.intent.hub_change;
        let later = self.wanted_since(wanted).since_boot.max(self.unwanted_since(unwanted).since_boot);
        change.on_timeout == OnTimeout::Proceed
            && self.now.since_boot.saturating_sub(later) >= change.connect_timeout
    }
}

/// Joins a link with its peer on a device, and notes every key of the device that belongs to the link.
fn join_peer<'a>(row: &mut Row<'a>, device: &'a ObservedDevice, seen: &mut Vec<PublicKey>) {
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
