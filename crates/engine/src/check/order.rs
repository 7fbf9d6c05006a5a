//! What is wrong with the order of steps: each is followed with what it needs and what it touches. It refuses to apply
//! them: it keeps the few facts about the host that the order is about.

use std::collections::{BTreeMap, BTreeSet};

use ipnet::IpNet;

use crate::{
    DeviceId, DeviceName, GatewayName, LinkId, LinkRole, NetworkName, PublicKey,
    firewall::Firewall,
    worker::{
        Desired, DeviceConfig, Host, HostStep, PeerConfig, RecordStep, Recorded, RouteKind, Step, TableConfig,
    },
};

use super::{Cover, Need, Violation};

pub(super) fn violations(
    desired: &Desired,
    recorded: &Recorded,
    host: &Host,
    steps: &[Step],
) -> Vec<Violation> {
    let mut walk = Walk::new(desired, recorded, host, steps);
    for (position, step) in steps.iter().enumerate() {
        walk.at = position;
        walk.note_order(step);
        match step {
            Step::Record(step) => walk.record(step),
            Step::Host(step) => walk.host(step),
        }
    }
    walk.found
}

/// What stands after the steps so far.
struct Walk<'a> {
    desired: &'a Desired,
    at: usize,
    devices: BTreeMap<DeviceName, DeviceId>,
    peers: BTreeSet<(DeviceName, PublicKey)>,
    /// The network of each table, also of those that are given out by this plan.
    tables: BTreeMap<u32, NetworkName>,
    made_tables: BTreeSet<u32>,
    rules: BTreeSet<DeviceName>,
    routes: BTreeMap<(u32, RouteKind, IpNet), DeviceName>,
    /// Devices that the filter knows; `None`: one stands, and the plan finds it right.
    filtered: Option<BTreeSet<DeviceName>>,
    records: BTreeMap<LinkId, Option<PublicKey>>,
    wanted: BTreeMap<(NetworkName, LinkRole, PublicKey), GatewayName>,
    /// The first removal of each network.
    removals: BTreeMap<NetworkName, usize>,
    touched: BTreeSet<NetworkName>,
    found: Vec<Violation>,
}

impl<'a> Walk<'a> {
    fn new(desired: &'a Desired, recorded: &Recorded, host: &Host, steps: &[Step]) -> Self {
        let named = host
            .devices
            .iter()
            .chain(&host.beside)
            .filter_map(|(id, device)| Some((device.name.clone()?, id, device)));
        let devices: BTreeMap<DeviceName, DeviceId> =
            named.clone().map(|(name, id, _)| (name, id.clone())).collect();
        let peers =
            named.flat_map(|(name, _, device)| device.peers.keys().map(move |key| (name.clone(), *key)));
        let wanted = desired.networks.iter().flat_map(|(network, wanted)| {
            let links = wanted.links.iter();
            links.map(move |((peer, role), link)| ((network.clone(), *role, link.public_key), peer.clone()))
        });
        let routes = host.tables.iter().flat_map(|(table, observed)| {
            let routes = observed.routes.iter();
            routes.map(move |((kind, prefix), route)| ((*table, *kind, *prefix), route.device.clone()))
        });
        Self {
            desired,
            at: 0,
            peers: peers.collect(),
            tables: tables(host, steps, &devices),
            made_tables: host.tables.keys().copied().collect(),
            rules: host.tables.values().flat_map(|table| table.rules.iter().cloned()).collect(),
            routes: routes.collect(),
            filtered: host.firewall.is_none().then(BTreeSet::new),
            records: recorded.links.iter().map(|(id, link)| (id.clone(), Some(link.public_key))).collect(),
            wanted: wanted.collect(),
            removals: BTreeMap::new(),
            touched: BTreeSet::new(),
            found: Vec::new(),
            devices,
        }
    }

    fn out_of_order(&mut self, needs: Need) {
        self.found.push(Violation::OutOfOrder { step: self.at, needs });
    }

