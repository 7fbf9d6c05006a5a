//! Steps in words, with names instead of numbers and hashes. It refuses moments: they are not part of what is done.

use std::collections::BTreeMap;

use ipnet::IpNet;
use spanwire_engine::{
    DeviceId, DeviceName, GatewayName, LinkId, PublicKey,
    worker::{HostStep, RecordStep, Step},
};

use super::World;

/// Names for devices and keys.
pub(crate) struct Words {
    devices: BTreeMap<DeviceName, DeviceId>,
    keys: BTreeMap<PublicKey, GatewayName>,
    tables: BTreeMap<u32, String>,
}

pub(crate) fn list<T: ToString>(items: impl IntoIterator<Item = T>) -> String {
    let words: Vec<String> = items.into_iter().map(|item| item.to_string()).collect();
    if words.is_empty() { "nothing".to_owned() } else { words.join(" ") }
}

impl Words {
    /// Of one host, with the devices that `steps` make.
    pub(crate) fn new(world: &World, me: &GatewayName, steps: &[Step]) -> Self {
        let host = &world.hosts[me].host;
        let there = host.devices.iter().filter_map(|(id, device)| Some((device.name.clone()?, id.clone())));
        let mut devices: BTreeMap<DeviceName, DeviceId> = there.collect();
        for step in steps {
            if let Step::Host(HostStep::Device(config)) = step {
                devices.insert(config.name.clone(), config.id.clone());
            }
        }
        let mut keys = BTreeMap::new();
        for gateway in world.hosts.keys() {
            for generation in 1..=3 {
                keys.insert(super::build::key(gateway, generation), gateway.clone());
            }
        }
        let led =
            host.tables.iter().flat_map(|(table, observed)| observed.rules.iter().map(|name| (*table, name)));
        let leads = steps.iter().filter_map(|step| match step {
            Step::Host(HostStep::AddRule { table, device }) => Some((*table, device)),
            _ => None,
        });
        let tables = led.chain(leads);
        let tables = tables
            .filter_map(|(table, name)| Some((table, devices.get(name)?.network.to_string())))
            .collect();
        Self { devices, keys, tables }
    }

    pub(crate) fn device(&self, name: &DeviceName) -> String {
        self.devices.get(name).map_or_else(|| "a device that is gone".to_owned(), device)
    }

    pub(crate) fn peer(&self, key: &PublicKey) -> String {
        let known = self.keys.get(key).map(|gateway| format!("{gateway} (key {})", key.0[0]));
        known.unwrap_or_else(|| "a stranger".to_owned())
    }

    fn table(&self, table: u32) -> String {
        self.tables.get(&table).cloned().unwrap_or_else(|| format!("table {table}"))
    }

    /// One step, on one line.
    pub(crate) fn step(&self, step: &Step) -> String {
        match step {
            Step::Record(step) => match step {
                RecordStep::Intent(applied) => {
                    format!("record intent {} of generation {}", applied.intent.network, applied.generation)
                }
                RecordStep::Link(link) => {
                    let unwanted = if link.status.unwanted_since.is_some() { ", unwanted" } else { "" };
                    format!("record {} {}{unwanted}", self::link(&link.id), link.status.state.as_str())
                }
                RecordStep::ForgetLink(id) => format!("forget {}", self::link(id)),
                RecordStep::ForgetIntent(network) => format!("forget intent {network}"),
            },
            Step::Host(step) => self.host_step(step),
        }
    }

    fn host_step(&self, step: &HostStep) -> String {
        match step {
            HostStep::Firewall(firewall) => {
                let names = firewall.networks.iter().flat_map(|network| &network.devices);
                format!("filter for: {}", list(names.map(|(_, name)| self.device(name))))
            }
            HostStep::Table(config) => format!(
                "table of {}: unreachable {}; throw {}",
                self.table(config.table),
                list(&config.unreachable),
                list(&config.throw)
            ),
            HostStep::Device(config) => {
                let address = list(config.address);
                format!(
                    "make device {}: port {}, address {address}, MTU {}",
                    device(&config.id),
                    config.port,
                    config.mtu
                )
            }
            HostStep::AddRule { table, device } => {
                format!("lead {} to the table of {}", self.device(device), self.table(*table))
            }
            HostStep::Peer(config) => {
                let endpoint = config.endpoint.map(|to| format!(", dial {to}")).unwrap_or_default();
                let prefixes: Vec<&IpNet> = config.allowed_ips.iter().collect();
                let device = self.device(&config.device);
                format!(
                    "set peer {} on {device}: {}{endpoint}",
                    self.peer(&config.public_key),
                    list(prefixes)
                )
            }
            HostStep::Route { table, kind, prefix, device, .. } => {
                let kind = format!("{kind:?}").to_lowercase();
                format!("route {kind} {prefix} of {} over {}", self.table(*table), self.device(device))
            }
            HostStep::RemoveRoute { table, kind, prefix } => {
                let kind = format!("{kind:?}").to_lowercase();
                format!("remove route {kind} {prefix} of {}", self.table(*table))
            }
            HostStep::RemovePeer { device, public_key } => {
                format!("remove peer {} from {}", self.peer(public_key), self.device(device))
            }
            HostStep::RemoveRule { device, .. } => format!("no longer lead {}", self.device(device)),
            HostStep::RemoveDevice(name) => format!("remove device {}", self.device(name)),
            HostStep::TakeOver { to, port, .. } => format!("let {to} take over at {port}"),
            HostStep::RemoveTable(table) => format!("remove the table of {}", self.table(*table)),
        }
    }
}

/// A link in words.
pub(crate) fn link(id: &LinkId) -> String {
    format!("{} {} {}", id.network, id.role, id.peer)
}

/// A device in words.
pub(crate) fn device(id: &DeviceId) -> String {
    let peer = id.peer.as_ref().map(|peer| format!("-{peer}")).unwrap_or_default();
    format!("{}/{}{peer}", id.network, id.role)
}
