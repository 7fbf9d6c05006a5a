//! What is sent to the kernel for a change, as values. It refuses to replace the peers of a device or the prefixes of a
//! peer that is there: what is not named stays.
//!
//! A netlink attribute holds at most 64 KiB, so a change goes out in batches, and a peer with more prefixes than fit is
//! named again in the next one. Kernels before 6.16 can't take a single prefix from a peer. Everywhere a prefix moves to
//! the peer that named it last, so a prefix to be taken away is given to a peer that lives for the length of one message
//! and takes it along; the others are never without an owner.

use netlink_packet_core::Emitable;
use netlink_packet_wireguard::{
    WireguardAddressFamily, WireguardAllowedIp, WireguardAllowedIpAttr, WireguardAttribute, WireguardCmd,
    WireguardDeviceFlags, WireguardMessage, WireguardPeer, WireguardPeerAttribute, WireguardPeerFlags,
};
use spanwire_engine::{DeviceName, PublicKey};

use crate::configuration::{AllowedIp, SetDevice, SetPeer};

/// Bytes of peers in one message, well below what an attribute can hold and a socket takes at once.
const BATCH: usize = 24 * 1024;
/// Header of a nested attribute.
const NEST: usize = 4;

/// The peer that takes prefixes along. Nobody has its private half, and it never has an endpoint.
const CARRIER: PublicKey = PublicKey(*b"spanwire: takes prefixes along..");

/// Asks for everything that a device shows.
pub(super) fn get(device: &DeviceName) -> WireguardMessage {
    WireguardMessage { cmd: WireguardCmd::GetDevice, attributes: vec![name(device)] }
}

/// The messages of a change, in order. A change of nothing is no message.
pub(super) fn set(device: &DeviceName, set: &SetDevice) -> Vec<WireguardMessage> {
    let mut head = Vec::new();
    head.extend(set.private_key.as_ref().map(|key| WireguardAttribute::PrivateKey(*key.bytes())));
    head.extend(set.listen_port.map(WireguardAttribute::ListenPort));
    head.extend(set.mark.map(WireguardAttribute::Fwmark));
    if set.replace_peers {
        head.push(WireguardAttribute::Flags(WireguardDeviceFlags::ReplacePeers));
    }
    let mut batches = Batches::default();
    for peer in &set.peers {
        batches.peer(peer);
    }
    let mut peers = batches.finish().into_iter();
    let mut messages = Vec::new();
    let first = peers.next();
    if !head.is_empty() || first.is_some() {
        head.extend(first.map(WireguardAttribute::Peers));
        messages.push(message(device, head));
    }
    messages.extend(peers.map(|batch| message(device, vec![WireguardAttribute::Peers(batch)])));
    messages
}

/// Bytes of a message's attributes.
pub(super) fn length(message: &WireguardMessage) -> u64 {
    message.buffer_len() as u64
}

fn message(device: &DeviceName, attributes: Vec<WireguardAttribute>) -> WireguardMessage {
    let attributes = std::iter::once(name(device)).chain(attributes).collect();
    WireguardMessage { cmd: WireguardCmd::SetDevice, attributes }
}

fn name(device: &DeviceName) -> WireguardAttribute {
    WireguardAttribute::IfName(device.as_str().to_owned())
}

/// Peers, parted so that each part fits into one message.
#[derive(Default)]
struct Batches {
    full: Vec<Vec<WireguardPeer>>,
    open: Vec<WireguardPeer>,
    used: usize,
}

impl Batches {
    fn peer(&mut self, set: &SetPeer) {
        let mut head = head(set);
        let adding: Vec<_> = set.allowed_ips.iter().filter(|allowed| !allowed.remove).collect();
        let mut rest = adding.as_slice();
        loop {
            let prefixes = self.prefixes(&head, &mut rest);
            let again = !rest.is_empty();
            self.push(head, prefixes);
            if !again {
                break;
            }
            head = named(&set.public_key, WireguardPeerFlags::UpdateOnly);
        }
        let removing: Vec<_> = set.allowed_ips.iter().filter(|allowed| allowed.remove).collect();
        let mut rest = removing.as_slice();
        while !rest.is_empty() {
            let prefixes = self.prefixes(&carrier_ends(), &mut rest);
            self.push(named(&CARRIER, WireguardPeerFlags::empty()), prefixes);
            // In the same message, whatever else is full: nobody sees the carrier.
            self.add(WireguardPeer(carrier_ends()));
        }
    }

