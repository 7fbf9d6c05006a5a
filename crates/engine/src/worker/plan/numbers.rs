//! Ports and routing tables: what a host gives out. It refuses to move a number that is in use.

use std::{
    collections::{BTreeMap, BTreeSet},
    ops::RangeInclusive,
};

use crate::{
    DeviceId, DeviceName, GatewayName, LinkId, LinkRole, NetworkName,
    worker::{Desired, Host, ObservedTable, Recorded, Settings},
};

pub(super) struct Numbers<'a> {
    settings: &'a Settings,
    tables: BTreeMap<NetworkName, u32>,
    claimed: BTreeSet<u32>,
    released: BTreeSet<u32>,
    recorded: &'a Recorded,
    /// Ports in use, recorded or given out; gathered when the first one is asked for.
    used_ports: Option<BTreeSet<u16>>,
    /// Ports that were not looked at yet.
    spare_ports: RangeInclusive<u16>,
    given_ports: BTreeMap<DeviceId, Option<u16>>,
}

impl<'a> Numbers<'a> {
    pub(super) fn new(desired: &'a Desired, recorded: &'a Recorded, host: &Host) -> Self {
        let mut numbers = Self {
            settings: &desired.settings,
            tables: BTreeMap::new(),
            claimed: BTreeSet::new(),
            released: BTreeSet::new(),
            recorded,
            used_ports: None,
            spare_ports: desired.settings.ports.clone(),
            given_ports: BTreeMap::new(),
        };
        numbers.recognise_tables(desired, host);
        numbers
    }

    /// A network's table is the one to which the rules of its devices lead; where these are gone, the one that has a
    /// route over a device of it; where the devices are gone, the one to which the rules of recorded ones still lead, and
    /// where the records are gone too, those of the ones that are wanted: their names are always the same.
    fn recognise_tables(&mut self, desired: &Desired, host: &Host) {
        let there = || {
            let named = host.devices.iter();
            named.filter_map(|(id, device)| Some((&id.network, device.name.as_ref()?)))
        };
        for (network, name) in there() {
            self.recognise(network, host, |table| table.rules.contains(name));
        }
        for (network, name) in there() {
            self.recognise(network, host, |table| table.routes.values().any(|route| route.device == *name));
        }
        if host.tables.keys().all(|table| self.claimed.contains(table)) {
            return;
        }
        for (id, link) in &self.recorded.links {
            self.recognise(&id.network, host, |table| table.rules.contains(&link.device));
        }
        for (network, wanted) in &desired.networks {
            let device = |(peer, role): &(GatewayName, LinkRole)| {
                LinkId { network: network.clone(), peer: peer.clone(), role: *role }
                    .device()
                    .name(&desired.me, wanted.backend)
            };
            let names: BTreeSet<DeviceName> = wanted.links.keys().map(device).collect();
            self.recognise(network, host, |table| !table.rules.is_disjoint(&names));
        }
    }

    fn recognise(&mut self, network: &NetworkName, host: &Host, is_of: impl Fn(&ObservedTable) -> bool) {
        if self.tables.contains_key(network) {
            return;
        }
        let mut tables = host.tables.iter().filter(|(number, _)| !self.claimed.contains(number));
        if let Some((number, _)) = tables.find(|(_, table)| is_of(table)) {
            self.claimed.insert(*number);
            self.tables.insert(network.clone(), *number);
        }
    }

    /// The table that a network has, without giving one out.
    pub(super) fn known_table(&self, network: &NetworkName) -> Option<u32> {
        self.tables.get(network).copied()
    }

    /// The table of a network: the one it has, else the lowest free one. `None`: the range is used up.
    pub(super) fn table(&mut self, network: &NetworkName) -> Option<u32> {
        if let Some(table) = self.tables.get(network) {
            return Some(*table);
        }
        let free = self.settings.tables.clone().find(|table| !self.claimed.contains(table))?;
        self.claimed.insert(free);
        self.tables.insert(network.clone(), free);
        Some(free)
    }

    /// Position of a table in the range.
    pub(super) fn order(&self, table: u32) -> u32 {
        table.saturating_sub(*self.settings.tables.start())
    }

    /// Lets the table of a network go that has no link any more. It is not given out again in the same plan.
    pub(super) fn release_table(&mut self, network: &NetworkName) {
        self.released.extend(self.tables.remove(network));
    }

    /// Tables of ours that no network uses.
    pub(super) fn unclaimed_tables(&self, host: &Host) -> Vec<u32> {
        let spare = |table: &&u32| !self.claimed.contains(table) || self.released.contains(table);
        host.tables.keys().filter(spare).copied().collect()
    }

    /// The port of a device that is to be made: the recorded one unless somebody else took it, else the lowest free
    /// one. `None`: the range is used up.
    pub(super) fn port(&mut self, device: &DeviceId, host: &Host) -> Option<u16> {
        if let Some(given) = self.given_ports.get(device) {
            return *given;
        }
        let recorded = self.recorded_port(device).filter(|port| !host.used_ports.contains(port));
        let recorded_ports = || self.recorded.links.values().map(|link| link.listen_port);
        let used = self
            .used_ports
            .get_or_insert_with(|| host.used_ports.iter().copied().chain(recorded_ports()).collect());
        let port = recorded.or_else(|| self.spare_ports.find(|port| !used.contains(port)));
        used.extend(port);
        self.given_ports.insert(device.clone(), port);
        port
    }

    fn recorded_port(&self, device: &DeviceId) -> Option<u16> {
        let DeviceId { network, role, peer } = device;
        let link = match peer {
            Some(peer) => {
                let id = LinkId { network: network.clone(), peer: peer.clone(), role: *role };
                self.recorded.links.get(&id)
            }
            None => {
                let mut links = self.recorded.links.iter();
                links.find(|(id, _)| id.role == *role && id.network == *network).map(|(_, link)| link)
            }
        };
        link.map(|link| link.listen_port)
    }
}
