//! Who takes part in a network, with which address. It refuses to evict who was accepted first: the later one of two
//! that can't both be in is left out, with the reason.

use std::{
    collections::{BTreeMap, BTreeSet},
    net::IpAddr,
};

use ipnet::IpNet;

use crate::{
    Gateway, GatewayName, MemberStatus, NetworkName, Now, Topology,
    port::{ControlView, NetworkView},
};

use super::{
    address, is_unreadable,
    validate::{Valid, overlap},
};

/// Members in member order, then leavers.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Membership {
    /// One entry a member or leaver.
    pub entries: Vec<MemberStatus>,
    /// Pairs that can't be linked because both are dial-only.
    pub unlinkable: BTreeSet<(GatewayName, GatewayName)>,
}

impl Membership {
    /// The entry of a gateway.
    pub fn get(&self, gateway: &GatewayName) -> Option<&MemberStatus> {
        self.entries.iter().find(|entry| entry.gateway == *gateway)
    }

    /// Whether a gateway is declared and accepted.
    pub fn is_accepted(&self, gateway: &GatewayName) -> bool {
        self.get(gateway).is_some_and(|entry| entry.accepted && !entry.leaving)
    }
}

/// Resolves members and leavers: acceptance is sticky, then in member order.
pub fn resolve(
    view: &ControlView,
    name: &NetworkName,
    network: &NetworkView,
    valid: &Valid,
    now: &Now,
) -> Membership {
    let before: BTreeMap<&GatewayName, &MemberStatus> =
        network.status.members.iter().map(|entry| (&entry.gateway, entry)).collect();
    let accepted_before = |member: &&GatewayName| before.get(*member).is_some_and(|entry| entry.accepted);
    let (first, then): (Vec<&GatewayName>, Vec<&GatewayName>) =
        valid.members.iter().partition(accepted_before);
    let mut taken: BTreeSet<IpAddr> =
        network.status.members.iter().filter_map(|entry| entry.tunnel_address).collect();
    let mut judge = Judge { view, name, valid, accepted: Vec::new() };
    let mut entries: BTreeMap<GatewayName, MemberStatus> = BTreeMap::new();
    for member in first.into_iter().chain(then) {
        let last = before.get(member).copied();
        let entry = judge.entry(member, last, &mut taken, network.status.published.is_some());
        entries.insert(member.clone(), entry);
    }
    let mut membership = Membership { entries: Vec::new(), unlinkable: judge.unlinkable() };
    membership.entries = valid.members.iter().filter_map(|member| entries.remove(member)).collect();
    note_unlinkable(&mut membership);
    let leavers = network.status.members.iter().filter(|entry| !valid.members.contains(&entry.gateway));
    membership
        .entries
        .extend(leavers.filter(|entry| entry.tunnel_address.is_some()).map(|entry| leaver(entry, now)));
    membership
}

fn leaver(entry: &MemberStatus, now: &Now) -> MemberStatus {
    let since = entry.leaving_since.clone().filter(|since| now.boot.since(since).is_some());
    MemberStatus {
        leaving: true,
        joining: false,
        leaving_since: Some(since.unwrap_or_else(|| now.boot.clone())),
        reason: Some((
            "Leaving".to_owned(),
            "no longer in spec.members; its links are being removed".to_owned(),
        )),
        ..entry.clone()
    }
}

/// A pair is left out, not the members: the later one says so.
fn note_unlinkable(membership: &mut Membership) {
    let pairs = membership.unlinkable.clone();
    for entry in &mut membership.entries {
        let others: Vec<&str> = pairs
            .iter()
            .filter(|(_, later)| *later == entry.gateway)
            .map(|(earlier, _)| earlier.as_str())
            .collect();
        if !others.is_empty() && entry.reason.is_none() {
            let message = format!(
                "no link to {}: both are dial-only, so neither can dial the other",
                others.join(", ")
            );
            entry.reason = Some(("DialOnlyPair".to_owned(), message));
        }
    }
}

struct Judge<'a> {
    view: &'a ControlView,
    name: &'a NetworkName,
    valid: &'a Valid,
    accepted: Vec<&'a GatewayName>,
}

impl<'a> Judge<'a> {
    fn entry(
        &mut self,
        member: &'a GatewayName,
        last: Option<&MemberStatus>,
        taken: &mut BTreeSet<IpAddr>,
        published: bool,
    ) -> MemberStatus {
        let gateway = self.view.gateways.get(member);
        let was_accepted = last.is_some_and(|entry| entry.accepted);
        let mut entry = MemberStatus {
            gateway: member.clone(),
            tunnel_address: last
                .and_then(|entry| entry.tunnel_address)
                .filter(|a| self.valid.cidr.contains(a)),
            accepted: false,
            joining: last.map_or(published, |entry| entry.joining || (published && !was_accepted)),
            leaving: false,
            leaving_since: None,
            uid: gateway
                .map(|gateway| gateway.meta.uid.clone())
                .or(last.map(|l| l.uid.clone()))
                .unwrap_or_default(),
            reason: None,
        };
        let fault = match gateway {
            Some(gateway) => self.fault(member, gateway),
            None if was_accepted => None,
            None if is_unreadable(self.view, "gateways", member.as_str()) => {
                Some(("GatewayUnreadable", format!("the Gateway {member} can't be read")))
            }
            None => Some((
                "GatewayNotFound",
                format!("there is no Gateway {member}: create it or take it off the list"),
            )),
        };
        if let Some((reason, message)) = fault {
            entry.reason = Some((reason.to_owned(), message));
            entry.joining = false;
            return entry;
        }
        if entry.tunnel_address.is_none() {
            let earlier = gateway.and_then(|gateway| gateway.tunnel_address(self.name));
            // What another gateway had before is given out last: it may come back.
            let kept: BTreeSet<IpAddr> = taken.union(&self.remembered(member)).copied().collect();
            entry.tunnel_address = address::allocate(self.valid.cidr, &kept, earlier)
                .or_else(|| address::allocate(self.valid.cidr, taken, earlier));
        }
        match entry.tunnel_address {
            Some(address) => {
                taken.insert(address);
                entry.accepted = true;
                self.accepted.push(member);
            }
            None => {
                let message =
                    format!("no free address in {}: choose a larger cidr or fewer members", self.valid.cidr);
                entry.reason = Some(("NoFreeAddress".to_owned(), message));
                entry.joining = false;
            }
        }
        entry
    }

