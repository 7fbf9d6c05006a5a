//! The steps of one network. It refuses to touch a device that could not be read, or anything of another network.

mod shape;

use std::collections::{BTreeMap, BTreeSet};

use ipnet::IpNet;

use crate::{
    DeviceName, LinkRole, Now, OnTimeout, PublicKey,
    firewall::NetworkFirewall,
    worker::{
        DeviceConfig, Host, HostStep, PeerConfig, RecordStep, Recorded, RouteKind, Step, TableConfig,
        WantedLink,
        links::{Links, Row, Succession},
        routes::{self, Routes},
    },
};

use super::{Numbers, Report, record};

/// What the plan of one network contributes to the plan of the host.
pub(super) struct NetworkPlan {
    pub(super) intent: Vec<Step>,
    pub(super) constructive: Vec<Step>,
    pub(super) destructive: Vec<Step>,
    /// Its part of the filter while everything stands that goes or comes.
    pub(super) firewall: Option<NetworkFirewall>,
    /// Its devices when those are gone that go.
    pub(super) staying: BTreeSet<(LinkRole, DeviceName)>,
    /// Whether enough is known of the network to say what the filter should be.
    pub(super) firewall_known: bool,
}

struct Planner<'a, 'n> {
    links: Links<'a>,
    host: &'a Host,
    now: &'a Now,
    numbers: &'n mut Numbers<'a>,
    /// What is unreachable where no route leads.
    covered: Vec<IpNet>,
    /// Devices of this network after the constructive steps.
    devices: BTreeSet<(LinkRole, DeviceName)>,
    /// Devices that go.
    removed: BTreeSet<(LinkRole, DeviceName)>,
    constructive: Vec<Step>,
    destructive: Vec<Step>,
    making: Making,
    /// The devices that links share, once they are made.
    made: BTreeMap<LinkRole, Made>,
}

pub(super) fn plan<'a>(
    mut links: Links<'a>,
    recorded: &Recorded,
    host: &'a Host,
    now: &'a Now,
    numbers: &mut Numbers<'a>,
    report: &mut Report,
) -> NetworkPlan {
    let network = links.network;
    let known = numbers.known_table(network).and_then(|table| host.tables.get(&table));
    links.read_exact_routes(known);
    let holder = routes::wide_holder(&links, known);
    let routes = routes::decide(&links, holder);
    let observed = links.devices.iter().filter_map(|(id, device)| Some((id.role, device.name.clone()?)));
    // What can't be read is still there, and stays behind the filter.
    let unreadable = host.unreadable.keys().filter(|id| id.network == *network);
    let leaving = links.successions.iter().map(|(id, leaving)| (id.role, leaving.old_name.clone()));
    let observed = observed.chain(leaving);
    let devices =
        observed.chain(unreadable.map(|id| (id.role, id.name(links.me, links.desired.backend)))).collect();
    let mut planner = Planner {
        covered: shape::covered(&links),
        links,
        host,
        now,
        numbers,
        devices,
        removed: BTreeSet::new(),
        constructive: Vec::new(),
        destructive: Vec::new(),
        making: Making::default(),
        made: BTreeMap::new(),
    };
    planner.make_links();
    planner.set_routes(&routes);
    planner.remove_links(report);
    planner.finish(recorded, report)
}

/// A device of wanted links.
#[derive(Debug, Clone)]
struct Made {
    name: DeviceName,
    /// Where it is to listen in the end.
    port: u16,
    /// Where it listens until it takes the place of another.
    until: u16,
}

/// The steps of wanted links by kind. A new link is recorded before it is made, a changed one after: a kill in between is
/// seen by the next pass. The peers of one device come together, so that the host can take them in one call.
#[derive(Default)]
struct Making {
    records: Vec<Step>,
    devices: Vec<Step>,
    peers: Vec<PeerConfig>,
    changed_records: Vec<Step>,
}

impl Making {
    fn steps(mut self) -> impl Iterator<Item = Step> {
        self.peers.sort_by(|one, other| one.device.cmp(&other.device));
        let peers = self.peers.into_iter().map(|peer| Step::Host(HostStep::Peer(peer)));
        self.records.into_iter().chain(self.devices).chain(peers).chain(self.changed_records)
    }
}

