//! The steps of one network. It refuses to touch a device that could not be read, or anything of another network.

mod shape;

use std::collections::{BTreeMap, BTreeSet};

use ipnet::IpNet;

use crate::{
    DeviceName, LinkRole, Now,
    firewall::NetworkFirewall,
    worker::{
        DeviceConfig, Host, HostStep, ObservedTable, RecordStep, Recorded, RouteKind, Step, TableConfig,
        WantedLink,
        links::{Key, Links, Row},
        routes::{self, Routes},
    },
};

use super::{Numbers, Report, record};

/// What the plan of one network contributes to the plan of the host.
pub(super) struct NetworkPlan {
    pub(super) intent: Vec<Step>,
    pub(super) constructive: Vec<Step>,
    pub(super) destructive: Vec<Step>,
    pub(super) firewall_before: Option<NetworkFirewall>,
    pub(super) firewall_after: Option<NetworkFirewall>,
    /// Whether enough is known of the network to say what the filter should be.
    pub(super) firewall_known: bool,
}

struct Planner<'a, 'n> {
    links: Links<'a>,
    host: &'a Host,
    now: &'a Now,
    numbers: &'n mut Numbers<'a>,
    /// Devices of this network after the constructive steps.
    devices: BTreeSet<(LinkRole, DeviceName)>,
    /// Devices that go.
    removed: BTreeSet<(LinkRole, DeviceName)>,
    constructive: Vec<Step>,
    destructive: Vec<Step>,
    made: BTreeMap<DeviceName, u16>,
}

pub(super) fn plan<'a>(
    mut links: Links<'a>,
    recorded: &Recorded,
    host: &'a Host,
    now: &'a Now,
    numbers: &mut Numbers<'a>,
    report: &mut Report,
) -> NetworkPlan {
    let network = links.network.clone();
    let known = numbers.known_table(&network).and_then(|table| host.tables.get(&table));
    links.read_exact_routes(known);
    let holder = routes::wide_holder(&links, known);
    let routes = routes::decide(&links, holder.as_ref());
    let observed = links.devices.iter().filter_map(|(id, device)| Some((id.role, device.name.clone()?)));
    // What can't be read is still there, and stays behind the filter.
    let unreadable = host.unreadable.keys().filter(|id| id.network == network);
    let devices = observed.chain(unreadable.map(|id| (id.role, id.name(links.me)))).collect();
    let mut planner = Planner {
        links,
        host,
        now,
        numbers,
        devices,
        removed: BTreeSet::new(),
        constructive: Vec::new(),
        destructive: Vec::new(),
        made: BTreeMap::new(),
    };
    planner.make_links();
    planner.set_routes(&routes, known);
    planner.remove_links(report);
    planner.finish(recorded, report)
}

