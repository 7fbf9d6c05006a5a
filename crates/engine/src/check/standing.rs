//! What is wrong with what stands: dead routes, prefixes with two owners, devices that are not covered. It refuses to
//! judge a network of which something could not be read.

use std::collections::BTreeMap;

use ipnet::IpNet;

use crate::{
    DeviceId, DeviceName, GatewayName, LinkId, LinkRole, NetworkName, PublicKey, Role,
    worker::{Desired, DesiredNetwork, Evidence, Host, ObservedDevice, ObservedTable, Recorded, RouteKind},
};

use super::{Cover, Violation};

pub(super) fn violations(desired: &Desired, recorded: &Recorded, host: &Host) -> Vec<Violation> {
    let mut found = Vec::new();
    for (id, device) in &host.devices {
        found.extend(shared_prefixes(device));
        found.extend(uncovered(desired, host, id, device));
    }
    for (name, network) in desired.networks.iter().filter(|(_, network)| !network.incomplete) {
        found.extend(View { desired, name, network, recorded, host }.dead_routes());
    }
    found
}

fn shared_prefixes(device: &ObservedDevice) -> Vec<Violation> {
    let mut owners: BTreeMap<IpNet, PublicKey> = BTreeMap::new();
    let mut found = Vec::new();
    for (key, peer) in &device.peers {
        for prefix in &peer.allowed_ips {
            let Some(owner) = owners.insert(*prefix, *key) else { continue };
            let name = device.name.clone();
            found.extend(name.map(|device| Violation::SharedPrefix {
                device,
                prefix: *prefix,
                keys: [owner, *key],
            }));
        }
    }
    found
}

/// The table to which the rules of a device lead.
fn table_of<'a>(host: &'a Host, device: &DeviceName) -> Option<&'a ObservedTable> {
    host.tables.values().find(|table| table.rules.contains(device))
}

fn uncovered(desired: &Desired, host: &Host, id: &DeviceId, device: &ObservedDevice) -> Vec<Violation> {
    let Some(name) = device.name.as_ref().filter(|_| !device.peers.is_empty()) else { return Vec::new() };
    let mut lacks = Vec::new();
    match table_of(host, name) {
        None => lacks.push(Cover::Rule),
        Some(table) => {
            if !table.host_rule {
                lacks.push(Cover::HostRule);
            }
            let known = desired.networks.get(&id.network).is_some_and(|network| network.applied.is_some());
            let wanted = desired.networks.get(&id.network).into_iter().flat_map(|network| &network.links);
            let prefixes =
                wanted.filter(|((_, role), _)| *role == id.role).flat_map(|(_, link)| &link.prefixes);
            let bare = |prefix: &&IpNet| !table.unreachable.iter().any(|cover| cover.contains(*prefix));
            lacks.extend(prefixes.filter(|_| known).find(bare).map(|prefix| Cover::Unreachable(*prefix)));
        }
    }
    if host.firewall.is_none() {
        lacks.push(Cover::Firewall);
    }
    lacks.into_iter().map(|lacks| Violation::Uncovered { device: name.clone(), lacks }).collect()
}

/// One network of a host.
struct View<'a> {
    desired: &'a Desired,
    name: &'a NetworkName,
    network: &'a DesiredNetwork,
    recorded: &'a Recorded,
    host: &'a Host,
}

