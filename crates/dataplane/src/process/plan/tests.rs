//! Requests against states of peers, as values. It refuses devices: those are in the namespace tests.

use proptest::prelude::*;

use super::*;
use crate::configuration::AllowedIp;

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
    let current: Peers = [(key(1), state(&["10.1.0.0/16"], 0)), (key(2), state(&["10.2.0.0/16"], 0))].into();
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
    let request =
        SetDevice { replace_peers: true, peers: vec![change(1, &["10.1.0.0/16"])], ..SetDevice::default() };
    let (target, operations) = run(&current, request, None);
    assert_eq!(target[&key(1)].endpoint, current[&key(1)].endpoint);
    assert_eq!(target[&key(1)].keepalive, 0);
    assert_eq!(operations.len(), 2);
}

/// The peers after operations, as a device would carry them out.
fn carry_out(current: &Peers, operations: Vec<Operation>) -> Peers {
    let mut peers = current.clone();
    for operation in operations {
        match operation {
            Operation::Remove(key) => drop(peers.remove(&key)),
            Operation::Add(key, state) => drop(peers.insert(key, state)),
            Operation::Modify(key, change) => {
                let peer = peers.get_mut(&key).unwrap();
                let Modification { preshared_key, endpoint, keepalive, allowed_ips } = change;
                peer.preshared_key = preshared_key.unwrap_or(peer.preshared_key.take());
                peer.endpoint = endpoint.or(peer.endpoint);
                peer.keepalive = keepalive.unwrap_or(peer.keepalive);
                match allowed_ips {
                    None => {}
                    Some(Allowed::Add(more)) => peer.allowed_ips.extend(more),
                    Some(Allowed::Replace(all)) => peer.allowed_ips = all.into_iter().collect(),
                }
            }
        }
    }
    peers
}

/// What a change is made of: values that may be printed, unlike the change itself.
type Parts = (u8, (bool, bool, bool), Vec<(bool, u8)>, Option<u16>);

fn any_parts() -> impl Strategy<Value = Parts> {
    let prefixes = proptest::collection::vec((any::<bool>(), 0u8..6), 0..4);
    (1u8..5, any::<(bool, bool, bool)>(), prefixes, proptest::option::of(0u16..3))
}

fn make((number, flags, prefixes, keepalive): Parts) -> SetPeer {
    let mut peer = SetPeer::new(key(number));
    (peer.update_only, peer.replace_allowed_ips) = (flags.0, flags.1);
    peer.remove = flags.2 && flags.0;
    peer.keepalive = keepalive;
    peer.endpoint = keepalive.map(|port| std::net::SocketAddr::new([192, 0, 2, number].into(), port));
    let allowed =
        |(remove, n): (bool, u8)| AllowedIp { remove, prefix: format!("10.{n}.0.0/16").parse().unwrap() };
    peer.allowed_ips = prefixes.into_iter().map(allowed).collect();
    peer
}

proptest! {
    #[test]
    fn operations_lead_to_the_target_and_no_prefix_has_two_owners(
        requests in proptest::collection::vec((any::<bool>(), proptest::collection::vec(any_parts(), 0..4)), 1..6),
    ) {
        let mut current = Peers::new();
        for (replace_peers, peers) in requests {
            let peers = peers.into_iter().map(make).collect();
            let request = SetDevice { replace_peers, peers, ..SetDevice::default() };
            let wanted = target(&current, &request, Some(key(4)));
            let reached = carry_out(&current, operations(&current, &wanted));
            prop_assert!(reached == wanted);
            prop_assert!(operations(&reached, &wanted).is_empty());
            prop_assert!(!reached.contains_key(&key(4)));
            let all: Vec<_> = reached.values().flat_map(|peer| &peer.allowed_ips).collect();
            let unique: BTreeSet<_> = all.iter().collect();
            prop_assert_eq!(all.len(), unique.len());
            current = reached;
        }
    }
}
