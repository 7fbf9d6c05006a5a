//! Which links are judged: every recorded one, by probes where both ends have tunnel addresses, else by what arrives. It refuses to judge answers: the
//! prober does.

use std::net::IpAddr;

use spanwire_dataplane::probe::Target;
use spanwire_engine::{
    LinkState, NetworkName,
    worker::{Desired, Recorded},
};

/// The links to judge after a pass that wanted `desired`.
pub fn targets(desired: &Desired, recorded: &Recorded) -> Vec<Target> {
    with_addresses(recorded, |network| {
        desired.networks.get(network).and_then(|network| network.tunnel_address)
    })
}

/// The links to judge before the first pass.
pub fn recorded_targets(recorded: &Recorded) -> Vec<Target> {
    with_addresses(recorded, |_| None)
}

fn with_addresses(recorded: &Recorded, wanted: impl Fn(&NetworkName) -> Option<IpAddr>) -> Vec<Target> {
    let links = recorded.links.values().map(|link| {
        let network = &link.id.network;
        let applied = || recorded.intents.get(network).and_then(|applied| applied.intent.tunnel_address);
        let connected_once = link.status.connected_once;
        Target {
            link: link.id.clone(),
            device: link.device.clone(),
            public_key: link.public_key,
            addresses: wanted(network).or_else(applied).zip(link.probe),
            connected_once,
            lost: connected_once && link.status.state == LinkState::NotConnected,
        }
    });
    links.collect()
}
