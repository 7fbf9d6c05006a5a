//! What the kernel shows of a device, put together from the messages of a dump. It refuses to take a peer that is named in
//! two messages for two, and a moment of the wall clock for an age.

use std::time::Duration;

use ipnet::IpNet;
use netlink_packet_wireguard::{
    WireguardAllowedIp, WireguardAllowedIpAttr, WireguardAttribute, WireguardMessage, WireguardPeer,
    WireguardPeerAttribute,
};
use spanwire_engine::PublicKey;
use zeroize::Zeroizing;

use crate::{
    configuration::{DeviceInfo, PeerInfo},
    key::{PresharedKey, SecretKey},
};

/// Merges the messages of one dump; `wall` is the time since the epoch at its end. What is not known is skipped.
pub(super) fn device(messages: Vec<WireguardMessage>, wall: Duration) -> DeviceInfo {
    let mut device = DeviceInfo::default();
    for attribute in messages.into_iter().flat_map(|message| message.attributes) {
        match attribute {
            WireguardAttribute::PrivateKey(bytes) => {
                let bytes = Zeroizing::new(bytes);
                device.private_key = (*bytes != [0; 32]).then(|| SecretKey::from_bytes(bytes));
            }
            WireguardAttribute::ListenPort(port) => device.listen_port = port,
            WireguardAttribute::Fwmark(mark) => device.mark = mark,
            WireguardAttribute::Peers(peers) => {
                for peer in peers {
                    merge(&mut device, peer, wall);
                }
            }
            _ => {}
        }
    }
    device
}

/// A peer whose prefixes did not fit into one message is named again, without most of its other attributes.
fn merge(device: &mut DeviceInfo, peer: WireguardPeer, wall: Duration) {
    let key = peer.iter().find_map(|attribute| match attribute {
        WireguardPeerAttribute::PublicKey(bytes) => Some(PublicKey(*bytes)),
        _ => None,
    });
    let Some(key) = key else { return };
    let known = device.peers.entry(key).or_default();
    for attribute in peer.0 {
        note(known, attribute, wall);
    }
}

fn note(peer: &mut PeerInfo, attribute: WireguardPeerAttribute, wall: Duration) {
    match attribute {
        WireguardPeerAttribute::PresharedKey(bytes) => {
            peer.preshared_key = PresharedKey::from_bytes(Zeroizing::new(bytes));
        }
        WireguardPeerAttribute::Endpoint(endpoint) => peer.endpoint = Some(endpoint),
        WireguardPeerAttribute::PersistentKeepalive(seconds) => peer.keepalive = seconds,
        WireguardPeerAttribute::LastHandshake(time) => {
            let moment = Duration::new(
                u64::try_from(time.seconds).unwrap_or(0),
                u32::try_from(time.nano_seconds).unwrap_or(0).min(999_999_999),
            );
            peer.handshake = (!moment.is_zero()).then(|| wall.saturating_sub(moment));
        }
        WireguardPeerAttribute::RxBytes(count) => peer.received = count,
        WireguardPeerAttribute::TxBytes(count) => peer.sent = count,
        WireguardPeerAttribute::AllowedIps(prefixes) => {
            peer.allowed_ips.extend(prefixes.iter().filter_map(prefix));
        }
        _ => {}
    }
}

fn prefix(allowed: &WireguardAllowedIp) -> Option<IpNet> {
    let address = allowed.iter().find_map(|attribute| match attribute {
        WireguardAllowedIpAttr::IpAddr(address) => Some(*address),
        _ => None,
    });
    let length = allowed.iter().find_map(|attribute| match attribute {
        WireguardAllowedIpAttr::Cidr(length) => Some(*length),
        _ => None,
    });
    IpNet::new(address?, length?).ok()
}

#[cfg(test)]
mod tests {
    use netlink_packet_wireguard::{WireguardCmd, WireguardTimeSpec};

    use super::*;
    use crate::kernel::message::tests::allowed;

    fn shown(attributes: Vec<WireguardPeerAttribute>) -> WireguardMessage {
        let peers = WireguardAttribute::Peers(vec![WireguardPeer(attributes)]);
        WireguardMessage { cmd: WireguardCmd::GetDevice, attributes: vec![peers] }
    }

    #[test]
    fn d11_a_peer_in_two_messages_is_one_peer() {
        let key = WireguardPeerAttribute::PublicKey([7; 32]);
        let first = shown(vec![
            key.clone(),
            WireguardPeerAttribute::PersistentKeepalive(25),
            WireguardPeerAttribute::AllowedIps(vec![allowed("10.1.0.0/16")]),
        ]);
        let second = shown(vec![key, WireguardPeerAttribute::AllowedIps(vec![allowed("fd00::/64")])]);
        let read = device(vec![first, second], Duration::ZERO);
        assert_eq!(read.peers.len(), 1);
        let peer = &read.peers[&PublicKey([7; 32])];
        assert_eq!(peer.keepalive, 25);
        let prefixes: Vec<String> = peer.allowed_ips.iter().map(IpNet::to_string).collect();
        assert_eq!(prefixes, ["10.1.0.0/16", "fd00::/64"]);
    }

    #[test]
    fn a_handshake_of_the_future_is_fresh_and_none_is_none() {
        let at = |seconds| {
            let time = WireguardTimeSpec { seconds, nano_seconds: 0 };
            let message = shown(vec![
                WireguardPeerAttribute::PublicKey([1; 32]),
                WireguardPeerAttribute::LastHandshake(time),
            ]);
            device(vec![message], Duration::from_secs(100)).peers[&PublicKey([1; 32])].handshake
        };
        assert_eq!(at(0), None);
        assert_eq!(at(90), Some(Duration::from_secs(10)));
        assert_eq!(at(200), Some(Duration::ZERO));
        assert_eq!(at(-5), None);
    }
}
