//! Messages as values.

use std::collections::BTreeMap;

use ipnet::IpNet;

use super::*;
use crate::{configuration::PeerInfo, kernel::read};

pub(in crate::kernel) fn allowed(text: &str) -> WireguardAllowedIp {
    allowed_ip(&text.parse().unwrap())
}

fn device() -> DeviceName {
    "skd-x".parse().unwrap()
}

fn peer(number: u16) -> SetPeer {
    let mut key = [9u8; 32];
    key[..2].copy_from_slice(&number.to_le_bytes());
    SetPeer::new(PublicKey(key))
}

fn prefixes(count: u32, remove: bool) -> Vec<AllowedIp> {
    let prefix = |n: u32| IpNet::new(std::net::Ipv4Addr::from(0x0a00_0000 + (n << 8)).into(), 24).unwrap();
    (0..count).map(|n| AllowedIp { remove, prefix: prefix(n) }).collect()
}

fn peers_of(messages: &[WireguardMessage]) -> Vec<&WireguardPeer> {
    let peers =
        messages.iter().flat_map(|message| &message.attributes).filter_map(|attribute| match attribute {
            WireguardAttribute::Peers(peers) => Some(peers),
            _ => None,
        });
    peers.flatten().collect()
}

/// What a device shows that took the messages in.
fn shown(messages: Vec<WireguardMessage>) -> BTreeMap<PublicKey, PeerInfo> {
    read::device(messages, std::time::Duration::ZERO).peers
}

#[test]
fn a_change_of_nothing_is_no_message() {
    assert!(set(&device(), &SetDevice::default()).is_empty());
}

#[test]
fn d4_d5_only_what_is_named_is_sent_and_nothing_is_replaced() {
    let change = SetPeer { update_only: true, keepalive: Some(25), ..peer(1) };
    let messages = set(&device(), &SetDevice { peers: vec![change], ..SetDevice::default() });
    let [message] = messages.as_slice() else { panic!("one message") };
    assert_eq!(message.attributes[0], WireguardAttribute::IfName("skd-x".to_owned()));
    let wanted = WireguardPeer(vec![
        WireguardPeerAttribute::PublicKey(peer(1).public_key.0),
        WireguardPeerAttribute::Flags(WireguardPeerFlags::UpdateOnly),
        WireguardPeerAttribute::PersistentKeepalive(25),
    ]);
    assert_eq!(message.attributes[1], WireguardAttribute::Peers(vec![wanted]));
}

#[test]
fn d11_every_number_of_peers_arrives_whole_and_no_message_is_too_long() {
    for count in [1, 20, 21, 22, 1000] {
        let peers = (0..count).map(|n| SetPeer { allowed_ips: prefixes(3, false), ..peer(n) }).collect();
        let messages = set(&device(), &SetDevice { listen_port: Some(7), peers, ..SetDevice::default() });
        assert!(messages.iter().all(|message| length(message) < 32 * 1024));
        let shown = shown(messages);
        assert_eq!(shown.len(), usize::from(count));
        assert!(shown.values().all(|peer| peer.allowed_ips.len() == 3));
    }
}

#[test]
fn d11_a_peer_with_five_thousand_prefixes_goes_out_in_parts() {
    let endpoint = "192.0.2.1:7".parse().ok();
    let large = SetPeer { endpoint, allowed_ips: prefixes(5000, false), ..peer(1) };
    let messages = set(&device(), &SetDevice { peers: vec![large, peer(2)], ..SetDevice::default() });
    assert!(messages.len() > 5 && messages.iter().all(|message| length(message) < 32 * 1024));
    let parts = peers_of(&messages);
    let endpoints =
        parts.iter().filter(|part| part.iter().any(|a| matches!(a, WireguardPeerAttribute::Endpoint(_))));
    assert_eq!(endpoints.count(), 1, "named once, with the first part");
    let shown = shown(messages);
    assert_eq!(shown[&peer(1).public_key].allowed_ips.len(), 5000);
    assert!(shown.contains_key(&peer(2).public_key));
}

#[test]
fn prefixes_are_carried_away_and_the_carrier_ends_in_the_same_message() {
    let change = SetPeer { update_only: true, allowed_ips: prefixes(3000, true), ..peer(1) };
    let messages = set(&device(), &SetDevice { peers: vec![change], ..SetDevice::default() });
    assert!(messages.len() > 2);
    for message in &messages {
        let peers = peers_of(std::slice::from_ref(message));
        let carrier = |part: &&WireguardPeer| part[0] == WireguardPeerAttribute::PublicKey(CARRIER.0);
        let carriers: Vec<_> = peers.iter().copied().filter(carrier).collect();
        assert!(carriers.len().is_multiple_of(2));
        let last = carriers.last().map(|part| part[1].clone());
        assert_eq!(last, Some(WireguardPeerAttribute::Flags(WireguardPeerFlags::RemoveMe)));
    }
    let replaced = peers_of(&messages).into_iter().flat_map(|part| &part.0).any(
        |a| matches!(a, WireguardPeerAttribute::Flags(flags) if flags.contains(WireguardPeerFlags::ReplaceAllowedIps)),
    );
    assert!(!replaced);
    assert_eq!(shown(messages)[&CARRIER].allowed_ips.len(), 3000);
}
