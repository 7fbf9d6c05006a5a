//! Probes over real tunnels: connected, dead, one way, both families. It refuses simulated links: those are unit tests.

use std::time::{Duration, Instant};

use spanwire_dataplane::probe::{Prober, Target};
use spanwire_engine::{
    LinkRole,
    worker::{Evidence, RouteKind},
};
use spanwire_testkit::lab::Lab;

use crate::rig::{Gateway, echo, link_up, wait_for};

const CONNECTED: Evidence = Evidence::Connected { settled: true };

fn evidence(prober: &Prober) -> Option<Evidence> {
    prober.evidence().into_values().next()
}

/// A spoke with an uplink to a hub, without routes over it: probes do not need any.
fn spoke_and_hub(lab: &mut Lab, spoke: &str, hub: &str, v6: bool) -> (Gateway, Gateway) {
    let (s, h) = (Gateway::start(lab.host("s").unwrap(), spoke), Gateway::start(lab.host("h").unwrap(), hub));
    link_up(&s, &h, if v6 { "fd09::/16" } else { "10.9.0.0/16" });
    (s, h)
}

#[test]
fn s1_links_connect_and_die_in_time_without_routes() {
    let mut lab = Lab::new().unwrap();
    let (s, h) = spoke_and_hub(&mut lab, "10.9.0.1", "10.9.0.2", false);
    let up = s.probe(vec![s.target(LinkRole::Uplink, &h)]);
    let down = h.probe(vec![h.target(LinkRole::Downlink, &s)]);
    wait_for("both ends are connected", || {
        (evidence(&up) == Some(CONNECTED) && evidence(&down) == Some(CONNECTED)).then_some(())
    });
    let cut = Instant::now();
    h.host.cut_off().unwrap();
    wait_for("both ends notice", || {
        let dead = |prober| evidence(prober).is_some_and(|evidence| !evidence.is_connected());
        (dead(&up) && dead(&down)).then_some(())
    });
    assert!(cut.elapsed() <= Duration::from_millis(2800), "{:?}", cut.elapsed());
    h.host.reconnect().unwrap();
    wait_for("both ends are back, not settled yet", || {
        let back = |prober| evidence(prober) == Some(Evidence::Connected { settled: false });
        (back(&up) && back(&down)).then_some(())
    });
}

#[test]
fn probes_of_ipv6_leave_by_their_device_whatever_the_routes_say() {
    let mut lab = Lab::new().unwrap();
    let (s, h) = spoke_and_hub(&mut lab, "fd09::1", "fd09::2", true);
    let up = s.probe(vec![s.target(LinkRole::Uplink, &h)]);
    let down = h.probe(vec![h.target(LinkRole::Downlink, &s)]);
    wait_for("both ends are connected", || {
        (evidence(&up) == Some(CONNECTED) && evidence(&down) == Some(CONNECTED)).then_some(())
    });
    assert!(s.observe().devices.values().all(|device| device.ready));
    let wide = s.device(LinkRole::Uplink, Some(&h));
    s.route(RouteKind::Wide, "fd09::/16", &wide);
    assert_eq!(evidence(&up), Some(CONNECTED));
}

#[test]
fn s2_a_peer_that_hears_nothing_but_is_heard_is_one_way() {
    let mut lab = Lab::new().unwrap();
    let (s, h) = spoke_and_hub(&mut lab, "10.9.0.1", "10.9.0.2", false);
    let up = s.probe(vec![s.target(LinkRole::Uplink, &h)]);
    let down = h.probe(vec![h.target(LinkRole::Downlink, &s)]);
    wait_for("connected", || {
        (evidence(&up) == Some(CONNECTED) && evidence(&down) == Some(CONNECTED)).then_some(())
    });
    h.host.deafen(s.host.address()).unwrap();
    wait_for("the deaf end's questions still arrive", || {
        (evidence(&up) == Some(Evidence::NotConnected { one_way: true })).then_some(())
    });
}

#[test]
fn a_peer_that_does_not_or_can_not_probe_is_connected_while_bytes_arrive() {
    let mut lab = Lab::new().unwrap();
    let (s, h) = spoke_and_hub(&mut lab, "10.9.0.1", "10.9.0.2", false);
    h.host
        .nft("table inet mute { chain in { type filter hook input priority -10; udp dport 51799 drop; }\n }")
        .unwrap();
    s.route(RouteKind::Wide, "10.9.0.0/16", &s.device(LinkRole::Uplink, Some(&h)));
    h.route(RouteKind::Exact, "10.9.0.1/32", &h.device(LinkRole::Downlink, None));
    for addresses in [Some((s.tunnel, h.tunnel)), None] {
        let up = s.probe(vec![Target { addresses, ..s.target(LinkRole::Uplink, &h) }]);
        wait_for("bytes are taken for evidence", || {
            echo((&s.host, s.tunnel), (&h.host, h.tunnel), Duration::from_millis(50));
            (evidence(&up) == Some(Evidence::Receiving)).then_some(())
        });
    }
}

#[test]
fn a_device_made_anew_is_probed_again() {
    let mut lab = Lab::new().unwrap();
    let (s, h) = spoke_and_hub(&mut lab, "10.9.0.1", "10.9.0.2", false);
    let up = s.probe(vec![s.target(LinkRole::Uplink, &h)]);
    wait_for("connected", || (evidence(&up) == Some(CONNECTED)).then_some(()));
    let device = s.device(LinkRole::Uplink, Some(&h));
    s.host.delete_device(device.as_str()).unwrap();
    wait_for("the loss is noticed", || {
        evidence(&up).is_some_and(|evidence| !evidence.is_connected()).then_some(())
    });
    s.make_device(LinkRole::Uplink, Some(&h), 51821);
    s.make_peer(&device, &h, &["10.9.0.0/16"], Some(51820));
    wait_for("connected again", || evidence(&up).is_some_and(Evidence::is_connected).then_some(()));
}
