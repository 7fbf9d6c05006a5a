//! Which links a network wants towards its peers, with the facts of each. It refuses to let one bad peer hold up the
//! others: a peer that can't become a link gets a note.

mod conflicts;

use std::{collections::BTreeSet, net::IpAddr, time::Duration};

use ipnet::IpNet;

use crate::{
    Endpoint, Gateway, GatewayName, Intent, LinkId, LinkRole, NetworkName, PublicKey, Reason, Topology,
    TunnelMode, Uid, topology,
};

use super::{
    DesiredNetwork, RecordedLink,
    desired::{self, Situation},
};

/// A link that is wanted and can be made.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WantedLink {
    /// UID of the peer's Gateway.
    pub peer_uid: Uid,
    /// The peer's key.
    pub public_key: PublicKey,
    /// Generation of that key.
    pub key_generation: i64,
    /// What goes over the link: the wide prefixes, or the peer's own.
    pub allowed_ips: Vec<IpNet>,
    /// The peer's own prefixes.
    pub prefixes: Vec<IpNet>,
    /// The tunnel address that is probed; `None`: the peer does not probe.
    pub probe: Option<IpAddr>,
    /// Where it is dialled, if this end dials and the port is known.
    pub endpoint: Option<Endpoint>,
    /// Persistent keepalive; zero: off.
    pub keepalive: Duration,
}

/// What is said of a peer that did not become a link.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct PeerNote {
    /// The peer as the intent names it.
    pub peer: String,
    /// Why.
    pub reason: Reason,
    /// Words for people: the cause and the next step.
    pub message: String,
}

/// A peer without usable facts: the note, and whether it may still come (then it holds removals for a while).
struct Refusal {
    reason: Reason,
    message: String,
    may_come: bool,
}

fn refuse(reason: Reason, message: String) -> Refusal {
    Refusal { reason, message, may_come: false }
}

/// A gateway that is listed, with its object where the view has it.
struct Peer<'a> {
    name: GatewayName,
    gateway: Option<&'a Gateway>,
}

/// Fills links, order, notes and hub prefixes of a network.
pub(super) fn fill(
    situation: &Situation<'_>,
    network: &NetworkName,
    intent: &Intent,
    desired: &mut DesiredNetwork,
) {
    let overlay = outermost(&desired.wide);
    let mut links = Vec::new();
    for name in listed(situation, network, intent) {
        match known(situation, network, name) {
            Some(peer) if peer.name == *situation.me => {
                let message = "the list names the gateway itself: remove it".to_owned();
                let note = PeerNote { peer: name.to_owned(), reason: Reason::OwnName, message };
                desired.notes.push(note);
            }
            Some(peer) => {
                links_of(situation, network, intent, &peer, &overlay, desired, &mut links);
                desired.order.push(peer.name);
            }
            None => {
                let message = format!("there is no Gateway {name:?}: create it or take it off the list");
                let note = PeerNote { peer: name.to_owned(), reason: Reason::UnknownPeer, message };
                desired.notes.push(note);
            }
        }
    }
    desired.links = links.into_iter().collect();
    conflicts::refuse(situation, network, desired);
    fill_hub_prefixes(situation, network, intent, desired);
}

/// The gateway of this name, if there is one: itself, in the view, there but unreadable, or recorded.
fn known<'a>(situation: &Situation<'a>, network: &NetworkName, name: &str) -> Option<Peer<'a>> {
    let name = name.parse::<GatewayName>().ok()?;
    let gateway = situation.view.and_then(|view| view.gateways.get(&name));
    let unreadable =
        || situation.view.is_some_and(|view| desired::is_unreadable(view, "gateways", name.as_str()));
    let recorded = |role| {
        let id = LinkId { network: network.clone(), peer: name.clone(), role };
        situation.recorded.links.contains_key(&id)
    };
    let is_known =
        gateway.is_some() || name == *situation.me || unreadable() || LinkRole::ALL.into_iter().any(recorded);
    is_known.then_some(Peer { name, gateway })
}

/// All gateways that exist.
fn known_gateways<'a>(situation: &Situation<'a>, network: &NetworkName) -> BTreeSet<&'a str> {
    let view = situation.view.into_iter();
    let unreadable = view.clone().flat_map(|view| view.unreadable.iter());
    let unreadable = unreadable.filter(|object| object.kind == "gateways").map(|object| object.name.as_str());
    let recorded = situation.recorded.links.keys().filter(|link| link.network == *network);
    view.flat_map(|view| view.gateways.keys().map(GatewayName::as_str))
        .chain(unreadable.filter(|name| name.parse::<GatewayName>().is_ok()))
        .chain(recorded.map(|link| link.peer.as_str()))
        .collect()
}

