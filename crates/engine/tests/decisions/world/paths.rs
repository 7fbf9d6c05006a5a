//! Where packets go, hop by hop: routes, allowed IPs at both ends, the horizon of the filter, transit. It refuses to
//! look at the control store for anything but whose address is whose.

use std::net::IpAddr;

use spanwire_engine::{
    DeviceId, GatewayName, LinkId, LinkRole, NetworkName, Transit,
    worker::{ObservedDevice, RouteKind},
};

use super::{Local, World, links::devices_of};

impl World {
    fn tunnel_address(&self, network: &NetworkName, gateway: &GatewayName) -> Option<IpAddr> {
        self.view.gateways.get(gateway)?.tunnel_address(network)
    }

    /// From now on these pairs are held to deliver: all that do.
    pub(crate) fn watch(&mut self) {
        self.lost.clear();
        self.watched.clear();
        for network in self.view.networks.keys() {
            for from in self.hosts.keys() {
                for to in self.hosts.keys().filter(|to| *to != from) {
                    if self.delivers(network, from, to) {
                        self.watched.insert((network.clone(), from.clone(), to.clone()));
                    }
                }
            }
        }
    }

    pub(crate) fn look_for_losses(&mut self) {
        let lost: Vec<_> = self
            .watched
            .iter()
            .filter(|(_, from, to)| self.is_alive(from) && self.is_alive(to))
            .filter(|(network, from, to)| !self.delivers(network, from, to))
            .cloned()
            .collect();
        self.lost.extend(lost);
    }

    /// Whether a packet from one gateway's tunnel address to another's arrives now.
    pub(crate) fn delivers(&self, network: &NetworkName, from: &GatewayName, to: &GatewayName) -> bool {
        let (Some(source), Some(target)) =
            (self.tunnel_address(network, from), self.tunnel_address(network, to))
        else {
            return false;
        };
        let (mut at, mut arrived) = (from.clone(), None::<LinkRole>);
        for _ in 0..2 * self.hosts.len() {
            if at == *to {
                return true;
            }
            let Some(link) = self.hosts.get(&at).and_then(|local| self.out(local, network, target)) else {
                return false;
            };
            let passes = arrived.is_none_or(|arrived| self.forwards(&at, &link, arrived, source, target));
            if !passes || !self.connects(&at, &link) || !self.accepts(&at, &link, source) {
                return false;
            }
            (at, arrived) = (link.peer, Some(link.role.other_end()));
        }
        false
    }

    /// The link by which a packet leaves a host.
    fn out(&self, local: &Local, network: &NetworkName, target: IpAddr) -> Option<LinkId> {
        let names: Vec<_> =
            devices_of(&local.host, network).filter_map(|(_, device)| device.name.as_ref()).collect();
        let table =
            local.host.tables.values().find(|table| names.iter().any(|name| table.rules.contains(name)))?;
        let fits = table.routes.iter().filter(|((_, prefix), _)| prefix.contains(&target));
        let best = |((kind, prefix), _): &(&(RouteKind, ipnet::IpNet), _)| {
            (prefix.prefix_len(), *kind == RouteKind::Exact)
        };
        let (_, route) = fits.max_by_key(best)?;
        let found = |(_, device): &(&DeviceId, &ObservedDevice)| device.name.as_ref() == Some(&route.device);
        let (id, device) = devices_of(&local.host, network).find(found)?;
        let owner =
            device.peers.iter().find(|(_, peer)| peer.allowed_ips.iter().any(|net| net.contains(&target)))?;
        let peer = self.hosts.iter().find(|(_, local)| local.key == *owner.0)?.0;
        Some(LinkId { network: network.clone(), peer: peer.clone(), role: id.role })
    }

    /// Whether the far end takes a packet from this source.
    fn accepts(&self, me: &GatewayName, link: &LinkId, source: IpAddr) -> bool {
        let back = LinkId { network: link.network.clone(), peer: me.clone(), role: link.role.other_end() };
        let key = self.hosts.get(me).map(|local| local.key);
        let device = self.hosts.get(&link.peer).and_then(|far| far.host.devices.get(&back.device()));
        let entry = key.and_then(|key| device?.peers.get(&key));
        entry.is_some_and(|entry| entry.allowed_ips.iter().any(|net| net.contains(&source)))
    }

    /// The horizon, and transit between two spokes.
    fn forwards(
        &self,
        at: &GatewayName,
        link: &LinkId,
        arrived: LinkRole,
        source: IpAddr,
        target: IpAddr,
    ) -> bool {
        let horizon = match (arrived, link.role) {
            (LinkRole::Uplink | LinkRole::Mesh, _) => false,
            (LinkRole::Trunk, to) => to == LinkRole::Downlink,
            (LinkRole::Downlink, _) => true,
        };
        let intent = self.hosts.get(at).and_then(|local| local.recorded.intents.get(&link.network));
        let Some(intent) = intent.map(|applied| &applied.intent) else { return false };
        let isolated = intent.transit == Transit::Isolated && arrived == LinkRole::Downlink;
        let of_hub = |address: IpAddr| {
            intent.hubs.iter().any(|hub| self.tunnel_address(&link.network, hub) == Some(address))
        };
        horizon && (!isolated || of_hub(source) || of_hub(target))
    }
}
