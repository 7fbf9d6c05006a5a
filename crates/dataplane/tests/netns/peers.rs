//! Peers of a live device: nothing is written twice, nothing is lost, everything reads back. It refuses fixtures that
//! no kernel saw.

use std::{net::SocketAddr, time::Duration};

use spanwire_dataplane::local::Error;
use spanwire_engine::{
    LinkRole, PublicKey,
    port::Written,
    worker::{DeviceConfig, HostStep, PeerConfig, RouteKind},
};
use spanwire_testkit::{
    lab::Lab,
    prober::{Pair, Prober, Rate},
};

use crate::rig::{Gateway, TABLE, connect, echo, far_key, far_peer, link_up, net, wait_for};

const WIDE: &str = "10.9.0.0/16";

pub(crate) fn pair(lab: &mut Lab) -> (Gateway, Gateway) {
    (Gateway::start(lab.host("s").unwrap(), "10.9.0.1"), Gateway::start(lab.host("h").unwrap(), "10.9.0.2"))
}

pub(crate) fn talk(from: &Gateway, to: &Gateway) -> bool {
    echo((&from.host, from.tunnel), (&to.host, to.tunnel), Duration::from_secs(10))
}

/// All steps that keep one peer as it is, but for the packet filter.
fn steps(gateway: &Gateway, role: LinkRole, device: &str, peer: PeerConfig) -> Vec<HostStep> {
    let device: spanwire_engine::DeviceName = device.parse().unwrap();
    let id = gateway.id(role, None);
    let config =
        DeviceConfig { id, name: device.clone(), port: 51820, address: Some(gateway.tunnel), mtu: 1420 };
    let prefix = peer.allowed_ips[0];
    let source = Some(gateway.tunnel);
    vec![
        HostStep::Device(config),
        HostStep::AddRule { table: TABLE, device: device.clone() },
        HostStep::Peer(peer),
        HostStep::Route { table: TABLE, kind: RouteKind::Exact, prefix, device, source },
    ]
}

#[test]
fn d1_two_hundred_passes_over_a_peer_without_endpoint_write_nothing_and_lose_nothing() {
    let mut lab = Lab::new().unwrap();
    let (s, h) = pair(&mut lab);
    let (_, down) = connect(&s, &h, WIDE);
    assert!(talk(&s, &h));
    for keepalive in [0, 25] {
        let peer = PeerConfig {
            device: down.clone(),
            public_key: s.key(),
            allowed_ips: vec![net("10.9.0.1/32")],
            endpoint: None,
            keepalive: Duration::from_secs(keepalive),
        };
        h.apply(HostStep::Peer(peer.clone()));
        let (writes, changes) = (h.writes(), h.changes());
        let traffic = Prober::start(&both_ways(&s, &h), Rate::default()).unwrap();
        for _ in 0..200 {
            for step in steps(&h, LinkRole::Downlink, down.as_str(), peer.clone()) {
                assert_eq!(h.apply(step), Written::Same);
            }
        }
        let report = traffic.finish().unwrap();
        assert_eq!((h.writes(), h.changes()), (writes, changes));
        assert_eq!(report.total().lost, 0, "{:?}", report.total());
    }
}

pub(crate) fn both_ways(a: &Gateway, b: &Gateway) -> [Pair; 2] {
    let one = |from: &Gateway, to: &Gateway| Pair {
        from: from.host.clone(),
        source: from.tunnel,
        to: to.host.clone(),
        target: to.tunnel,
    };
    [one(a, b), one(b, a)]
}

#[test]
fn d2_d3_a_learned_endpoint_is_kept_and_followed() {
    let mut lab = Lab::new().unwrap();
    let (s, h) = pair(&mut lab);
    let (up, down) = connect(&s, &h, WIDE);
    assert!(talk(&s, &h));
    let endpoint = || h.peer(LinkRole::Downlink, None, s.key()).unwrap().endpoint;
    let learned = SocketAddr::new(s.host.address(), 51821);
    assert_eq!(endpoint(), Some(learned));
    for _ in 0..20 {
        assert_eq!(h.make_peer(&down, &s, &["10.9.0.1/32"], None), Written::Same);
    }
    assert_eq!(endpoint(), Some(learned));
    // The spoke roams just after a pass: another port on the same host.
    let id = s.id(LinkRole::Uplink, Some(&h));
    s.apply(HostStep::Device(DeviceConfig { id, name: up, port: 51999, address: Some(s.tunnel), mtu: 1420 }));
    assert!(talk(&s, &h));
    let roamed = SocketAddr::new(s.host.address(), 51999);
    wait_for("the hub follows", || (endpoint() == Some(roamed)).then_some(()));
    assert_eq!(h.make_peer(&down, &s, &["10.9.0.1/32"], None), Written::Same);
    assert_eq!(endpoint(), Some(roamed));
}

