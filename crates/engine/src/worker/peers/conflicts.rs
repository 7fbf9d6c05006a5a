//! Two peers of one device with a key or a prefix in common: one of them is left out. It refuses to move what another has
//! had first.

use std::collections::BTreeMap;

use ipnet::IpNet;

use crate::{GatewayName, LinkId, LinkRole, NetworkName, PublicKey, Reason};

use super::{
    super::{DesiredNetwork, desired::Situation},
    PeerNote,
};

/// On a shared device a key and a prefix have one owner: who has it recorded keeps it, else the first in order.
pub(super) fn refuse(situation: &Situation<'_>, network: &NetworkName, desired: &mut DesiredNetwork) {
    for role in LinkRole::ALL.into_iter().filter(|role| role.shares_device()) {
        let mut keys: BTreeMap<PublicKey, GatewayName> = BTreeMap::new();
        let mut owners: BTreeMap<IpNet, GatewayName> = BTreeMap::new();
        if !have_conflicts(desired, role) {
            continue;
        }
        let recorded = |peer: &GatewayName| {
            situation.recorded.links.contains_key(&LinkId {
                network: network.clone(),
                peer: peer.clone(),
                role,
            })
        };
        let (first, then): (Vec<_>, Vec<_>) = desired.order.iter().cloned().partition(recorded);
        for peer in first.into_iter().chain(then) {
            let Some(link) = desired.links.get(&(peer.clone(), role)) else { continue };
            let by_key = keys.get(&link.public_key);
            let by_prefix =
                link.prefixes.iter().find_map(|prefix| owners.get(prefix).map(|owner| (prefix, owner)));
            let note = match (by_key, by_prefix) {
                (Some(owner), _) => Some((
                    Reason::DuplicateKey,
                    format!("{owner} has the same key and keeps it: {peer} is left out"),
                )),
                (None, Some((prefix, owner))) => {
                    let message =
                        format!("{prefix} belongs to {owner}, who had it first: {peer} is left out");
                    Some((Reason::PrefixConflict, message))
                }
                (None, None) => None,
            };
            if let Some((reason, message)) = note {
                desired.links.remove(&(peer.clone(), role));
                desired.notes.push(PeerNote { peer: peer.to_string(), reason, message });
            } else {
                keys.insert(link.public_key, peer.clone());
                owners.extend(link.prefixes.iter().map(|prefix| (*prefix, peer.clone())));
            }
        }
    }
}

/// Whether two links of one role have a key or a prefix in common, which is rare: then their order matters.
fn have_conflicts(desired: &DesiredNetwork, role: LinkRole) -> bool {
    let links = || desired.links.iter().filter(|((_, of), _)| *of == role).map(|(_, link)| link);
    let mut keys: Vec<PublicKey> = links().map(|link| link.public_key).collect();
    keys.sort_unstable();
    let first = links().filter_map(|link| link.prefixes.first());
    let mut prefixes: Vec<IpNet> =
        first.chain(links().flat_map(|link| link.prefixes.iter().skip(1))).copied().collect();
    // The prefixes of links in the order of peers are often two sorted runs, which a stable sort merges.
    prefixes.sort();
    let repeats = |pair: &[IpNet]| matches!(pair, [a, b] if a == b);
    keys.windows(2).any(|pair| matches!(pair, [a, b] if a == b)) || prefixes.windows(2).any(repeats)
}