/// The names that the intent lists, each once, in order (design §3, how `peers` is read).
fn listed<'a>(situation: &Situation<'a>, network: &NetworkName, intent: &'a Intent) -> Vec<&'a str> {
    let others = |name: &&str| *name != situation.me.as_str();
    let everybody = || -> Vec<&'a str> {
        if intent.members.is_empty() {
            known_gateways(situation, network).into_iter().filter(others).collect()
        } else {
            intent.members.iter().map(GatewayName::as_str).filter(others).collect()
        }
    };
    let names = match (&intent.peers, intent.topology) {
        (None, _) => everybody(),
        (Some(peers), None) if peers.is_empty() => everybody(),
        (Some(peers), None | Some(Topology::Mesh | Topology::HubSpoke)) => {
            peers.iter().map(String::as_str).collect()
        }
    };
    let mut sorted: Vec<(&str, usize)> = names.iter().enumerate().map(|(at, name)| (*name, at)).collect();
    sorted.sort();
    sorted.dedup_by_key(|(name, _)| *name);
    sorted.sort_unstable_by_key(|(_, at)| *at);
    sorted.into_iter().map(|(name, _)| name).collect()
}

/// Adds the links towards one peer that can be made. One that can't is noted, and waited for if it may come.
fn links_of(
    situation: &Situation<'_>,
    network: &NetworkName,
    intent: &Intent,
    peer: &Peer<'_>,
    overlay: &[IpNet],
    desired: &mut DesiredNetwork,
    links: &mut Vec<((GatewayName, LinkRole), WantedLink)>,
) {
    let mut noted = false;
    for role in topology::roles(situation.me, &peer.name, &intent.hubs, intent.mesh_links) {
        let id = LinkId { network: network.clone(), peer: peer.name.clone(), role };
        match wanted_link(situation, intent, &id, peer.gateway, overlay, desired) {
            Ok(link) => links.push(((id.peer, role), link)),
            Err(Refusal { reason, message, may_come }) => {
                if may_come {
                    desired.waiting.insert((id.peer, role));
                }
                if !noted {
                    desired.notes.push(PeerNote { peer: peer.name.to_string(), reason, message });
                    noted = true;
                }
            }
        }
    }
}

/// One link with the facts of its peer: from its Gateway, else from the record.
fn wanted_link(
    situation: &Situation<'_>,
    intent: &Intent,
    id: &LinkId,
    gateway: Option<&Gateway>,
    overlay: &[IpNet],
    desired: &DesiredNetwork,
) -> Result<WantedLink, Refusal> {
    let recorded = situation.recorded.links.get(id);
    if intent.tunnel.mode == TunnelMode::Kernel && !situation.host.kernel_wireguard && recorded.is_none() {
        let message =
            "tunnel.mode is kernel and the kernel of this host has no WireGuard: load it, or use auto";
        return Err(Refusal { may_come: true, ..refuse(Reason::BackendUnavailable, message.to_owned()) });
    }
    let (public_key, key_generation) = key_of(gateway, recorded, id)?;
    if public_key == situation.own_key {
        let message = format!("{} has this gateway's own key: one of the two must make a new one", id.peer);
        return Err(refuse(Reason::OwnKey, message));
    }
    let prefixes = match (gateway, recorded) {
        (Some(gateway), _) => gateway.own_prefixes(&id.network),
        (None, Some(recorded)) => recorded.prefixes.clone(),
        (None, None) => Vec::new(),
    };
    refuse_host_prefix(situation, &prefixes, &id.peer)?;
    let endpoint = match gateway {
        _ if !id.role.dials() => None,
        Some(gateway) => gateway.endpoint(&id.network, id.role.other_end(), situation.me),
        None => recorded.and_then(|recorded| recorded.endpoint.clone()),
    };
    refuse_overlay_endpoint(endpoint.as_ref(), overlay, &prefixes, &id.peer)?;
    let wide = matches!(id.role, LinkRole::Uplink | LinkRole::Trunk) && !desired.wide.is_empty();
    Ok(WantedLink {
        peer_uid: gateway
            .map(|gateway| gateway.meta.uid.clone())
            .or_else(|| recorded.map(|recorded| recorded.peer_uid.clone()))
            .unwrap_or_default(),
        public_key,
        key_generation,
        allowed_ips: if wide { desired.wide.clone() } else { prefixes.clone() },
        probe: match gateway {
            Some(gateway) => gateway.tunnel_address(&id.network),
            None => recorded.and_then(|recorded| recorded.probe),
        },
        prefixes,
        endpoint,
        keepalive: intent.tunnel.keepalive,
    })
}