#[test]
fn d4_a_prefix_added_and_one_removed_under_traffic_lose_nothing() {
    let mut lab = Lab::new().unwrap();
    let (s, h) = pair(&mut lab);
    let (_, down) = connect(&s, &h, WIDE);
    assert!(talk(&s, &h));
    let traffic = Prober::start(&both_ways(&s, &h), Rate::default()).unwrap();
    for round in 0..50 {
        let more = format!("10.9.{}.0/24", 100 + round);
        assert_eq!(h.make_peer(&down, &s, &["10.9.0.1/32", &more], None), Written::Changed);
        assert_eq!(h.make_peer(&down, &s, &["10.9.0.1/32"], None), Written::Changed);
    }
    let report = traffic.finish().unwrap();
    assert_eq!(report.total().lost, 0, "{:?}", report.total());
}

#[test]
fn d5_exactly_what_differs_is_written_and_the_session_stays() {
    let mut lab = Lab::new().unwrap();
    let (s, h) = pair(&mut lab);
    let (up, down) = connect(&s, &h, WIDE);
    assert!(talk(&s, &h));
    let handshake = || h.output("wg", &["show", down.as_str(), "latest-handshakes"]);
    let before = handshake();
    let one_change = |what: &dyn Fn()| {
        let counted = h.changes();
        what();
        assert_eq!(h.changes(), counted + 1);
    };
    let mut peer = PeerConfig {
        device: down.clone(),
        public_key: s.key(),
        allowed_ips: vec![net("10.9.0.1/32")],
        endpoint: Some(SocketAddr::new(s.host.address(), 51999)),
        keepalive: Duration::from_secs(25),
    };
    one_change(&|| assert_eq!(h.apply(HostStep::Peer(peer.clone())), Written::Changed));
    peer.endpoint = Some(SocketAddr::new(s.host.address(), 51821));
    one_change(&|| assert_eq!(h.apply(HostStep::Peer(peer.clone())), Written::Changed));
    peer.keepalive = Duration::from_secs(20);
    one_change(&|| assert_eq!(h.apply(HostStep::Peer(peer.clone())), Written::Changed));
    assert!(talk(&s, &h));
    let file = h.dir.path().join("psk");
    std::fs::write(&file, h.output("wg", &["genpsk"])).unwrap();
    let (key, file) = (s.key().to_string(), file.to_str().unwrap().to_owned());
    h.output("wg", &["set", down.as_str(), "peer", &key, "preshared-key", &file]);
    s.output("wg", &["set", up.as_str(), "peer", &h.key().to_string(), "preshared-key", &file]);
    assert!(talk(&s, &h));
    assert_eq!(handshake(), before, "the session is the one of the start");
    let kept = h.changes();
    h.output(
        "wg",
        &["set", down.as_str(), "peer", &key, "preshared-key", &file, "persistent-keepalive", "20"],
    );
    assert_eq!(h.changes(), kept, "the same again is no change");
}

