//! Ports and routing tables: what a host gives out. It refuses to move a number that is in use.

use std::{
    collections::{BTreeMap, BTreeSet},
    ops::RangeInclusive,
};

use crate::{
    DeviceId, LinkId, NetworkName,
    worker::{Desired, Host, Recorded, Settings},
};

pub(super) struct Numbers<'a> {
    settings: &'a Settings,
    tables: BTreeMap<NetworkName, u32>,
    claimed: BTreeSet<u32>,
    recorded: &'a Recorded,
    used_ports: BTreeSet<u16>,
    /// Ports that were not looked at yet.
    spare_ports: RangeInclusive<u16>,
    given_ports: BTreeMap<DeviceId, Option<u16>>,
}

impl<'a> Numbers<'a> {
    pub(super) fn new(desired: &'a Desired, recorded: &'a Recorded, host: &Host) -> Self {
        let recorded_ports = recorded.links.values().map(|link| link.listen_port);
        let used_ports = host.used_ports.iter().copied().chain(recorded_ports).collect();
        let mut numbers = Self {
            settings: &desired.settings,
            tables: BTreeMap::new(),
            claimed: BTreeSet::new(),
            recorded,
            used_ports,
            spare_ports: desired.settings.ports.clone(),
            given_ports: BTreeMap::new(),
        };
        numbers.recognise_tables(host);
        numbers
    }

    /// A network's table is the one to which the rules of its devices lead.
    fn recognise_tables(&mut self, host: &Host) {
        for (id, device) in &host.devices {
            let Some(name) = &device.name else { continue };
            let mut tables = host.tables.iter().filter(|(_, table)| table.rules.contains(name));
            if let Some((number, _)) = tables.next()
                && self.claimed.insert(*number)
            {
                self.tables.entry(id.network.clone()).or_insert(*number);
            }
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

    /// Frees the table of a network that has no link any more.
    pub(super) fn release_table(&mut self, network: &NetworkName) {
        if let Some(table) = self.tables.remove(network) {
            self.claimed.remove(&table);
        }
    }

    /// Tables of ours that no network uses.
    pub(super) fn unclaimed_tables(&self, host: &Host) -> Vec<u32> {
        host.tables.keys().filter(|table| !self.claimed.contains(table)).copied().collect()
    }

    /// The port of a device that is to be made: the recorded one unless somebody else took it, else the lowest free
    /// one. `None`: the range is used up.
    pub(super) fn port(&mut self, device: &DeviceId, host: &Host) -> Option<u16> {
        if let Some(given) = self.given_ports.get(device) {
            return *given;
        }
        let recorded = self.recorded_port(device).filter(|port| !host.used_ports.contains(port));
        let port = recorded.or_else(|| self.spare_ports.find(|port| !self.used_ports.contains(port)));
        self.used_ports.extend(port);
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