impl<'a> Planner<'a, '_> {
    /// Table first, then the wanted links with their devices.
    fn make_links(&mut self) {
        let rows = &self.links.rows;
        let stays = |row: &Row<'_>| row.wanted.is_some() || (row.present && !self.links.goes(row));
        if !rows.iter().any(stays) {
            return;
        }
        let Some(table) = self.numbers.table(self.links.network) else { return };
        self.make_table(table);
        for at in 0..self.links.rows.len() {
            let Some(row) = self.links.rows.get(at).copied() else { continue };
            if let Some(link) = row.wanted {
                self.make_link(table, &row, link);
            }
        }
        self.constructive.extend(std::mem::take(&mut self.making).steps());
        self.take_over();
    }

    /// Devices that are complete take the places of those that go.
    fn take_over(&mut self) {
        for Succession { old: _, old_name, new_name, new, port } in self.links.successions.values() {
            if new.is_none_or(|device| device.port != *port) {
                let (from, to) = ((*old_name).clone(), new_name.clone());
                self.constructive.push(Step::Host(HostStep::TakeOver { from, to, port: *port }));
            }
        }
    }

    fn make_table(&mut self, table: u32) {
        let stands = self.host.tables.get(&table).is_some_and(|observed| {
            observed.host_rule
                && observed.unreachable.iter().eq(&self.covered)
                && observed.throw.iter().eq(&self.links.desired.own)
        });
        if !stands && self.links.desired.applied.is_some() {
            let (unreachable, throw) = (self.covered.clone(), self.links.desired.own.clone());
            let order = self.numbers.order(table);
            self.host_step(HostStep::Table(TableConfig { table, order, unreachable, throw }));
        }
    }

    fn host_step(&mut self, step: HostStep) {
        self.constructive.push(Step::Host(step));
    }

    fn make_link(&mut self, table: u32, row: &Row<'a>, link: &WantedLink) {
        let is_unknown = || self.host.unreadable.contains_key(&self.links.device_id(row.key));
        if !self.host.unreadable.is_empty() && is_unknown() {
            return;
        }
        let made = self.made.get(&row.role()).filter(|_| row.role().shares_device()).cloned();
        let is_made = made.is_some();
        let Some(Made { name, port, until }) = made.or_else(|| self.name_and_ports(row)) else { return };
        let record = record::wanted(&self.links, row, link, &name, port, self.now);
        let record = record.map(|record| Step::Record(RecordStep::Link(Box::new(record))));
        let is_new = row.peer.is_none() || row.recorded.is_none();
        let records = if is_new { &mut self.making.records } else { &mut self.making.changed_records };
        records.extend(record);
        if !is_made {
            self.make_device(table, row, Made { name: name.clone(), port, until });
        }
        let peer = self.peer_change(row, link, &name);
        self.making.peers.extend(peer);
        let stale = row.recorded.map(|recorded| recorded.public_key).filter(|old| *old != link.public_key);
        let there = |old: &PublicKey| row.device.is_some_and(|device| device.peers.contains_key(old));
        if let Some(public_key) = stale.filter(there) {
            self.destructive.push(Step::Host(HostStep::RemovePeer { device: name, public_key }));
        }
    }

    fn name_and_ports(&mut self, row: &Row<'a>) -> Option<Made> {
        let succession = self.links.succession(row);
        let there = succession.map_or(row.device, |succession| succession.new);
        let lasting = succession.map(|succession| succession.port);
        let observed = there.map(|device| device.port).filter(|port| *port != 0);
        let until = observed.or_else(|| self.numbers.port(&self.links.device_id(row.key), self.host))?;
        Some(Made { name: self.links.device_name(row), port: lasting.unwrap_or(until), until })
    }

    fn make_device(&mut self, table: u32, row: &Row<'a>, made: Made) {
        let (name, port) = (&made.name, made.until);
        let mtu = self.mtu(row);
        let address = self.links.desired.tunnel_address;
        let right = row.device.is_some_and(|device| {
            device.ready
                && device.name.as_ref().is_none_or(|have| have == name)
                && device.port == port
                && device.mtu == mtu
                && device.public_key == Some(self.links.own_key)
                && device.addresses.iter().eq(address.iter())
        });
        if !right {
            let id = self.links.device_id(row.key);
            let config = DeviceConfig { id, name: name.clone(), port, address, mtu };
            self.making.devices.push(Step::Host(HostStep::Device(config)));
        }
        self.devices.insert((row.role(), name.clone()));
        if !self.host.tables.get(&table).is_some_and(|table| table.rules.contains(name)) {
            self.making.devices.push(Step::Host(HostStep::AddRule { table, device: name.clone() }));
        }
        if row.role().shares_device() {
            self.made.insert(row.role(), made);
        }
    }

    /// Exact routes first, then the wide one, then what is no longer asked for.
    fn set_routes(&mut self, routes: &Routes<'a>) {
        let Some(table) = self.numbers.known_table(self.links.network) else { return };
        let observed = self.host.tables.get(&table);
        let mut standing = observed.into_iter().flat_map(|table| &table.routes).peekable();
        let (mut missing, mut gone) = (Vec::new(), Vec::new());
        for ((kind, prefix), row) in self.wanted_routes(routes) {
            while let Some((route, _)) = standing.next_if(|(route, _)| **route < (kind, prefix)) {
                gone.push(*route);
            }
            let source = self.links.desired.tunnel_address;
            let source = source.filter(|source| source.is_ipv4() == prefix.addr().is_ipv4());
            let stands = standing.next_if(|(route, _)| **route == (kind, prefix));
            let device = self.carrier(row);
            if !stands.is_some_and(|(_, route)| route.device == device && route.source == source) {
                missing.push(Step::Host(HostStep::Route { table, kind, prefix, device, source }));
            }
        }
        gone.extend(standing.map(|(route, _)| *route));
        self.constructive.append(&mut missing);
        if !self.links.desired.incomplete {
            let removal = |(kind, prefix)| Step::Host(HostStep::RemoveRoute { table, kind, prefix });
            self.destructive.extend(gone.into_iter().map(removal));
        }
    }

    /// The routes that should stand, sorted, each with the link that carries it. Of two peers with one prefix the later
    /// one has it, as on a device.
    fn wanted_routes<'r>(
        &'r self,
        routes: &'r Routes<'a>,
    ) -> impl Iterator<Item = ((RouteKind, IpNet), &'r Row<'a>)> {
        let carries = |at: &usize| routes.exact.get(*at).is_some_and(|carries| *carries);
        let of_prefix = self.links.by_prefix.chunk_by(|a, b| a.0 == b.0);
        let exact = of_prefix.filter_map(move |links| {
            let (prefix, at) = links.iter().rfind(|(_, at)| carries(at))?;
            Some(((RouteKind::Exact, *prefix), self.links.rows.get(*at)?))
        });
        let wide = routes.wide.and_then(|key| self.links.row(key)).into_iter();
        exact.chain(wide.flat_map(|row| {
            self.links.desired.wide.iter().map(move |prefix| ((RouteKind::Wide, *prefix), row))
        }))
    }

    /// The name of the device that carries a link.
    fn carrier(&self, row: &Row<'a>) -> DeviceName {
        let made = self.made.get(&row.role());
        made.map_or_else(|| self.links.device_name(row), |made| made.name.clone())
    }

    /// Links that are due go; the others are recorded as unwanted, with what they wait for.
    fn remove_links(&mut self, report: &mut Report) {
        let unwanted = self.links.rows.iter().filter(|row| row.is_unwanted()).copied();
        let (going, held): (Vec<Row<'a>>, Vec<Row<'a>>) = unwanted.partition(|row| self.links.goes(row));
        for row in &held {
            self.hold_link(row, report);
        }
        self.remove_devices();
        for row in going {
            let name = self.links.device_name(&row);
            let on_device = (row.role(), name);
            if let Some(public_key) = row.peer_key().filter(|_| !self.removed.contains(&on_device)) {
                self.destructive.push(Step::Host(HostStep::RemovePeer { device: on_device.1, public_key }));
            }
            if row.recorded.is_some() {
                self.destructive.push(Step::Record(RecordStep::ForgetLink(self.links.id(row.key))));
            }
        }
        self.remove_strangers(report);
    }

    fn hold_link(&mut self, row: &Row<'a>, report: &mut Report) {
        let holders: Vec<_> = self.links.holders(row).map(|key| self.links.id(key)).collect();
        let change = self.links.desired.applied.as_ref().map(|applied| applied.intent.hub_change);
        let holds = change.is_some_and(|change| change.on_timeout == OnTimeout::Hold) && !holders.is_empty();
        if change.is_some() && !holds {
            let left = self.links.time_left(row);
            report.next_due = Some(report.next_due.map_or(left, |next| next.min(left)));
        }
        report.held.insert(self.links.id(row.key), holders);
        if self.links.desired.keep.is_some() {
            return;
        }
        let record = record::unwanted(&self.links, row, self.now);
        if let Some(record) = record.filter(|record| row.recorded != Some(record)) {
            self.constructive.push(Step::Record(RecordStep::Link(Box::new(record))));
        }
    }

    /// A device goes when no link stays on it.
    fn remove_devices(&mut self) {
        if self.links.desired.keep.is_some() {
            return;
        }
        let stays = |row: &&Row<'a>| (row.wanted.is_some() || row.present) && !self.links.goes(row);
        let device_of = |row: &Row<'a>| (row.role(), (!row.role().shares_device()).then_some(row.key.0));
        let mut used = BTreeSet::new();
        used.extend(self.links.rows.iter().filter(stays).map(device_of));
        let devices = self.links.devices.iter();
        let idle = devices.filter(|(id, _)| !used.contains(&(id.role, id.peer.as_ref())));
        let idle = idle.filter_map(|(id, device)| Some((id.role, device.name.clone()?)));
        let leaving = self.links.successions.iter().map(|(id, leaving)| (id.role, leaving.old_name.clone()));
        let names: Vec<_> = idle.chain(leaving).collect();
        for (role, name) in names {
            self.destructive.push(Step::Host(HostStep::RemoveDevice(name.clone())));
            self.removed.insert((role, name));
        }
        self.remove_rules();
    }

    /// A rule goes after its device: what arrives on a device without one would follow the host's own routes.
    fn remove_rules(&mut self) {
        let Some(table) = self.numbers.known_table(self.links.network) else { return };
        let staying: BTreeSet<&DeviceName> =
            self.devices.difference(&self.removed).map(|(_, device)| device).collect();
        let rules = self.host.tables.get(&table).into_iter().flat_map(|table| &table.rules);
        let gone = rules.filter(|name| !staying.contains(name)).cloned();
        self.destructive.extend(gone.map(|device| Step::Host(HostStep::RemoveRule { table, device })));
    }

    fn remove_strangers(&mut self, report: &mut Report) {
        if self.links.desired.keep.is_some() {
            return;
        }
        let removed: BTreeSet<&DeviceName> = self.removed.iter().map(|(_, device)| device).collect();
        for (device, public_key) in &self.links.strangers {
            if !removed.contains(device) {
                let (device, public_key) = (device.clone(), *public_key);
                report.strangers.push((device.clone(), public_key));
                self.destructive.push(Step::Host(HostStep::RemovePeer { device, public_key }));
            }
        }
    }

    fn finish(mut self, recorded: &Recorded, report: &mut Report) -> NetworkPlan {
        let network = self.links.network;
        let desired = self.links.desired;
        if let Some(why) = &desired.keep {
            report.kept.insert(network.clone(), why.clone());
        }
        let staying: BTreeSet<_> = self.devices.difference(&self.removed).cloned().collect();
        let holds = self.links.rows.iter().any(Row::is_wanted) || !staying.is_empty();
        if !holds && desired.keep.is_none() {
            self.numbers.release_table(network);
        }
        if desired.absent && !holds && recorded.intents.contains_key(network) && desired.keep.is_none() {
            self.destructive.push(Step::Record(RecordStep::ForgetIntent(network.clone())));
        }
        let intent = record::intent(&self.links, recorded.intents.get(network))
            .filter(|_| !desired.absent && !desired.incomplete);
        NetworkPlan {
            firewall: self.firewall(),
            staying,
            firewall_known: desired.applied.is_some() || desired.keep.is_none(),
            intent: intent
                .map(|applied| Step::Record(RecordStep::Intent(Box::new(applied))))
                .into_iter()
                .collect(),
            constructive: self.constructive,
            destructive: self.destructive,
        }
    }
}