    /// The network that a step is for. `None`: all (the filter), or none that is known.
    fn network(&self, step: &Step) -> Option<NetworkName> {
        let of_device = |name: &DeviceName| self.devices.get(name).map(|id| id.network.clone());
        match step {
            Step::Record(RecordStep::Intent(applied)) => Some(applied.intent.network.clone()),
            Step::Record(RecordStep::Link(link)) => Some(link.id.network.clone()),
            Step::Record(RecordStep::ForgetLink(id)) => Some(id.network.clone()),
            Step::Record(RecordStep::ForgetIntent(network)) => Some(network.clone()),
            Step::Host(step) => match step {
                HostStep::Firewall(_) => None,
                HostStep::Device(config) => Some(config.id.network.clone()),
                HostStep::Peer(config) => of_device(&config.device),
                HostStep::TakeOver { to, .. } => of_device(to),
                HostStep::RemovePeer { device, .. } | HostStep::RemoveDevice(device) => of_device(device),
                HostStep::Table(TableConfig { table, .. })
                | HostStep::AddRule { table, .. }
                | HostStep::Route { table, .. }
                | HostStep::RemoveRoute { table, .. }
                | HostStep::RemoveRule { table, .. }
                | HostStep::RemoveTable(table) => self.tables.get(table).cloned(),
            },
        }
    }

    fn note_order(&mut self, step: &Step) {
        let Some(network) = self.network(step) else { return };
        if matches!(step, Step::Record(RecordStep::Intent(_))) && self.touched.contains(&network) {
            self.out_of_order(Need::IntentFirst);
        }
        self.touched.insert(network.clone());
        if step.is_destructive() {
            self.removals.entry(network).or_insert(self.at);
        } else if let Some(removal) = self.removals.get(&network) {
            self.found.push(Violation::RemoveBeforeAdd { removal: *removal, addition: self.at });
        }
    }

    fn record(&mut self, step: &RecordStep) {
        match step {
            RecordStep::Intent(_) => {}
            RecordStep::Link(link) => {
                self.records.insert(link.id.clone(), Some(link.public_key));
            }
            RecordStep::ForgetLink(id) => {
                let key = self.records.remove(id).flatten();
                let device = self.devices.iter().find(|(_, device)| **device == id.device());
                let left =
                    key.zip(device).is_some_and(|(key, (name, _))| self.peers.contains(&(name.clone(), key)));
                // A key that another link of the device took over stays.
                let taken = key.is_some_and(|key| {
                    let owner = self.wanted.get(&(id.network.clone(), id.role, key));
                    owner.is_some_and(|owner| *owner != id.peer)
                });
                if left && !taken {
                    self.out_of_order(Need::LinkBeforeRecord);
                }
            }
            RecordStep::ForgetIntent(network) => {
                if self.records.keys().any(|id| id.network == *network) {
                    self.out_of_order(Need::LinksBeforeIntent);
                }
            }
        }
    }

    fn host(&mut self, step: &HostStep) {
        match step {
            HostStep::Firewall(firewall) => self.firewall(firewall),
            HostStep::Table(config) => {
                self.made_tables.insert(config.table);
            }
            HostStep::Device(DeviceConfig { id, name, .. }) => {
                self.devices.insert(name.clone(), id.clone());
            }
            HostStep::AddRule { table, device } => {
                self.use_table(*table, device);
                self.rules.insert(device.clone());
            }
            HostStep::Peer(config) => self.peer(config),
            HostStep::TakeOver { from, to, port: _ } => {
                if ![from, to].iter().all(|device| self.devices.contains_key(*device)) {
                    self.out_of_order(Need::Device);
                }
            }
            HostStep::Route { table, kind, prefix, device, .. } => {
                self.use_table(*table, device);
                self.routes.insert((*table, *kind, *prefix), device.clone());
            }
            HostStep::RemoveRoute { table, kind, prefix } => {
                self.routes.remove(&(*table, *kind, *prefix));
            }
            HostStep::RemovePeer { device, public_key } => self.remove_peer(device, public_key),
            HostStep::RemoveRule { table: _, device } => {
                self.rules.remove(device);
            }
            HostStep::RemoveDevice(name) => self.remove_device(name),
            HostStep::RemoveTable(table) => {
                self.made_tables.remove(table);
                self.routes.retain(|(of, _, _), _| of != table);
            }
        }
    }

