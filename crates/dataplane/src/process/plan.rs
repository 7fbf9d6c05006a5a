//! The least that has to happen to the peers of a userspace device for a request: pure, on values. It refuses to touch a
//! peer whose configuration comes out as it was.

use std::{
    collections::{BTreeMap, BTreeSet},
    net::SocketAddr,
};

use ipnet::IpNet;
use spanwire_engine::PublicKey;

use crate::{
    configuration::{PeerInfo, SetDevice, SetPeer},
    key::PresharedKey,
};

/// The configuration of one peer, without what moves by itself.
#[derive(Clone, PartialEq, Eq, Default)]
pub(super) struct PeerState {
    pub(super) preshared_key: Option<PresharedKey>,
    pub(super) endpoint: Option<SocketAddr>,
    pub(super) keepalive: u16,
    pub(super) allowed_ips: BTreeSet<IpNet>,
}

impl From<&PeerInfo> for PeerState {
    fn from(info: &PeerInfo) -> Self {
        let PeerInfo { preshared_key, endpoint, keepalive, allowed_ips, handshake: _, received: _, sent: _ } =
            info;
        Self {
            preshared_key: preshared_key.clone(),
            endpoint: *endpoint,
            keepalive: *keepalive,
            allowed_ips: allowed_ips.clone(),
        }
    }
}

pub(super) type Peers = BTreeMap<PublicKey, PeerState>;

/// One operation on the live device.
pub(super) enum Operation {
    Remove(PublicKey),
    Add(PublicKey, PeerState),
    Modify(PublicKey, Modification),
}

/// What changes of a peer that stays; `None` leaves it.
#[derive(Default)]
pub(super) struct Modification {
    pub(super) preshared_key: Option<Option<PresharedKey>>,
    pub(super) endpoint: Option<SocketAddr>,
    pub(super) keepalive: Option<u16>,
    pub(super) allowed_ips: Option<Allowed>,
}

/// How the allowed IPs of a peer change.
pub(super) enum Allowed {
    Add(Vec<IpNet>),
    Replace(Vec<IpNet>),
}

/// The peers after `request`. Like the kernel: a device's own key is no peer, a prefix belongs to who was given it last,
/// and a peer that is named without an endpoint keeps the one it has. Unlike it, `replace_peers` and a removal
/// within the same request keep the sessions of peers that are named again.
pub(super) fn target(current: &Peers, request: &SetDevice, own: Option<PublicKey>) -> Peers {
    let mut peers = current.clone();
    if request.replace_peers {
        let named: BTreeSet<&PublicKey> = request.peers.iter().map(|peer| &peer.public_key).collect();
        peers.retain(|key, _| named.contains(key));
        for peer in peers.values_mut() {
            *peer = PeerState { endpoint: peer.endpoint, ..PeerState::default() };
        }
    }
    for peer in &request.peers {
        if own != Some(peer.public_key) {
            apply(&mut peers, peer);
        }
    }
    if let Some(own) = own {
        peers.remove(&own);
    }
    for (key, peer) in &mut peers {
        peer.endpoint = peer.endpoint.or_else(|| current.get(key)?.endpoint);
    }
    peers
}

fn apply(peers: &mut Peers, change: &SetPeer) {
    let SetPeer {
        public_key,
        remove,
        update_only,
        preshared_key,
        endpoint,
        keepalive,
        replace_allowed_ips,
        allowed_ips,
    } = change;
    if *remove {
        peers.remove(public_key);
        return;
    }
    if *update_only && !peers.contains_key(public_key) {
        return;
    }
    let mut peer = peers.remove(public_key).unwrap_or_default();
    if let Some(key) = preshared_key {
        peer.preshared_key.clone_from(key);
    }
    peer.endpoint = endpoint.or(peer.endpoint);
    peer.keepalive = keepalive.unwrap_or(peer.keepalive);
    if *replace_allowed_ips {
        peer.allowed_ips.clear();
    }
    for allowed in allowed_ips {
        if allowed.remove {
            peer.allowed_ips.remove(&allowed.prefix);
        } else {
            peer.allowed_ips.insert(allowed.prefix);
            for other in peers.values_mut() {
                other.allowed_ips.remove(&allowed.prefix);
            }
        }
    }
    peers.insert(*public_key, peer);
}

/// The operations between two states: removals, then peers that lose prefixes, then the rest, so that no prefix is
/// claimed twice on the way.
pub(super) fn operations(current: &Peers, target: &Peers) -> Vec<Operation> {
    let (mut removals, mut shrinking, mut rest) = (Vec::new(), Vec::new(), Vec::new());
    removals
        .extend(current.keys().filter(|key| !target.contains_key(*key)).map(|key| Operation::Remove(*key)));
    for (key, wanted) in target {
        match current.get(key) {
            None => rest.push(Operation::Add(*key, wanted.clone())),
            Some(there) if there == wanted => {}
            Some(there) => {
                let modification = modification(there, wanted);
                let shrinks = matches!(modification.allowed_ips, Some(Allowed::Replace(_)));
                let list = if shrinks { &mut shrinking } else { &mut rest };
                list.push(Operation::Modify(*key, modification));
            }
        }
    }
    removals.into_iter().chain(shrinking).chain(rest).collect()
}

fn modification(there: &PeerState, wanted: &PeerState) -> Modification {
    let PeerState { preshared_key, endpoint, keepalive, allowed_ips } = wanted;
    let added: Vec<IpNet> = allowed_ips.difference(&there.allowed_ips).copied().collect();
    let allowed = if !there.allowed_ips.is_subset(allowed_ips) {
        Some(Allowed::Replace(allowed_ips.iter().copied().collect()))
    } else {
        (!added.is_empty()).then_some(Allowed::Add(added))
    };
    Modification {
        preshared_key: (*preshared_key != there.preshared_key).then(|| preshared_key.clone()),
        endpoint: endpoint.filter(|endpoint| Some(*endpoint) != there.endpoint),
        keepalive: (*keepalive != there.keepalive).then_some(*keepalive),
        allowed_ips: allowed,
    }
}

#[cfg(test)]
mod tests;
