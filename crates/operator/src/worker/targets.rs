//! Which links are probed: every recorded one that stands on a device. It refuses to judge answers: the prober does.

use std::net::IpAddr;

use spanwire_engine::{
    DeviceName, LinkId, LinkState, PublicKey,
    worker::{Desired, Recorded},
};

/// A link to probe.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Target {
    /// The link.
    pub link: LinkId,
    /// The device that carries it.
    pub device: DeviceName,
    /// The key of the peer, for its counters.
    pub public_key: PublicKey,
    /// The own tunnel address.
    pub local: Option<IpAddr>,
    /// The peer's tunnel address; `None`: the peer does not probe.
    pub remote: Option<IpAddr>,
    /// Whether the link ever worked.
    pub connected_once: bool,
    /// Whether it worked once and was found not to work since.
    pub lost: bool,
}

/// The links to probe after a pass.
pub fn targets(desired: &Desired, recorded: &Recorded) -> Vec<Target> {
    let links = recorded.links.values().map(|link| {
        let applied = recorded.intents.get(&link.id.network).and_then(|record| record.intent.tunnel_address);
        let wanted = desired.networks.get(&link.id.network).and_then(|network| network.tunnel_address);
        let connected_once = link.status.connected_once;
        Target {
            link: link.id.clone(),
            device: link.device.clone(),
            public_key: link.public_key,
            local: wanted.or(applied),
            remote: link.probe,
            connected_once,
            lost: connected_once && link.status.state == LinkState::NotConnected,
        }
    });
    links.collect()
}
