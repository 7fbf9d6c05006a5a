//! Which links a failed step concerns. It refuses to guess: a step of the whole host concerns all or none by name.

use std::collections::BTreeMap;

use ipnet::IpNet;
use spanwire_engine::{
    DeviceName, LinkId, PublicKey,
    worker::{HostStep, RecordStep, RecordedLink, Step},
};

/// The links among `known` that `step` is for.
pub fn links(step: &Step, known: &BTreeMap<&LinkId, &RecordedLink>) -> Vec<LinkId> {
    let concerned = |link: &RecordedLink| match step {
        Step::Record(step) => record_concerns(step, link),
        Step::Host(step) => host_concerns(step, link),
    };
    known.iter().filter(|(_, link)| concerned(link)).map(|(id, _)| (*id).clone()).collect()
}

fn record_concerns(step: &RecordStep, link: &RecordedLink) -> bool {
    match step {
        RecordStep::Intent(applied) => applied.intent.network == link.id.network,
        RecordStep::Link(recorded) => recorded.id == link.id,
        RecordStep::ForgetLink(id) => *id == link.id,
        RecordStep::ForgetIntent(network) => *network == link.id.network,
    }
}

fn host_concerns(step: &HostStep, link: &RecordedLink) -> bool {
    match step {
        HostStep::Firewall(_) => true,
        HostStep::Table(_) | HostStep::RemoveTable(_) => false,
        HostStep::Device(config) => config.id == link.id.device(),
        HostStep::AddRule { table: _, device }
        | HostStep::RemoveRule { table: _, device }
        | HostStep::RemoveDevice(device) => *device == link.device,
        HostStep::TakeOver { from, to, port: _ } => [from, to].contains(&&link.device),
        HostStep::Peer(config) => is_peer(link, &config.device, &config.public_key),
        HostStep::RemovePeer { device, public_key } => is_peer(link, device, public_key),
        HostStep::Route { table: _, kind: _, prefix, device, source: _ } => {
            *device == link.device && carries(link, prefix)
        }
        HostStep::RemoveRoute { table: _, kind: _, prefix } => carries(link, prefix),
    }
}

fn is_peer(link: &RecordedLink, device: &DeviceName, public_key: &PublicKey) -> bool {
    *device == link.device && *public_key == link.public_key
}

fn carries(link: &RecordedLink, prefix: &IpNet) -> bool {
    !link.id.role.shares_device() || link.prefixes.contains(prefix)
}