#[test]
fn d6_a_new_key_takes_all_prefixes_over_and_the_old_one_goes() {
    let mut lab = Lab::new().unwrap();
    let (s, h) = pair(&mut lab);
    let (_, down) = link_up(&s, &h, WIDE);
    let peer = |key: PublicKey| PeerConfig {
        device: down.clone(),
        public_key: key,
        allowed_ips: vec![net("10.9.0.1/32"), net("10.9.7.0/24")],
        endpoint: None,
        keepalive: Duration::from_secs(25),
    };
    let old = s.key();
    h.apply(HostStep::Peer(peer(old)));
    let new = PublicKey([7; 32]);
    assert_eq!(h.apply(HostStep::Peer(peer(new))), Written::Changed);
    assert_eq!(h.peer(LinkRole::Downlink, None, new).unwrap().allowed_ips.len(), 2);
    assert!(h.peer(LinkRole::Downlink, None, old).unwrap().allowed_ips.is_empty());
    let removal = HostStep::RemovePeer { device: down.clone(), public_key: old };
    assert_eq!(h.apply(removal.clone()), Written::Changed);
    assert_eq!(h.apply(removal), Written::Same);
    let peers = &h.observe().devices[&h.id(LinkRole::Downlink, None)].peers;
    assert_eq!(peers.keys().collect::<Vec<_>>(), [&new]);
}

#[test]
fn d10_the_own_key_and_host_bits_are_refused_by_name() {
    let mut lab = Lab::new().unwrap();
    let (s, h) = pair(&mut lab);
    let (_, down) = link_up(&s, &h, WIDE);
    let peer = |key: PublicKey, prefix: &str| {
        HostStep::Peer(PeerConfig {
            device: down.clone(),
            public_key: key,
            allowed_ips: vec![net(prefix)],
            endpoint: None,
            keepalive: Duration::ZERO,
        })
    };
    let own = h.try_apply(peer(h.key(), "10.9.8.0/24")).unwrap_err();
    assert!(matches!(own, Error::OwnKey { .. }) && own.to_string().contains(&h.key().to_string()));
    let bits = h.try_apply(peer(s.key(), "10.9.8.7/24")).unwrap_err().to_string();
    assert!(bits.contains("10.9.8.7/24") && bits.contains("10.9.8.0/24"), "{bits}");
}

#[test]
fn d11_any_number_of_peers_and_prefixes_reads_back() {
    let mut lab = Lab::new().unwrap();
    let h = Gateway::start(lab.host("h").unwrap(), "10.9.0.2");
    let down = h.make_device(LinkRole::Downlink, None, 51820);
    let peer = |number| far_peer(&down, number);
    let mut made = 0u16;
    for size in [1, 20, 21, 22, 1000] {
        // The last one alone, as a pass with one new peer does.
        h.apply_peers((made..size - 1).map(peer).collect());
        assert_eq!(h.apply(HostStep::Peer(peer(size - 1))), Written::Changed);
        made = size;
        let observed = h.observe();
        let peers = &observed.devices[&h.id(LinkRole::Downlink, None)].peers;
        assert_eq!(peers.len(), usize::from(size));
        assert!(peers.values().all(|peer| peer.allowed_ips.len() == 1));
    }
    let prefixes: Vec<_> =
        (0..5000u16).map(|n| net(&format!("10.20.{}.{}/30", n / 64, n % 64 * 4))).collect();
    let many = PeerConfig {
        device: down.clone(),
        public_key: far_key(1),
        allowed_ips: prefixes.clone(),
        endpoint: None,
        keepalive: Duration::ZERO,
    };
    assert_eq!(h.apply(HostStep::Peer(many.clone())), Written::Changed);
    assert_eq!(h.apply(HostStep::Peer(many)), Written::Same);
    let large = h.peer(LinkRole::Downlink, None, far_key(1)).unwrap();
    assert!(large.allowed_ips.iter().eq(&prefixes));
}

#[test]
fn a_peer_made_again_has_its_endpoint_from_the_first_instant() {
    let mut lab = Lab::new().unwrap();
    let (s, h) = pair(&mut lab);
    let (_, down) = connect(&s, &h, WIDE);
    assert!(talk(&s, &h));
    let learned = h.peer(LinkRole::Downlink, None, s.key()).unwrap().endpoint;
    h.output("wg", &["set", down.as_str(), "peer", &s.key().to_string(), "remove"]);
    assert_eq!(h.peer(LinkRole::Downlink, None, s.key()), None);
    h.make_peer(&down, &s, &["10.9.0.1/32"], None);
    let again = h.peer(LinkRole::Downlink, None, s.key()).unwrap();
    assert_eq!((again.endpoint, again.keepalive), (learned, Duration::from_secs(25)));
    assert!(echo((&h.host, h.tunnel), (&s.host, s.tunnel), Duration::from_secs(5)), "the hub can begin");
}