    fn firewall(&mut self, firewall: &Firewall) {
        let devices = firewall.networks.iter().flat_map(|network| &network.devices);
        let known: BTreeSet<DeviceName> = devices.map(|(_, name)| name.clone()).collect();
        let with_peers: BTreeSet<&DeviceName> = self.peers.iter().map(|(name, _)| name).collect();
        let bare = with_peers.into_iter().filter(|name| !known.contains(*name)).cloned();
        self.found.extend(bare.map(|device| Violation::Uncovered { device, lacks: Cover::Firewall }));
        self.filtered = Some(known);
    }

    /// A device and the table it is used with must be there, and of one network.
    fn use_table(&mut self, table: u32, device: &DeviceName) {
        if !self.made_tables.contains(&table) {
            self.out_of_order(Need::Table);
        }
        let Some(id) = self.devices.get(device) else { return self.out_of_order(Need::Device) };
        let (network, step) = (id.network.clone(), self.at);
        if let Some(touches) = self.tables.get(&table).filter(|owner| **owner != network) {
            self.found.push(Violation::Crossing { step, network, touches: touches.clone() });
        }
    }

    fn peer(&mut self, config: &PeerConfig) {
        let Some(id) = self.devices.get(&config.device).cloned() else {
            return self.out_of_order(Need::Device);
        };
        let filtered = self.filtered.as_ref().is_none_or(|known| known.contains(&config.device));
        if !self.rules.contains(&config.device) || !filtered {
            self.out_of_order(Need::CoverBeforePeer);
        }
        if let Some(peer) = self.wanted.get(&(id.network.clone(), id.role, config.public_key)) {
            let link = LinkId { network: id.network, peer: peer.clone(), role: id.role };
            if !self.records.contains_key(&link) {
                self.out_of_order(Need::RecordBeforeLink);
            }
        }
        self.peers.insert((config.device.clone(), config.public_key));
    }

    fn remove_peer(&mut self, device: &DeviceName, public_key: &PublicKey) {
        self.peers.remove(&(device.clone(), *public_key));
        let Some(id) = self.devices.get(device) else { return };
        if let Some(peer) = self.wanted.get(&(id.network.clone(), id.role, *public_key)) {
            let link = LinkId { network: id.network.clone(), peer: peer.clone(), role: id.role };
            self.found.push(Violation::WantedRemoved { step: self.at, link });
        }
    }

    fn remove_device(&mut self, name: &DeviceName) {
        let Some(id) = self.devices.remove(name) else { return };
        self.peers.retain(|(device, _)| device != name);
        if self.routes.values().any(|device| device == name) {
            self.out_of_order(Need::RoutesBeforeRemoval);
        }
        // Another device of the same identity carries its links on.
        if self.devices.values().any(|other| *other == id) {
            return;
        }
        let links = self.desired.networks.get(&id.network).into_iter().flat_map(|wanted| wanted.links.keys());
        let carried = |(peer, role): &&(GatewayName, LinkRole)| {
            *role == id.role && id.peer.as_ref().is_none_or(|of| of == peer)
        };
        if let Some((peer, role)) = links.clone().find(carried) {
            let link = LinkId { network: id.network.clone(), peer: peer.clone(), role: *role };
            self.found.push(Violation::WantedRemoved { step: self.at, link });
        }
    }
}

/// The network of each table: of the devices whose rules lead there, now or by this plan.
fn tables(
    host: &Host,
    steps: &[Step],
    devices: &BTreeMap<DeviceName, DeviceId>,
) -> BTreeMap<u32, NetworkName> {
    let made = steps.iter().filter_map(|step| match step {
        Step::Host(HostStep::Device(config)) => Some((&config.name, &config.id.network)),
        Step::Host(_) | Step::Record(_) => None,
    });
    let networks: BTreeMap<&DeviceName, &NetworkName> =
        devices.iter().map(|(name, id)| (name, &id.network)).chain(made).collect();
    let led = steps.iter().filter_map(|step| match step {
        Step::Host(HostStep::AddRule { table, device }) => Some((*table, device)),
        Step::Host(_) | Step::Record(_) => None,
    });
    let standing =
        host.tables.iter().flat_map(|(table, observed)| observed.rules.iter().map(|name| (*table, name)));
    let mut tables = BTreeMap::new();
    for (table, device) in standing.chain(led) {
        if let Some(network) = networks.get(device) {
            tables.entry(table).or_insert_with(|| (*network).clone());
        }
    }
    tables
}
