//! Ports and routing tables: what a host gives out. It refuses to move a number that is in use.

use std::collections::{BTreeMap, BTreeSet};

use crate::{
    DeviceId, NetworkName,
    worker::{Desired, Host, Recorded, Settings},
};

pub(super) struct Numbers<'a> {
    settings: &'a Settings,
    tables: BTreeMap<NetworkName, u32>,
    claimed: BTreeSet<u32>,
    recorded_ports: BTreeMap<DeviceId, u16>,
    used_ports: BTreeSet<u16>,
    given_ports: BTreeMap<DeviceId, Option<u16>>,
}

impl<'a> Numbers<'a> {
    pub(super) fn new(desired: &'a Desired, recorded: &Recorded, host: &Host) -> Self {
        let recorded_ports: BTreeMap<DeviceId, u16> =
            recorded.links.iter().map(|(id, link)| (id.device(), link.listen_port)).collect();
        let used_ports = host.used_ports.iter().chain(recorded_ports.values()).copied().collect();
        let mut numbers = Self {
            settings: &desired.settings,
            tables: BTreeMap::new(),
            claimed: BTreeSet::new(),
            recorded_ports,
            used_ports,
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
        let recorded = self.recorded_ports.get(device).filter(|port| !host.used_ports.contains(port));
        let port = recorded
            .copied()
            .or_else(|| self.settings.ports.clone().find(|port| !self.used_ports.contains(port)));
        self.used_ports.extend(port);
        self.given_ports.insert(device.clone(), port);
        port
    }
}
