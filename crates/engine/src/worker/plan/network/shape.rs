//! What the parts of a network should look like: its overlay, an MTU, a peer, its part of the packet filter. It refuses
//! to order steps.

use std::{net::SocketAddr, time::Duration};

use ipnet::IpNet;

use crate::{
    DeviceName,
    firewall::NetworkFirewall,
    worker::{
        Evidence, PeerConfig, WantedLink,
        links::{Links, Row},
    },
};

use super::Planner;

/// The overlay of a network: the wide prefixes, and what the links that stay reach beyond them.
pub(super) fn covered(links: &Links<'_>) -> Vec<IpNet> {
    let wide = &links.desired.wide;
    let stays = |at: usize| links.rows.get(at).is_some_and(|row| !links.goes(row));
    let mut prefixes = wide.iter().peekable();
    // Of sorted prefixes the last one that lies in no other before it: only it can hold the next one.
    let mut outermost: Option<IpNet> = None;
    let mut covered = Vec::new();
    for (prefix, at) in &links.by_prefix {
        while let Some(wide) = prefixes.next_if(|wide| **wide <= *prefix) {
            if !outermost.is_some_and(|last| last.contains(wide)) {
                outermost = Some(*wide);
            }
        }
        let beyond = !outermost.is_some_and(|last| last.contains(prefix));
        if beyond && stays(*at) {
            covered.push(*prefix);
        }
    }
    covered.extend(wide);
    covered.sort();
    covered.dedup();
    covered
}

impl Planner<'_, '_> {
    /// The MTU asked for, else what the underlay leaves after 60 bytes over IPv4 or 80 over IPv6.
    pub(super) fn mtu(&self, row: &Row<'_>) -> u32 {
        let asked = self.links.desired.applied.as_ref().and_then(|applied| applied.intent.tunnel.mtu);
        let endpoint =
            row.wanted.and_then(|link| link.endpoint.as_ref()).filter(|_| !row.role().shares_device());
        let over_v4 = match endpoint.and_then(|endpoint| self.host.address_of(&endpoint.host)) {
            Some(address) => address.is_ipv4(),
            None => self.links.desired.underlay_is_v4,
        };
        let underlay = if self.host.underlay_mtu == 0 { 1500 } else { self.host.underlay_mtu };
        asked.unwrap_or_else(|| underlay.saturating_sub(if over_v4 { 60 } else { 80 }).max(1280))
    }

    /// What is to be written for a peer, or `None` if it is right already.
    pub(super) fn peer_change(
        &self,
        row: &Row<'_>,
        link: &WantedLink,
        device: &DeviceName,
    ) -> Option<PeerConfig> {
        let wanted = link.endpoint.as_ref();
        let address = || {
            wanted.and_then(|wanted| Some(SocketAddr::new(self.host.address_of(&wanted.host)?, wanted.port)))
        };
        let succession = self.links.succession(row);
        let has_device = succession.is_none_or(|succession| succession.new.is_some());
        let there = row.peer.filter(|_| has_device && row.has_wanted_key);
        let learned = row.peer.and_then(|peer| peer.endpoint);
        // A device that is about to take the place of another begins where that one is, and is silent until it does.
        let followed = succession.and_then(|succession| succession.old.peers.get(&link.public_key)?.endpoint);
        let keepalive = if succession.is_some() { Duration::ZERO } else { link.keepalive };
        let endpoint = match there {
            None => followed.or_else(address).or(learned),
            Some(_) if succession.is_some() => None,
            Some(peer) => {
                let changed = row.recorded.is_some_and(|recorded| recorded.endpoint.as_ref() != wanted);
                let down = matches!(row.evidence, Some(Evidence::NotConnected { .. }));
                let moves = peer.endpoint.is_none() || changed || down;
                moves.then(address).flatten().filter(|address| peer.endpoint != Some(*address))
            }
        };
        let right = there.is_some_and(|peer| {
            peer.keepalive == keepalive && peer.allowed_ips.iter().eq(&link.allowed_ips) && endpoint.is_none()
        });
        (!right).then(|| PeerConfig {
            device: device.clone(),
            public_key: link.public_key,
            allowed_ips: link.allowed_ips.clone(),
            endpoint,
            keepalive,
        })
    }

    /// This network's part of the packet filter. `None`: it has no device.
    pub(super) fn firewall(&self) -> Option<NetworkFirewall> {
        let desired = self.links.desired;
        (!self.devices.is_empty()).then(|| NetworkFirewall {
            network: self.links.network.clone(),
            devices: self.devices.iter().cloned().collect(),
            own: desired.own.clone(),
            wide: self.covered.clone(),
            tunnel_address: desired.tunnel_address,
            transit: desired.applied.as_ref().map(|applied| applied.intent.transit).unwrap_or_default(),
            hub_prefixes: desired.hub_prefixes.clone(),
        })
    }
}
