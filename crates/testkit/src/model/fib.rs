//! Where a packet goes: the routes of each host, WireGuard's allowed IPs at both ends, and the horizon of the packet
//! filter. It refuses to look at intents: only what stands on the hosts counts.

use std::collections::BTreeMap;

use spanwire_engine::{DeviceId, DeviceName, LinkRole, PublicKey, worker::Host};

use super::setup::{MOST, Setup};

/// One link end: role and peer.
pub(super) type End = (LinkRole, usize);

/// What a host does with packets.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
pub(super) struct Fib {
    /// The link by which a packet to each gateway leaves.
    pub(super) out: [Option<End>; MOST],
    /// Links that are there, with the gateways whose packets are accepted on them, as bits.
    pub(super) accepts: BTreeMap<End, u8>,
}

impl Fib {
    pub(super) fn read(setup: &Setup, host: &Host) -> Self {
        let mut fib = Self::default();
        let peer_of = |key: &PublicKey| (0..setup.gateways).find(|index| Setup::key(*index) == *key);
        for (id, device) in &host.devices {
            for (key, peer) in &device.peers {
                let Some(index) = peer_of(key) else { continue };
                let accepted = (0..setup.gateways)
                    .filter(|from| peer.allowed_ips.iter().any(|net| net.contains(&Setup::address(*from))))
                    .fold(0u8, |bits, from| bits | 1 << from);
                fib.accepts.insert((id.role, index), accepted);
            }
        }
        for target in 0..setup.gateways {
            fib.out[target] = out(setup, host, target);
        }
        fib
    }
}

fn out(setup: &Setup, host: &Host, target: usize) -> Option<End> {
    let address = Setup::address(target);
    let table = host.tables.values().next()?;
    let best = table
        .routes
        .iter()
        .filter(|((_, prefix), _)| prefix.contains(&address))
        .min_by_key(|((kind, prefix), _)| (std::cmp::Reverse(prefix.prefix_len()), *kind))?;
    let ((_, _), route) = best;
    let (id, device) = by_name(host, &route.device)?;
    let owner =
        device.peers.iter().find(|(_, peer)| peer.allowed_ips.iter().any(|net| net.contains(&address)))?;
    let index = (0..setup.gateways).find(|index| Setup::key(*index) == *owner.0)?;
    Some((id.role, index))
}

fn by_name<'a>(
    host: &'a Host,
    name: &DeviceName,
) -> Option<(&'a DeviceId, &'a spanwire_engine::worker::ObservedDevice)> {
    host.devices.iter().find(|(_, device)| device.name.as_ref() == Some(name))
}

/// Whether a packet that arrived on `from` may leave by `to` (design §5, horizon).
pub(super) fn may_forward(from: LinkRole, to: LinkRole) -> bool {
    match (from, to) {
        (LinkRole::Uplink | LinkRole::Mesh, _) => false,
        (LinkRole::Trunk, to) => to == LinkRole::Downlink,
        (LinkRole::Downlink, _) => true,
    }
}
