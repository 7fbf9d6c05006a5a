//! Reads the host for a plan. It refuses to take a failed read for an absence: a device that does not answer is listed as
//! unreadable, anything else that fails ends the reading.

use std::collections::{BTreeMap, BTreeSet};

use futures::future::join_all;
use spanwire_engine::{
    DeviceId, DeviceName,
    worker::{Host, ObservedDevice, ObservedRoute, ObservedTable},
};

use crate::netlink::{
    address::Address,
    link::Link,
    route::{Route, Target},
    rule::{Family, Rule},
};

use super::{Error, LocalDevices, device, facts, layout, peer, switches};
use crate::causes::causes;

impl LocalDevices {
    pub(super) async fn observe_host(&self) -> Result<Host, Error> {
        let links = self.netlink.links().await.map_err(Error::Netlink)?;
        let addresses = self.netlink.addresses().await.map_err(Error::Netlink)?;
        let routes = self.netlink.routes().await.map_err(Error::Netlink)?;
        let rules = self.netlink.rules(self.options.protocol).await.map_err(Error::Netlink)?;
        let mut host = Host {
            tables: self.tables(&links, &routes, &rules),
            firewall: self.filter.standing().await.map_err(Error::Filter)?,
            used_ports: facts::used_ports(),
            host_prefixes: facts::prefixes(&links, &addresses, &routes, self.options.protocol),
            addresses: facts::addresses(&links, &addresses),
            kernel_wireguard: self.kernel_wireguard().await.is_ok(),
            underlay_mtu: facts::underlay_mtu(&links, &addresses, &routes, self.options.protocol),
            ..Host::default()
        };
        let ours = links.iter().filter_map(|link| {
            let id = DeviceId::from_alias(link.alias.as_deref()?)?;
            let name: DeviceName = link.name.parse().ok()?;
            device::is_device(link, &name).then_some((id, (name, link)))
        });
        let (addresses, routes, rules) = (&addresses, &routes, &rules);
        let read =
            ours.map(async |(id, device)| (id, self.read_device(device, addresses, routes, rules).await));
        for (id, device) in join_all(read).await {
            match device {
                Ok(device) => host.add_device(id, device),
                Err(error) => drop(host.unreadable.insert(id, causes(&error))),
            }
        }
        self.remember_endpoints(&host);
        Ok(host)
    }

    async fn read_device(
        &self,
        (name, link): (DeviceName, &Link),
        addresses: &[Address],
        routes: &[Route],
        rules: &[Rule],
    ) -> Result<ObservedDevice, Error> {
        let info = self.configuration(&name).await?;
        let addresses: BTreeSet<_> = addresses
            .iter()
            .filter(|address| address.index == link.index && address.global)
            .map(|address| address.address)
            .collect();
        let (rule, route) = self.probe_path(link);
        let probes_leave = addresses.iter().all(|address| address.is_ipv4())
            || (rules.contains(&rule) && routes.contains(&route));
        let switched = switches::stand(&self.sysctl, &name).map_err(Error::Switch)?;
        let ready = link.up && switched && probes_leave;
        let (index, mtu) = (link.index, link.mtu);
        Ok(ObservedDevice { name: Some(name), index, addresses, mtu, ready, ..peer::observed(&info) })
    }

    fn tables(&self, links: &[Link], routes: &[Route], rules: &[Rule]) -> BTreeMap<u32, ObservedTable> {
        let mut tables: BTreeMap<u32, ObservedTable> = BTreeMap::new();
        let probes = self.options.probe_table;
        let ours = |route: &&Route| route.protocol == self.options.protocol && route.table != probes;
        for route in routes.iter().filter(ours) {
            let table = tables.entry(route.table).or_default();
            match (route.target, layout::kind(route.metric)) {
                (Target::Unreachable, _) => drop(table.unreachable.insert(route.prefix)),
                (Target::Throw, _) => drop(table.throw.insert(route.prefix)),
                (Target::Device(index), Some(kind)) => {
                    let link = links.iter().find(|link| link.index == index);
                    if let Some(Ok(device)) = link.map(|link| link.name.parse()) {
                        let observed = ObservedRoute { device, source: route.source };
                        table.routes.insert((kind, route.prefix), observed);
                    }
                }
                (Target::Device(_), None) | (Target::Other, _) => {}
            }
        }
        for rule in rules.iter().filter(|rule| rule.table != probes) {
            let stands = |family| rules.contains(&Rule { family, ..rule.clone() });
            let complete = Family::present().iter().copied().all(stands);
            let table = tables.entry(rule.table).or_default();
            match rule.from.as_deref().map(str::parse) {
                Some(Ok(device)) if complete => drop(table.rules.insert(device)),
                None if complete => table.host_rule = true,
                Some(_) | None => {}
            }
        }
        tables
    }

    fn remember_endpoints(&self, host: &Host) {
        let mut known = self.endpoints();
        for device in host.devices.values().chain(host.beside.values()) {
            let Some(name) = &device.name else { continue };
            for (key, peer) in &device.peers {
                if let Some(endpoint) = peer.endpoint {
                    known.insert((name.clone(), *key), endpoint);
                }
            }
        }
    }
}