impl View<'_> {
    fn id(&self, peer: &GatewayName, role: LinkRole) -> LinkId {
        LinkId { network: self.name.clone(), peer: peer.clone(), role }
    }

    fn devices(&self) -> BTreeMap<&DeviceName, &DeviceId> {
        let ours = self.host.devices.iter().filter(|(id, _)| id.network == *self.name);
        ours.filter_map(|(id, device)| Some((device.name.as_ref()?, id))).collect()
    }

    fn is_down(&self, link: &LinkId) -> bool {
        matches!(self.host.evidence.get(link), Some(Evidence::NotConnected { .. }))
    }

    /// Whether a link is wanted, stands under the wanted key, and works.
    fn works(&self, peer: &GatewayName, role: LinkRole) -> bool {
        let id = self.id(peer, role);
        let wanted = self.network.links.get(&(peer.clone(), role));
        let device = self.host.devices.get(&id.device());
        let stands =
            wanted.zip(device).is_some_and(|(link, device)| device.peers.contains_key(&link.public_key));
        stands && self.host.evidence.get(&id).is_some_and(|evidence| evidence.is_connected())
    }

    fn dead_routes(&self) -> Vec<Violation> {
        let devices = self.devices();
        let Some(table) = devices.keys().find_map(|name| table_of(self.host, name)) else {
            return Vec::new();
        };
        let owners = self.owners();
        let link_of = |kind: RouteKind, prefix: &IpNet, device: &DeviceName| -> Option<LinkId> {
            let id = devices.get(device)?;
            match (&id.peer, kind) {
                (Some(peer), _) => Some(self.id(peer, id.role)),
                (None, RouteKind::Exact) => Some(self.id(owners.get(&(id.role, *prefix))?, id.role)),
                (None, RouteKind::Wide) => None,
            }
        };
        let mut found = Vec::new();
        for ((kind, prefix), route) in &table.routes {
            let Some(over) = link_of(*kind, prefix, &route.device).filter(|link| self.is_down(link)) else {
                continue;
            };
            let instead = match kind {
                RouteKind::Wide => self.wide_carrier(),
                RouteKind::Exact => self.exact_carrier(&over.peer).or_else(|| {
                    let mut wide = table.routes.iter().filter(|((kind, _), _)| *kind == RouteKind::Wide);
                    let ((kind, prefix), route) = wide.next()?;
                    link_of(*kind, prefix, &route.device).filter(|link| self.works(&link.peer, link.role))
                }),
            };
            found.extend(instead.map(|instead| Violation::DeadRoute {
                kind: *kind,
                prefix: *prefix,
                over,
                instead,
            }));
        }
        found
    }

    /// Whose prefix it is on a shared device: as wanted, else as recorded.
    fn owners(&self) -> BTreeMap<(LinkRole, IpNet), GatewayName> {
        let recorded = self.recorded.links.iter().filter(|(id, _)| id.network == *self.name);
        let recorded = recorded
            .flat_map(|(id, link)| link.prefixes.iter().map(|prefix| ((id.role, *prefix), id.peer.clone())));
        let wanted = self.network.links.iter().flat_map(|((peer, role), link)| {
            link.prefixes.iter().map(|prefix| ((*role, *prefix), peer.clone()))
        });
        recorded.chain(wanted).collect()
    }

    /// The working link to which the wide route should go, by role and place in the order (design §5 rule 3).
    fn wide_carrier(&self) -> Option<LinkId> {
        let order = &self.network.order;
        let first =
            |role: LinkRole| order.iter().find(|peer| self.works(peer, role)).map(|peer| self.id(peer, role));
        let hubs = self.network.applied.as_ref().map(|applied| applied.intent.hubs.as_slice());
        match (self.network.role(), hubs.unwrap_or_default().first()) {
            (Role::Spoke, _) => first(LinkRole::Uplink),
            (Role::Hub, None) => None,
            (Role::Hub, Some(hub)) if *hub == self.desired.me => first(LinkRole::Trunk),
            (Role::Hub, Some(hub)) if self.works(hub, LinkRole::Trunk) => Some(self.id(hub, LinkRole::Trunk)),
            (Role::Hub, Some(hub)) => {
                let to_first = self.id(hub, LinkRole::Trunk);
                let once = self.recorded.links.get(&to_first).is_some_and(|link| link.status.connected_once);
                if once && self.is_down(&to_first) { first(LinkRole::Trunk) } else { None }
            }
        }
    }

    /// A working link that may carry the exact routes of a peer.
    fn exact_carrier(&self, peer: &GatewayName) -> Option<LinkId> {
        let may = |role: &LinkRole| match role {
            LinkRole::Downlink => self.network.role() == Role::Hub,
            LinkRole::Mesh => self.network.mesh_routes(),
            LinkRole::Uplink => self.network.wide.is_empty(),
            LinkRole::Trunk => false,
        };
        let role = LinkRole::ALL.into_iter().filter(may).find(|role| self.works(peer, *role))?;
        Some(self.id(peer, role))
    }
}