impl Planner<'_, '_> {
    /// Table first, then each wanted link with its device.
    fn make_links(&mut self) {
        let wanted: Vec<(Key, WantedLink)> = self
            .links
            .rows
            .iter()
            .filter_map(|(key, row)| Some((key.clone(), row.wanted?.clone())))
            .collect();
        let stays = |(key, row): (&Key, &Row<'_>)| row.present && !self.goes(key, row);
        if wanted.is_empty() && !self.links.rows.iter().any(stays) {
            return;
        }
        if let Some(table) = self.numbers.table(self.links.network) {
            self.make_table(table);
            for (key, link) in &wanted {
                self.make_link(table, key, link);
            }
        }
    }

    fn make_table(&mut self, table: u32) {
        let unreachable = self.covered();
        let throw = self.links.desired.own.clone();
        let stands = self.host.tables.get(&table).is_some_and(|observed| {
            observed.host_rule
                && observed.unreachable.iter().eq(&unreachable)
                && observed.throw.iter().eq(&throw)
        });
        if !stands && self.links.desired.applied.is_some() {
            let order = self.numbers.order(table);
            self.host_step(HostStep::Table(TableConfig { table, order, unreachable, throw }));
        }
    }

    fn host_step(&mut self, step: HostStep) {
        self.constructive.push(Step::Host(step));
    }

    fn make_link(&mut self, table: u32, key: &Key, link: &WantedLink) {
        let Some(row) = self.links.row(key).cloned() else { return };
        let id = self.links.id(key).device();
        if self.host.unreadable.contains_key(&id) {
            return;
        }
        let name = self.links.device_name(key);
        let made = self.made.get(&name).copied();
        let observed = row.device.map(|device| device.port).filter(|port| *port != 0);
        let Some(port) = made.or(observed).or_else(|| self.numbers.port(&id, self.host)) else { return };
        let desired = record::wanted(&self.links, key, &row, link, name.clone(), port, self.now);
        let record =
            (row.recorded != Some(&desired)).then(|| Step::Record(RecordStep::Link(Box::new(desired))));
        // A new link is recorded before it is made, a changed one after: a kill in between is seen by the next pass.
        let (first, then) = if row.peer.is_none() { (record, None) } else { (None, record) };
        self.constructive.extend(first);
        if made.is_none() {
            self.make_device(table, key, &row, &name, port);
            self.made.insert(name.clone(), port);
        }
        if let Some(peer) = self.peer_change(&row, link, &name) {
            self.host_step(HostStep::Peer(peer));
        }
        self.constructive.extend(then);
        let stale = row.recorded.map(|recorded| recorded.public_key).filter(|old| *old != link.public_key);
        if let Some(old) = stale.filter(|old| row.device.is_some_and(|device| device.peers.contains_key(old)))
        {
            self.destructive.push(Step::Host(HostStep::RemovePeer { device: name, public_key: old }));
        }
    }

    fn make_device(&mut self, table: u32, key: &Key, row: &Row<'_>, name: &DeviceName, port: u16) {
        let desired = self.links.desired;
        let mtu = self.mtu(key.1, row);
        let address = desired.tunnel_address;
        let right = row.device.is_some_and(|device| {
            device.ready
                && device.port == port
                && device.mtu == mtu
                && device.public_key == Some(self.links.own_key)
                && device.addresses.iter().eq(address.iter())
        });
        if !right {
            let id = self.links.id(key).device();
            self.host_step(HostStep::Device(DeviceConfig { id, name: name.clone(), port, address, mtu }));
        }
        self.devices.insert((key.1, name.clone()));
        if !self.host.tables.get(&table).is_some_and(|table| table.rules.contains(name)) {
            self.host_step(HostStep::AddRule { table, device: name.clone() });
        }
    }

    /// Exact routes first, then the wide one, then what is no longer asked for.
    fn set_routes(&mut self, routes: &Routes, observed: Option<&ObservedTable>) {
        let Some(table) = self.numbers.known_table(self.links.network) else { return };
        let mut wanted: BTreeMap<(RouteKind, IpNet), DeviceName> = BTreeMap::new();
        for key in routes.exact.values() {
            let device = self.links.device_name(key);
            let prefixes = self.links.row(key).map(Row::prefixes).unwrap_or_default();
            wanted.extend(prefixes.iter().map(|prefix| ((RouteKind::Exact, *prefix), device.clone())));
        }
        if let Some(key) = &routes.wide {
            let device = self.links.device_name(key);
            wanted.extend(
                self.links.desired.wide.iter().map(|prefix| ((RouteKind::Wide, *prefix), device.clone())),
            );
        }
        for ((kind, prefix), device) in &wanted {
            let source = self
                .links
                .desired
                .tunnel_address
                .filter(|source| source.is_ipv4() == prefix.addr().is_ipv4());
            let stands = observed
                .and_then(|table| table.routes.get(&(*kind, *prefix)))
                .is_some_and(|route| route.device == *device && route.source == source);
            if !stands {
                let step =
                    HostStep::Route { table, kind: *kind, prefix: *prefix, device: device.clone(), source };
                self.host_step(step);
            }
        }
        if self.links.desired.incomplete {
            return;
        }
        let routes = observed.into_iter().flat_map(|table| table.routes.keys());
        for (kind, prefix) in routes.filter(|route| !wanted.contains_key(route)) {
            self.destructive.push(Step::Host(HostStep::RemoveRoute { table, kind: *kind, prefix: *prefix }));
        }
    }

    /// Whether a link goes in this plan: it is unwanted and due, or nothing of it can be taken on.
    fn goes(&self, key: &Key, row: &Row<'_>) -> bool {
        let adoptable = row.recorded.is_some() || row.device.is_some_and(|device| !device.peers.is_empty());
        let idle = !adoptable && self.links.desired.keep.is_none();
        row.is_unwanted() && (self.links.is_due(key.1, row) || idle)
    }

    /// Links that are due go; the others are recorded as unwanted, with what they wait for.
    fn remove_links(&mut self, report: &mut Report) {
        let unwanted: Vec<(Key, Row<'_>)> = self
            .links
            .rows
            .iter()
            .filter(|(_, row)| row.is_unwanted())
            .map(|(k, r)| (k.clone(), r.clone()))
            .collect();
        let mut going = Vec::new();
        for (key, row) in unwanted {
            if self.goes(&key, &row) {
                going.push((key, row));
                continue;
            }
            let holders = self.links.holders(key.1, &row);
            self.note_due_time(&holders, &row, report);
            report
                .held
                .insert(self.links.id(&key), holders.into_iter().map(|key| self.links.id(key)).collect());
            if self.links.desired.keep.is_some() {
                continue;
            }
            let record = record::unwanted(&self.links, &key, &row, self.now);
            if let Some(record) = record.filter(|record| row.recorded != Some(record)) {
                self.constructive.push(Step::Record(RecordStep::Link(Box::new(record))));
            }
        }
        self.remove_devices(&going);
        for (key, row) in going {
            let name = self.links.device_name(&key);
            let device_goes = self.removed.iter().any(|(_, removed)| *removed == name);
            if let Some((public_key, _)) = row.peer.filter(|_| !device_goes) {
                self.destructive.push(Step::Host(HostStep::RemovePeer { device: name, public_key }));
            }
            if row.recorded.is_some() {
                self.destructive.push(Step::Record(RecordStep::ForgetLink(self.links.id(&key))));
            }
        }
        self.remove_strangers(report);
    }

    /// When a held link's time is over, if nothing else happens.
    fn note_due_time(&self, holders: &[&Key], row: &Row<'_>, report: &mut Report) {
        let Some(applied) = &self.links.desired.applied else { return };
        let change = applied.intent.hub_change;
        let holds = change.on_timeout == crate::OnTimeout::Hold && !holders.is_empty();
        let left = holders.iter().map(|holder| {
            let later =
                self.links.wanted_since(holder).since_boot.max(self.links.unwanted_since(row).since_boot);
            change.connect_timeout.saturating_sub(self.now.boot.since_boot.saturating_sub(later))
        });
        let left = left.max().unwrap_or_default().max(self.links.linger_left(row));
        if !holds {
            report.next_due = Some(report.next_due.map_or(left, |next| next.min(left)));
        }
    }

    /// A device goes when no link stays on it.
    fn remove_devices(&mut self, going: &[(Key, Row<'_>)]) {
        if self.links.desired.keep.is_some() {
            return;
        }
        let gone: BTreeSet<&Key> = going.iter().map(|(key, _)| key).collect();
        let stays = |id: &crate::DeviceId| {
            self.links.rows.iter().any(|(key, row)| {
                let on_it = key.1 == id.role && id.peer.as_ref().is_none_or(|peer| *peer == key.0);
                on_it && !gone.contains(key) && (row.wanted.is_some() || row.present)
            })
        };
        let devices = self.links.devices.iter().filter(|(id, _)| !stays(id));
        let names: Vec<_> =
            devices.filter_map(|(id, device)| Some((id.role, device.name.clone()?))).collect();
        for (role, name) in names {
            self.destructive.push(Step::Host(HostStep::RemoveDevice(name.clone())));
            self.removed.insert((role, name));
        }
        self.remove_rules();
    }

    /// A rule goes after its device: what arrives on a device without one would follow the host's own routes.
    fn remove_rules(&mut self) {
        let Some(table) = self.numbers.known_table(self.links.network) else { return };
        let stays = |name: &DeviceName| {
            let mut staying = self.devices.difference(&self.removed);
            staying.any(|(_, device)| device == name)
        };
        let rules = self.host.tables.get(&table).into_iter().flat_map(|table| &table.rules);
        let gone = rules.filter(|name| !stays(name)).cloned();
        let steps = gone.map(|device| Step::Host(HostStep::RemoveRule { table, device }));
        self.destructive.extend(steps.collect::<Vec<_>>());
    }

    fn remove_strangers(&mut self, report: &mut Report) {
        if self.links.desired.keep.is_some() {
            return;
        }
        for (device, public_key) in self.links.strangers.clone() {
            if self.removed.iter().any(|(_, removed)| *removed == device) {
                continue;
            }
            report.strangers.push((device.clone(), public_key));
            self.destructive.push(Step::Host(HostStep::RemovePeer { device, public_key }));
        }
    }

    fn finish(mut self, recorded: &Recorded, report: &mut Report) -> NetworkPlan {
        let network = self.links.network;
        let desired = self.links.desired;
        if let Some(why) = &desired.keep {
            report.kept.insert(network.clone(), why.clone());
        }
        let rest: BTreeSet<_> = self.devices.difference(&self.removed).cloned().collect();
        let holds = self.links.rows.values().any(Row::is_wanted) || !rest.is_empty();
        if !holds && desired.keep.is_none() {
            self.numbers.release_table(network);
        }
        if desired.absent && !holds && recorded.intents.contains_key(network) && desired.keep.is_none() {
            self.destructive.push(Step::Record(RecordStep::ForgetIntent(network.clone())));
        }
        let intent = record::intent(&self.links).filter(|applied| {
            !desired.absent && !desired.incomplete && recorded.intents.get(network) != Some(applied)
        });
        NetworkPlan {
            firewall_before: self.firewall(&self.devices),
            firewall_after: self.firewall(&rest),
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