    /// Addresses that other gateways had in this network.
    fn remembered(&self, member: &GatewayName) -> BTreeSet<IpAddr> {
        let others = self.view.gateways.iter().filter(|(name, _)| *name != member);
        others.filter_map(|(_, gateway)| gateway.tunnel_address(self.name)).collect()
    }

    /// Why a member can't be in beside those that are accepted already.
    fn fault(&self, member: &GatewayName, gateway: &Gateway) -> Option<(&'static str, String)> {
        self.subnet_fault(gateway)
            .or_else(|| self.overlap_fault(member, gateway))
            .or_else(|| self.twin_fault(gateway))
            .or_else(|| self.endpoint_fault(gateway))
    }

    fn subnet_fault(&self, gateway: &Gateway) -> Option<(&'static str, String)> {
        gateway.subnets.iter().find_map(|text| match text.parse::<IpNet>() {
            Err(_) => {
                Some(("InvalidSubnet", format!("subnet {text:?} is not a prefix: write it like 10.1.0.0/16")))
            }
            Ok(net) if net.trunc() != net => {
                Some(("InvalidSubnet", format!("subnet {text} has host bits: write {}", net.trunc())))
            }
            Ok(_) => None,
        })
    }

    fn others(&self) -> impl Iterator<Item = (&'a GatewayName, &'a Gateway)> + '_ {
        self.accepted.iter().filter_map(|name| self.view.gateways.get(*name).map(|gateway| (*name, gateway)))
    }

    fn overlap_fault(&self, _member: &GatewayName, gateway: &Gateway) -> Option<(&'static str, String)> {
        for (other, their) in self.others() {
            for subnet in gateway.valid_subnets() {
                if let Some(clash) = their.valid_subnets().find(|net| overlap(net, &subnet)) {
                    let message =
                        format!("its subnet {subnet} overlaps {clash} of {other}, which was accepted before");
                    return Some(("SubnetOverlap", message));
                }
            }
        }
        None
    }

    /// A copied key, or the same host and port.
    fn twin_fault(&self, gateway: &Gateway) -> Option<(&'static str, String)> {
        let ports = endpoints(gateway);
        for (other, their) in self.others() {
            if gateway.facts.public_key.is_some() && gateway.facts.public_key == their.facts.public_key {
                let message =
                    format!("it publishes the key of {other}, which was accepted before: make a new key");
                return Some(("DuplicateKey", message));
            }
            let theirs = endpoints(their);
            if let Some((host, port)) = ports.iter().find(|endpoint| theirs.contains(*endpoint)) {
                let message =
                    format!("{other}, which was accepted before, is dialled at the same {host}:{port}");
                return Some(("DuplicateEndpoint", message));
            }
        }
        None
    }

    fn endpoint_fault(&self, gateway: &Gateway) -> Option<(&'static str, String)> {
        let address: IpAddr = gateway.host()?.parse().ok()?;
        let subnets = self.others().flat_map(|(_, their)| their.valid_subnets().collect::<Vec<_>>());
        let own = gateway.valid_subnets();
        let overlay =
            std::iter::once(self.valid.cidr).chain(own).chain(subnets).find(|net| net.contains(&address))?;
        Some((
            "EndpointInOverlay",
            format!("its endpoint {address} lies inside the overlay prefix {overlay}"),
        ))
    }

    /// In a mesh, pairs of dial-only members.
    fn unlinkable(&self) -> BTreeSet<(GatewayName, GatewayName)> {
        let dial_only =
            |name: &&&GatewayName| self.view.gateways.get(**name).is_some_and(|gateway| gateway.dial_only);
        let list: Vec<&GatewayName> = match self.valid.topology {
            Topology::Mesh => {
                self.valid.members.iter().filter(|m| self.accepted.contains(m) && dial_only(&m)).collect()
            }
            Topology::HubSpoke => Vec::new(),
        };
        let pairs = list.iter().enumerate().flat_map(|(i, a)| list.iter().skip(i + 1).map(move |b| (*a, *b)));
        pairs.map(|(a, b)| (a.clone(), b.clone())).collect()
    }
}

/// Where a gateway is dialled: host and port of each listener.
fn endpoints(gateway: &Gateway) -> BTreeSet<(String, u16)> {
    let Some(host) = gateway.host() else { return BTreeSet::new() };
    let advertised = !gateway.advertise_ports.is_empty();
    let listeners = if advertised { &gateway.advertise_ports } else { &gateway.facts.listeners };
    listeners.iter().map(|listener| (host.to_owned(), listener.port)).collect()
}
