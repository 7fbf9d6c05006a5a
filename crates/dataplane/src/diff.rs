//! What has to change on a device, computed from what is there and what should be; the messages are the backend's. It
//! refuses to name anything that is right already, and to clear an endpoint that was learned.

use std::{collections::BTreeSet, net::SocketAddr, time::Duration};

use ipnet::IpNet;
use spanwire_engine::{
    PublicKey,
    worker::{ObservedPeer, PeerConfig},
};

/// One peer's change. All of it goes into one call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct PeerChange {
    pub(crate) public_key: PublicKey,
    /// The peer is not there yet.
    pub(crate) create: bool,
    pub(crate) endpoint: Option<SocketAddr>,
    pub(crate) keepalive: Option<Duration>,
    pub(crate) add: Vec<IpNet>,
    pub(crate) remove: Vec<IpNet>,
}

/// The change that makes `observed` what `config` asks for; `None`: nothing to send. A peer that has to be made and
/// whose configuration names no endpoint gets `remembered`, the one last seen on the device, so that its first packet
/// does not wait for the other side.
pub(crate) fn peer(
    observed: Option<&ObservedPeer>,
    config: &PeerConfig,
    remembered: Option<SocketAddr>,
) -> Option<PeerChange> {
    let PeerConfig { device: _, public_key, allowed_ips, endpoint, keepalive } = config;
    let Some(ObservedPeer { allowed_ips: there, endpoint: used, keepalive: kept }) = observed else {
        return Some(PeerChange {
            public_key: *public_key,
            create: true,
            endpoint: endpoint.or(remembered),
            keepalive: (!keepalive.is_zero()).then_some(*keepalive),
            add: allowed_ips.clone(),
            remove: Vec::new(),
        });
    };
    let wanted: BTreeSet<IpNet> = allowed_ips.iter().copied().collect();
    let change = PeerChange {
        public_key: *public_key,
        create: false,
        endpoint: endpoint.filter(|endpoint| Some(*endpoint) != *used),
        keepalive: (keepalive != kept).then_some(*keepalive),
        add: wanted.difference(there).copied().collect(),
        remove: there.difference(&wanted).copied().collect(),
    };
    let nothing = change.endpoint.is_none()
        && change.keepalive.is_none()
        && change.add.is_empty()
        && change.remove.is_empty();
    (!nothing).then_some(change)
}

/// What a read-back shows to be different from `config`; `None`: all as asked.
pub(crate) fn mismatch(observed: Option<&ObservedPeer>, config: &PeerConfig) -> Option<&'static str> {
    let Some(peer) = observed else { return Some("the peer") };
    match self::peer(Some(peer), config, None)? {
        PeerChange { add, remove, .. } if !add.is_empty() || !remove.is_empty() => Some("allowed IPs"),
        PeerChange { keepalive: Some(_), .. } => Some("keepalive"),
        // The peer may roam between the write and the reading: an endpoint that differs is no fault.
        PeerChange { .. } => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn net(text: &str) -> IpNet {
        text.parse().unwrap()
    }

    fn config(allowed: &[&str], endpoint: Option<&str>, keepalive: u64) -> PeerConfig {
        PeerConfig {
            device: "swd-x".parse().unwrap(),
            public_key: PublicKey([1; 32]),
            allowed_ips: allowed.iter().map(|text| net(text)).collect(),
            endpoint: endpoint.map(|text| text.parse().unwrap()),
            keepalive: Duration::from_secs(keepalive),
        }
    }

    fn there(allowed: &[&str], endpoint: Option<&str>, keepalive: u64) -> ObservedPeer {
        let PeerConfig { allowed_ips, endpoint, keepalive, .. } = config(allowed, endpoint, keepalive);
        ObservedPeer { allowed_ips: allowed_ips.into_iter().collect(), endpoint, keepalive }
    }

    #[test]
    fn what_is_right_needs_nothing() {
        let peer_there = there(&["10.0.0.0/8", "fd00::/8"], Some("192.0.2.1:1"), 25);
        assert_eq!(peer(Some(&peer_there), &config(&["fd00::/8", "10.0.0.0/8"], None, 25), None), None);
        let same = config(&["10.0.0.0/8", "fd00::/8"], Some("192.0.2.1:1"), 25);
        assert_eq!(peer(Some(&peer_there), &same, Some("192.0.2.9:9".parse().unwrap())), None);
        assert_eq!(peer(Some(&there(&[], None, 0)), &config(&[], None, 0), None), None);
    }

    #[test]
    fn d2_d3_no_endpoint_in_the_configuration_keeps_the_learned_one() {
        let change = peer(Some(&there(&[], Some("192.0.2.1:1"), 0)), &config(&[], None, 25), None);
        assert_eq!(change.unwrap().endpoint, None);
    }

    #[test]
    fn d4_one_prefix_added_is_the_only_thing_sent() {
        let change = peer(
            Some(&there(&["10.1.0.0/16"], None, 0)),
            &config(&["10.1.0.0/16", "10.2.0.0/16"], None, 0),
            None,
        );
        let change = change.unwrap();
        assert_eq!((change.add, change.remove), (vec![net("10.2.0.0/16")], vec![]));
        assert_eq!((change.create, change.endpoint, change.keepalive), (false, None, None));
    }

    #[test]
    fn d5_only_what_differs_is_sent() {
        let old = there(&["10.1.0.0/16"], Some("192.0.2.1:1"), 25);
        let change = peer(Some(&old), &config(&["10.1.0.0/16"], Some("192.0.2.2:1"), 25), None).unwrap();
        assert_eq!(change.endpoint, Some("192.0.2.2:1".parse().unwrap()));
        assert!(change.keepalive.is_none() && change.add.is_empty() && change.remove.is_empty());
        let change = peer(Some(&old), &config(&["10.1.0.0/16"], None, 0), None).unwrap();
        assert_eq!((change.keepalive, change.endpoint), (Some(Duration::ZERO), None));
    }

    #[test]
    fn a_peer_that_is_made_again_gets_endpoint_and_keepalive_in_the_same_change() {
        let remembered = Some("192.0.2.7:7".parse().unwrap());
        let change = peer(None, &config(&["10.1.0.0/16"], None, 25), remembered).unwrap();
        assert!(change.create);
        assert_eq!(change.endpoint, remembered);
        assert_eq!(change.keepalive, Some(Duration::from_secs(25)));
        let named = peer(None, &config(&[], Some("192.0.2.8:8"), 0), remembered).unwrap();
        assert_eq!((named.endpoint, named.keepalive), (Some("192.0.2.8:8".parse().unwrap()), None));
    }

    #[test]
    fn reading_back_names_what_is_wrong_and_lets_a_peer_roam() {
        let asked = config(&["10.1.0.0/16"], Some("192.0.2.1:1"), 25);
        assert_eq!(mismatch(None, &asked), Some("the peer"));
        assert_eq!(mismatch(Some(&there(&["10.1.0.0/16"], Some("192.0.2.9:1"), 25)), &asked), None);
        assert_eq!(mismatch(Some(&there(&[], Some("192.0.2.1:1"), 25)), &asked), Some("allowed IPs"));
        assert_eq!(mismatch(Some(&there(&["10.1.0.0/16"], None, 0)), &asked), Some("keepalive"));
    }
}