    /// As many of `rest` as fit beside `head`; closes the open batch where not even one fits.
    fn prefixes(
        &mut self,
        head: &[WireguardPeerAttribute],
        rest: &mut &[&AllowedIp],
    ) -> Vec<WireguardAllowedIp> {
        // Once more for the end of a carrier, which has to fit too.
        let fixed = 2 * (head.buffer_len() + 2 * NEST);
        if self.used + fixed + 64 > BATCH {
            self.close();
        }
        let (mut taken, mut used) = (Vec::new(), self.used + fixed);
        while let Some((first, others)) = rest.split_first() {
            let prefix = allowed_ip(&first.prefix);
            used += NEST + prefix.as_slice().buffer_len();
            if used > BATCH {
                break;
            }
            taken.push(prefix);
            *rest = others;
        }
        taken
    }

    fn push(&mut self, mut peer: Vec<WireguardPeerAttribute>, prefixes: Vec<WireguardAllowedIp>) {
        if !prefixes.is_empty() {
            peer.push(WireguardPeerAttribute::AllowedIps(prefixes));
        }
        self.add(WireguardPeer(peer));
    }

    fn add(&mut self, peer: WireguardPeer) {
        self.used += NEST + peer.as_slice().buffer_len();
        self.open.push(peer);
    }

    fn close(&mut self) {
        if !self.open.is_empty() {
            self.full.push(std::mem::take(&mut self.open));
        }
        self.used = 0;
    }

    fn finish(mut self) -> Vec<Vec<WireguardPeer>> {
        self.close();
        self.full
    }
}

/// A peer without its prefixes.
fn head(set: &SetPeer) -> Vec<WireguardPeerAttribute> {
    let mut flags = WireguardPeerFlags::empty();
    flags.set(WireguardPeerFlags::RemoveMe, set.remove);
    flags.set(WireguardPeerFlags::UpdateOnly, set.update_only);
    flags.set(WireguardPeerFlags::ReplaceAllowedIps, set.replace_allowed_ips);
    let mut peer = named(&set.public_key, flags);
    let preshared = set.preshared_key.as_ref();
    peer.extend(
        preshared.map(|key| {
            WireguardPeerAttribute::PresharedKey(key.as_ref().map_or([0; 32], |key| *key.bytes()))
        }),
    );
    peer.extend(set.endpoint.map(WireguardPeerAttribute::Endpoint));
    peer.extend(set.keepalive.map(WireguardPeerAttribute::PersistentKeepalive));
    peer
}

fn carrier_ends() -> Vec<WireguardPeerAttribute> {
    named(&CARRIER, WireguardPeerFlags::RemoveMe)
}

fn named(key: &PublicKey, flags: WireguardPeerFlags) -> Vec<WireguardPeerAttribute> {
    let mut peer = vec![WireguardPeerAttribute::PublicKey(key.0)];
    if !flags.is_empty() {
        peer.push(WireguardPeerAttribute::Flags(flags));
    }
    peer
}

fn allowed_ip(prefix: &ipnet::IpNet) -> WireguardAllowedIp {
    let family =
        if prefix.addr().is_ipv4() { WireguardAddressFamily::Ipv4 } else { WireguardAddressFamily::Ipv6 };
    WireguardAllowedIp(vec![
        WireguardAllowedIpAttr::Family(family),
        WireguardAllowedIpAttr::IpAddr(prefix.addr()),
        WireguardAllowedIpAttr::Cidr(prefix.prefix_len()),
    ])
}

#[cfg(test)]
pub(super) mod tests;
