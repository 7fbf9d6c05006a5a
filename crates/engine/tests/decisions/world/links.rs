//! Which links connect, and what each worker sees of that. It refuses to look at intents: only what stands on the hosts
//! counts.

use std::{
    collections::BTreeMap,
    net::{IpAddr, SocketAddr},
};

use spanwire_engine::{
    GatewayName, LinkId, LinkRole, NetworkName,
    worker::{Evidence, Host, ObservedDevice},
};

use super::{Local, World};

impl World {
    fn end(&self, me: &GatewayName, link: &LinkId) -> Option<&ObservedDevice> {
        self.hosts.get(me)?.host.devices.get(&link.device())
    }

    fn is_cut(&self, a: &GatewayName, b: &GatewayName, role: LinkRole) -> bool {
        self.cuts.iter().any(|(x, y, cut)| {
            let as_first = x == a && y == b && cut.is_none_or(|cut| cut == role);
            let as_second = x == b && y == a && cut.is_none_or(|cut| cut == role.other_end());
            as_first || as_second
        })
    }

    fn address(&self, gateway: &GatewayName) -> Option<IpAddr> {
        self.view.gateways.get(gateway)?.facts.endpoint.as_ref()?.parse().ok()
    }

    /// Whether `me` has the peer on its device and dials the port on which the other end listens.
    fn dials(&self, me: &GatewayName, link: &LinkId, other: &ObservedDevice) -> bool {
        let peer = self.hosts.get(&link.peer).map(|peer| peer.key);
        let entry = peer.and_then(|key| self.end(me, link)?.peers.get(&key));
        let target = self.address(&link.peer).map(|address| SocketAddr::new(address, other.port));
        entry.is_some_and(|entry| entry.endpoint.is_some() && entry.endpoint == target)
    }

    /// Whether both ends of a link stand, know each other's key, and one of them reaches the other.
    pub(crate) fn connects(&self, me: &GatewayName, link: &LinkId) -> bool {
        let back = LinkId { network: link.network.clone(), peer: me.clone(), role: link.role.other_end() };
        let alive = self.is_alive(me) && self.is_alive(&link.peer) && !self.is_cut(me, &link.peer, link.role);
        let (Some(mine), Some(theirs)) = (self.end(me, link), self.end(&link.peer, &back)) else {
            return false;
        };
        let keys = self.hosts.get(me).zip(self.hosts.get(&link.peer));
        let known = keys.is_some_and(|(me, peer)| {
            mine.peers.contains_key(&peer.key)
                && theirs.peers.contains_key(&me.key)
                && mine.public_key == Some(me.key)
                && theirs.public_key == Some(peer.key)
        });
        alive && known && (self.dials(me, link, theirs) || self.dials(&link.peer, &back, mine))
    }

    /// What the probes of `me` have found.
    pub(crate) fn evidence(&self, me: &GatewayName) -> BTreeMap<LinkId, Evidence> {
        let Some(local) = self.hosts.get(me).filter(|local| !local.amnesia) else { return BTreeMap::new() };
        let mut evidence = BTreeMap::new();
        for (id, link) in &local.recorded.links {
            let settled = !self.unsettled.contains(&(me.clone(), id.peer.clone()));
            if self.connects(me, id) {
                evidence.insert(id.clone(), Evidence::Connected { settled });
            } else if self.judged || link.status.connected_once || self.is_cut(me, &id.peer, id.role) {
                evidence.insert(id.clone(), Evidence::NotConnected { one_way: false });
            }
        }
        evidence
    }

    /// What a listener learns of those who dial it.
    pub(crate) fn learn(&mut self, me: &GatewayName) {
        let Some(local) = self.hosts.get(me) else { return };
        let mut learned = Vec::new();
        for id in local.recorded.links.keys().filter(|id| self.connects(me, id)) {
            let back = LinkId { network: id.network.clone(), peer: me.clone(), role: id.role.other_end() };
            let port = self.end(&id.peer, &back).map(|device| device.port);
            let key = self.hosts.get(&id.peer).map(|peer| peer.key);
            if let (Some(address), Some(port), Some(key)) = (self.address(&id.peer), port, key) {
                learned.push((id.device(), key, SocketAddr::new(address, port)));
            }
        }
        let Some(local) = self.hosts.get_mut(me) else { return };
        for (device, key, endpoint) in learned {
            let peer = local.host.devices.get_mut(&device).and_then(|device| device.peers.get_mut(&key));
            if let Some(peer) = peer {
                peer.endpoint.get_or_insert(endpoint);
            }
        }
    }
}

/// The devices of a network by name, with their identities.
pub(crate) fn devices_of<'a>(
    host: &'a Host,
    network: &'a NetworkName,
) -> impl Iterator<Item = (&'a spanwire_engine::DeviceId, &'a ObservedDevice)> {
    host.devices.iter().filter(move |(id, _)| id.network == *network)
}

/// The records and the host of a worker that is stopped and started again.
pub(crate) fn restarted(local: &Local) -> Local {
    Local { amnesia: true, ..local.clone() }
}

/// A host after a reboot: devices, tables and filter are gone, records stay.
pub(crate) fn rebooted(local: &Local) -> Local {
    let fresh = Local::new(local.key);
    Local { recorded: local.recorded.clone(), boot: local.boot + 1, amnesia: true, ..fresh }
}
