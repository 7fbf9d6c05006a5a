//! Which links are probed: every recorded one whose two ends have tunnel addresses. It refuses to judge answers: the
//! prober does.

use std::net::IpAddr;

use spanwire_dataplane::probe::Target;
use spanwire_engine::{
    LinkState, NetworkName,
    worker::{Desired, Recorded},
};

/// The links to probe after a pass that wanted `desired`.
pub fn targets(desired: &Desired, recorded: &Recorded) -> Vec<Target> {
    with_addresses(recorded, |network| {
        desired.networks.get(network).and_then(|network| network.tunnel_address)
    })
}

/// The links to probe before the first pass.
pub fn recorded_targets(recorded: &Recorded) -> Vec<Target> {
    with_addresses(recorded, |_| None)
}

fn with_addresses(recorded: &Recorded, wanted: impl Fn(&NetworkName) -> Option<IpAddr>) -> Vec<Target> {
    let links = recorded.links.values().filter_map(|link| {
        let network = &link.id.network;
        let applied = || recorded.intents.get(network).and_then(|applied| applied.intent.tunnel_address);
        let connected_once = link.status.connected_once;
        Some(Target {
            link: link.id.clone(),
            device: link.device.clone(),
            local: wanted(network).or_else(applied)?,
            remote: link.probe?,
            connected_once,
            lost: connected_once && link.status.state == LinkState::NotConnected,
        })
    });
    links.collect()
}
