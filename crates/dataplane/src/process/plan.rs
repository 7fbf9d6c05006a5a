//! The least that has to happen to the peers of a userspace device for a request: pure, on values. It refuses to touch a
//! peer whose configuration comes out as it was.

use std::{
    collections::{BTreeMap, BTreeSet},
    net::SocketAddr,
};

use ipnet::IpNet;
use spanwire_engine::PublicKey;

use crate::{
    key::PresharedKey,
    uapi::{PeerInfo, SetDevice, SetPeer},
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
/// and a peer that is named without an endpoint keeps the one it has. Unlike it, `replace_peers` keeps the sessions of
/// peers that are named again.
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
mod tests {
    use super::*;
    use crate::uapi::AllowedIp;

    fn key(number: u8) -> PublicKey {
        PublicKey([number; 32])
    }

    fn state(allowed: &[&str], keepalive: u16) -> PeerState {
        let allowed_ips = allowed.iter().map(|text| text.parse().unwrap()).collect();
        let endpoint = Some("192.0.2.1:1".parse().unwrap());
        PeerState { endpoint, keepalive, allowed_ips, preshared_key: None }
    }

    fn change(number: u8, allowed: &[&str]) -> SetPeer {
        let mut peer = SetPeer::new(key(number));
        peer.allowed_ips = allowed
            .iter()
            .map(|text| AllowedIp {
                remove: text.starts_with('-'),
                prefix: text.trim_start_matches('-').parse().unwrap(),
            })
            .collect();
        peer
    }

    fn run(current: &Peers, request: SetDevice, own: Option<u8>) -> (Peers, Vec<Operation>) {
        let target = target(current, &request, own.map(key));
        let operations = operations(current, &target);
        (target, operations)
    }

    #[test]
    fn a_request_that_changes_nothing_does_nothing() {
        let current: Peers = [(key(1), state(&["10.1.0.0/16"], 25))].into();
        let mut same = change(1, &["10.1.0.0/16"]);
        same.keepalive = Some(25);
        same.endpoint = Some("192.0.2.1:1".parse().unwrap());
        same.replace_allowed_ips = true;
        for replace_peers in [false, true] {
            let request = SetDevice { replace_peers, peers: vec![same.clone()], ..SetDevice::default() };
            assert!(run(&current, request, None).1.is_empty());
        }
    }

    #[test]
    fn adding_a_prefix_never_clears_the_others() {
        let current: Peers = [(key(1), state(&["10.1.0.0/16"], 0))].into();
        let request = SetDevice { peers: vec![change(1, &["10.2.0.0/16"])], ..SetDevice::default() };
        let (_, operations) = run(&current, request, None);
        let [Operation::Modify(_, modification)] = &operations[..] else { panic!("one modification") };
        assert!(matches!(&modification.allowed_ips, Some(Allowed::Add(added)) if added.len() == 1));
        assert!(modification.endpoint.is_none() && modification.keepalive.is_none());
    }

    #[test]
    fn a_moved_prefix_leaves_its_old_holder_first() {
        let current: Peers =
            [(key(1), state(&["10.1.0.0/16"], 0)), (key(2), state(&["10.2.0.0/16"], 0))].into();
        let request = SetDevice { peers: vec![change(1, &["10.2.0.0/16"])], ..SetDevice::default() };
        let (target, operations) = run(&current, request, None);
        assert!(target[&key(2)].allowed_ips.is_empty());
        let order: Vec<PublicKey> = operations
            .iter()
            .map(|operation| match operation {
                Operation::Remove(key) | Operation::Add(key, _) | Operation::Modify(key, _) => *key,
            })
            .collect();
        assert_eq!(order, [key(2), key(1)]);
    }

    #[test]
    fn removal_update_only_own_key_and_minus_prefixes() {
        let current: Peers = [(key(1), state(&["10.1.0.0/16", "10.9.0.0/16"], 0))].into();
        let mut gone = change(1, &[]);
        gone.remove = true;
        let request = SetDevice { peers: vec![gone], ..SetDevice::default() };
        assert!(matches!(run(&current, request, None).1[..], [Operation::Remove(_)]));

        let mut only = change(2, &["10.2.0.0/16"]);
        only.update_only = true;
        let request = SetDevice { peers: vec![only, change(3, &["10.3.0.0/16"])], ..SetDevice::default() };
        assert!(run(&current, request, Some(3)).1.is_empty());

        let request = SetDevice { peers: vec![change(1, &["-10.9.0.0/16"])], ..SetDevice::default() };
        assert_eq!(run(&current, request, None).0[&key(1)].allowed_ips.len(), 1);
    }

    #[test]
    fn replacing_peers_keeps_the_learned_endpoint_of_those_named() {
        let current: Peers = [(key(1), state(&["10.1.0.0/16"], 25)), (key(2), state(&[], 0))].into();
        let request = SetDevice {
            replace_peers: true,
            peers: vec![change(1, &["10.1.0.0/16"])],
            ..SetDevice::default()
        };
        let (target, operations) = run(&current, request, None);
        assert_eq!(target[&key(1)].endpoint, current[&key(1)].endpoint);
        assert_eq!(target[&key(1)].keepalive, 0);
        assert_eq!(operations.len(), 2);
    }
}