/// The key to use: a recorded one is replaced only by one of a higher generation, or from a Gateway with another UID.
fn key_of(
    gateway: Option<&Gateway>,
    recorded: Option<&RecordedLink>,
    id: &LinkId,
) -> Result<(PublicKey, i64), Refusal> {
    let kept = recorded.map(|recorded| (recorded.public_key, recorded.key_generation));
    let Some(gateway) = gateway else {
        return kept.ok_or_else(|| waiting(format!("the Gateway {} can't be read", id.peer)));
    };
    let Some(text) = &gateway.facts.public_key else {
        return kept.ok_or_else(|| {
            waiting(format!("{} has not published a key yet: is its worker running?", id.peer))
        });
    };
    let key = match text.parse::<PublicKey>() {
        Ok(key) => key,
        Err(fault) => {
            let message = format!("the key that {} publishes is unusable: {fault}", id.peer);
            return kept.ok_or_else(|| refuse(Reason::UnusableKey, message));
        }
    };
    let generation = gateway.facts.key_generation;
    match recorded {
        Some(recorded)
            if recorded.public_key != key
                && generation <= recorded.key_generation
                && !gateway.meta.uid.is_another_than(&recorded.peer_uid) =>
        {
            Ok((recorded.public_key, recorded.key_generation))
        }
        Some(_) | None => Ok((key, generation)),
    }
}

fn waiting(message: String) -> Refusal {
    Refusal { reason: Reason::WaitingForPeer, message, may_come: true }
}

/// A prefix of the peer that this host already has: taking it would cut the host off from its own network.
fn refuse_host_prefix(
    situation: &Situation<'_>,
    prefixes: &[IpNet],
    peer: &GatewayName,
) -> Result<(), Refusal> {
    for prefix in prefixes {
        let held = |host: &&IpNet| prefix.contains(*host) || (host.contains(prefix) && host.prefix_len() > 0);
        let clash = situation.host.host_prefixes.iter().find(held);
        let address = situation.host.addresses.iter().find(|address| prefix.contains(*address));
        if let Some(what) = clash.map(ToString::to_string).or(address.map(ToString::to_string)) {
            let message = format!(
                "{prefix} of {peer} meets {what}, a route or an address of this host: {peer} is left out"
            );
            return Err(refuse(Reason::HostPrefixConflict, message));
        }
    }
    Ok(())
}

/// No tunnel in the tunnel.
fn refuse_overlay_endpoint(
    endpoint: Option<&Endpoint>,
    overlay: &[IpNet],
    prefixes: &[IpNet],
    peer: &GatewayName,
) -> Result<(), Refusal> {
    let Some(address) = endpoint.and_then(|endpoint| endpoint.host.parse::<IpAddr>().ok()) else {
        return Ok(());
    };
    let own = prefixes.iter().find(|prefix| prefix.contains(&address)).copied();
    match own.or_else(|| holding(overlay, address)) {
        Some(prefix) => {
            let message = format!("the endpoint {address} of {peer} lies inside the overlay prefix {prefix}");
            Err(refuse(Reason::EndpointInOverlay, message))
        }
        None => Ok(()),
    }
}

/// Of sorted prefixes those that lie in no other.
fn outermost(sorted: &[IpNet]) -> Vec<IpNet> {
    let mut outermost: Vec<IpNet> = Vec::new();
    for prefix in sorted {
        if !outermost.last().is_some_and(|last| last.contains(prefix)) {
            outermost.push(*prefix);
        }
    }
    outermost
}

/// The one of sorted and disjoint prefixes that holds the address: only the last one before it can.
fn holding(disjoint: &[IpNet], address: IpAddr) -> Option<IpNet> {
    let after = disjoint.partition_point(|prefix| *prefix <= IpNet::from(address));
    let last = after.checked_sub(1).and_then(|last| disjoint.get(last));
    last.copied().filter(|prefix| prefix.contains(&address))
}

/// The prefixes that the listener of an isolated hub passes.
fn fill_hub_prefixes(
    situation: &Situation<'_>,
    network: &NetworkName,
    intent: &Intent,
    desired: &mut DesiredNetwork,
) {
    let of = |hub: &GatewayName| -> Vec<IpNet> {
        if hub == situation.me {
            return desired.own.clone();
        }
        let gateway = situation.view.and_then(|view| view.gateways.get(hub));
        let recorded = LinkRole::ALL.into_iter().find_map(|role| {
            situation.recorded.links.get(&LinkId { network: network.clone(), peer: hub.clone(), role })
        });
        match (gateway, recorded) {
            (Some(gateway), _) => gateway.own_prefixes(network),
            (None, Some(recorded)) => recorded.prefixes.clone(),
            (None, None) => Vec::new(),
        }
    };
    let prefixes: BTreeSet<IpNet> = intent.hubs.iter().flat_map(of).collect();
    desired.hub_prefixes = prefixes.into_iter().collect();
}
