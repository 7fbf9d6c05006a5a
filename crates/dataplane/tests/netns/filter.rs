//! The packet filter with packets: horizon, isolation, protection of the host, NAT. It refuses to look at rules alone.

use std::{
    net::{IpAddr, SocketAddr, UdpSocket},
    time::{Duration, Instant},
};

use ipnet::IpNet;
use spanwire_engine::{DeviceName, LinkRole, port::Written, worker::RouteKind};
use spanwire_testkit::lab::{HostOptions, Lab};

use crate::rig::{Gateway, connect, echo, net, wait_for};

const WIDE: &str = "10.9.0.0/16";
const SHORT: Duration = Duration::from_millis(600);
const LONG: Duration = Duration::from_secs(10);

fn own(gateway: &Gateway) -> String {
    IpNet::from(gateway.tunnel).to_string()
}

/// Whether any of some datagrams from `from` reaches `to`, where only the way there is looked at.
fn reaches(from: &Gateway, source: IpAddr, to: &UdpSocket) -> bool {
    let client = from.host.udp_socket(SocketAddr::new(source, 0)).unwrap();
    to.set_read_timeout(Some(Duration::from_millis(20))).unwrap();
    let (deadline, mut buffer) = (Instant::now() + SHORT, [0; 8]);
    while Instant::now() < deadline {
        let _ = client.send_to(b"x", to.local_addr().unwrap());
        if to.recv_from(&mut buffer).is_ok() {
            return true;
        }
    }
    false
}

/// Lets a spoke send anything to its hub, as a spoke that breaks the rules would.
fn rogue(spoke: &Gateway, hub: &Gateway, up: &DeviceName, prefix: &str) {
    spoke.make_peer(up, hub, &["0.0.0.0/0"], Some(51820));
    spoke.output("ip", &["route", "add", prefix, "dev", up.as_str(), "src", &spoke.tunnel.to_string()]);
    spoke.output("ip", &["rule", "add", "pref", "1", "to", prefix, "lookup", "main"]);
}

#[test]
fn a_table_changed_by_hand_is_not_the_one_that_was_written() {
    let mut lab = Lab::new().unwrap();
    let h = Gateway::start(lab.host("h").unwrap(), "10.9.0.2");
    let down = h.device(LinkRole::Downlink, None);
    let write = || h.firewall(&[(LinkRole::Downlink, &down)], &["10.9.0.2/32"], &[WIDE], None);
    assert_eq!(h.observe().firewall, None);
    assert_eq!(write(), Written::Changed);
    let digest = h.observe().firewall.unwrap();
    assert_eq!(write(), Written::Same);
    for damage in [
        &["add", "rule", "inet", "spanwire", "forward", "accept"][..],
        &["flush", "chain", "inet", "spanwire", "forward"],
        &["add", "chain", "inet", "spanwire", "x", "{ type filter hook forward priority 9; policy drop; }"],
        &["add", "element", "inet", "spanwire", "ours", "{", "eth9", "}"],
        &["delete", "table", "inet", "spanwire"],
    ] {
        h.output("nft", damage);
        assert_eq!(h.observe().firewall, None, "{damage:?}");
        assert_eq!(write(), Written::Changed);
        assert_eq!(h.observe().firewall.as_ref(), Some(&digest));
        assert!(!h.output("nft", &["list", "table", "inet", "spanwire"]).contains("priority 9"));
    }
}

#[test]
fn d24_overlay_packets_without_a_link_never_leave_by_the_default_route() {
    let mut lab = Lab::new().unwrap();
    let h = Gateway::start(lab.host("h").unwrap(), "10.9.0.2");
    h.make_table(&[WIDE, "fd09::/16"], &["10.9.0.2/32"]);
    h.make_device(LinkRole::Downlink, None, 51820);
    let text = h.output("ip", &["route"]);
    assert!(text.contains("default"), "there is a way out: {text}");
    for target in ["10.9.7.7:9", "[fd09::7]:9"] {
        let any = if target.starts_with('[') { "[::]:0" } else { "0.0.0.0:0" };
        let sent = h.host.udp_socket(any.parse().unwrap()).unwrap().send_to(b"x", target);
        let number = sent.unwrap_err().raw_os_error();
        assert!(matches!(number, Some(nix::libc::EHOSTUNREACH | nix::libc::ENETUNREACH)), "{number:?}");
    }
}

/// Spoke → demoted hub → hub: the demoted one forwards from its listener to its uplink.
fn late_spoke(rp_filter: u8, addresses: [&str; 3], wide: &str) {
    let mut lab = Lab::new().unwrap();
    let options = HostOptions { rp_filter, forwarding: false };
    let [s, a, b] = [("s", addresses[0]), ("a", addresses[1]), ("b", addresses[2])]
        .map(|(name, address)| Gateway::start(lab.host_with(name, options).unwrap(), address));
    connect(&s, &a, wide);
    let (up, down) = (a.device(LinkRole::Uplink, Some(&b)), a.device(LinkRole::Downlink, None));
    let roles = [(LinkRole::Uplink, &up), (LinkRole::Downlink, &down)];
    a.firewall(&roles, &[&own(&a)], &[wide], Some(&[&own(&a), &own(&b)]));
    a.make_device(LinkRole::Uplink, Some(&b), 51822);
    a.make_peer(&up, &b, &[wide], Some(51820));
    a.route(RouteKind::Wide, wide, &up);
    let listener = b.device(LinkRole::Downlink, None);
    b.firewall(&[(LinkRole::Downlink, &listener)], &[&own(&b)], &[wide], None);
    b.make_table(&[wide], &[&own(&b)]);
    b.make_device(LinkRole::Downlink, None, 51820);
    b.make_peer(&listener, &a, &[&own(&a), &own(&s)], None);
    b.route(RouteKind::Exact, &own(&s), &listener);
    b.route(RouteKind::Exact, &own(&a), &listener);
    assert!(echo((&a.host, a.tunnel), (&b.host, b.tunnel), LONG), "the demoted hub itself");
    // The answer comes back by the uplink, which leaves by no device of ours: only the way there is looked at.
    let server = b.host.udp_socket(SocketAddr::new(b.tunnel, 0)).unwrap();
    wait_for("the late spoke's packets arrive", || reaches(&s, s.tunnel, &server).then_some(()));
}

#[test]
fn d25_a_late_spoke_is_forwarded_by_the_demoted_hub() {
    for rp_filter in [2, 1] {
        late_spoke(rp_filter, ["10.9.0.1", "10.9.0.2", "10.9.0.3"], WIDE);
    }
    late_spoke(2, ["fd09::1", "fd09::2", "fd09::3"], "fd09::/16");
}

#[test]
fn d26_own_subnets_that_the_host_rewrites_are_answered() {
    let mut lab = Lab::new().unwrap();
    let (s, h) = (
        Gateway::start(lab.host("s").unwrap(), "10.9.0.1"),
        Gateway::start(lab.host("h").unwrap(), "10.9.0.2"),
    );
    let (_, down) = connect(&s, &h, WIDE);
    let services = "10.9.96.0/24";
    h.firewall(&[(LinkRole::Downlink, &down)], &["10.9.0.2/32", services], &[WIDE], None);
    h.make_table(&[WIDE], &["10.9.0.2/32", services]);
    h.host.add_address("lo", net("172.16.5.5/32")).unwrap();
    h.host
        .nft(
            "table ip kube { chain pre { type nat hook prerouting priority dstnat; \
             ip daddr 10.9.96.10 udp dport 53 dnat to 172.16.5.5:5353; }\n }",
        )
        .unwrap();
    let pod = h.host.udp_socket("172.16.5.5:5353".parse().unwrap()).unwrap();
    pod.set_read_timeout(Some(LONG)).unwrap();
    let client = s.host.udp_socket(SocketAddr::new(s.tunnel, 0)).unwrap();
    client.set_read_timeout(Some(LONG)).unwrap();
    for _ in 0..3 {
        client.send_to(b"question", "10.9.96.10:53").unwrap();
        let mut buffer = [0; 16];
        let (count, back) = pod.recv_from(&mut buffer).unwrap();
        pod.send_to(&buffer[..count], back).unwrap();
        let (_, from) = client.recv_from(&mut buffer).unwrap();
        assert_eq!(from.to_string(), "10.9.96.10:53");
    }
}

#[test]
fn d27_a_host_outside_of_the_own_subnets_gets_its_replies() {
    let mut lab = Lab::new().unwrap();
    let (s, h) = (
        Gateway::start(lab.host("s").unwrap(), "10.9.0.1"),
        Gateway::start(lab.host("h").unwrap(), "10.9.0.2"),
    );
    connect(&s, &h, WIDE);
    s.host.add_address("lo", net("172.16.7.7/32")).unwrap();
    assert!(echo((&s.host, "172.16.7.7".parse().unwrap()), (&h.host, h.tunnel), LONG));
}

#[test]
fn d28_a_peer_reaches_the_tunnel_address_and_no_other_of_the_node() {
    let mut lab = Lab::new().unwrap();
    let (s, h) = (
        Gateway::start(lab.host("s").unwrap(), "10.9.0.1"),
        Gateway::start(lab.host("h").unwrap(), "10.9.0.2"),
    );
    let (up, _) = connect(&s, &h, WIDE);
    assert!(echo((&s.host, s.tunnel), (&h.host, h.tunnel), LONG));
    h.host.add_address("lo", net("172.16.9.9/32")).unwrap();
    rogue(&s, &h, &up, "172.16.9.9/32");
    let kubelet = h.host.udp_socket("172.16.9.9:10250".parse().unwrap()).unwrap();
    assert!(!reaches(&s, s.tunnel, &kubelet));
    h.output("nft", &["flush", "table", "inet", "spanwire"]);
    assert!(reaches(&s, s.tunnel, &kubelet), "only the filter stands between");
}

#[test]
fn d29_the_hub_is_no_way_to_the_internet_or_into_another_network() {
    let mut lab = Lab::new().unwrap();
    let [s, h, x] = ["s", "h", "x"].map(|name| lab.host(name).unwrap());
    let (s, h) = (Gateway::start(s, "10.9.0.1"), Gateway::start(h, "10.9.0.2"));
    let (up, _) = connect(&s, &h, WIDE);
    assert!(echo((&s.host, s.tunnel), (&h.host, h.tunnel), LONG));
    x.add_address("lo", net("198.51.100.9/32")).unwrap();
    h.output("ip", &["route", "add", "198.51.100.9/32", "via", &x.address().to_string()]);
    rogue(&s, &h, &up, "198.51.100.9/32");
    let internet = x.udp_socket("198.51.100.9:53".parse().unwrap()).unwrap();
    assert!(!reaches(&s, s.tunnel, &internet));
    h.output("nft", &["flush", "table", "inet", "spanwire"]);
    assert!(reaches(&s, s.tunnel, &internet), "only the filter stands between");
}

#[test]
fn d23_an_isolated_hub_refuses_spoke_to_spoke_and_passes_hub_prefixes() {
    let mut lab = Lab::new().unwrap();
    let [s, t, h] = [("s", "10.9.0.1"), ("t", "10.9.0.3"), ("h", "10.9.0.2")]
        .map(|(name, address)| Gateway::start(lab.host(name).unwrap(), address));
    connect(&s, &h, WIDE);
    let (_, down) = connect(&t, &h, WIDE);
    h.make_peer(&down, &s, &[&own(&s)], None);
    h.route(RouteKind::Exact, &own(&s), &down);
    assert!(echo((&s.host, s.tunnel), (&t.host, t.tunnel), LONG), "transit is Routed so far");
    let isolate =
        |hubs: &[&str]| h.firewall(&[(LinkRole::Downlink, &down)], &[&own(&h)], &[WIDE], Some(hubs));
    isolate(&[&own(&h)]);
    assert!(!echo((&s.host, s.tunnel), (&t.host, t.tunnel), SHORT));
    assert!(echo((&s.host, s.tunnel), (&h.host, h.tunnel), LONG));
    isolate(&[&own(&h), &own(&t)]);
    assert!(echo((&s.host, s.tunnel), (&t.host, t.tunnel), LONG), "t is a hub of a change");
}

#[test]
fn d31_packets_for_a_dead_member_cross_the_trunk_once_and_are_refused() {
    let mut lab = Lab::new().unwrap();
    let [s, a, b] = [("s", "10.9.0.1"), ("a", "10.9.0.2"), ("b", "10.9.0.3")]
        .map(|(name, address)| Gateway::start(lab.host(name).unwrap(), address));
    let (_, down) = connect(&s, &a, WIDE);
    let mut trunks = Vec::new();
    for (me, other) in [(&a, &b), (&b, &a)] {
        let trunk = me.device(LinkRole::Trunk, Some(other));
        let listener = me.device(LinkRole::Downlink, None);
        me.firewall(
            &[(LinkRole::Trunk, &trunk), (LinkRole::Downlink, &listener)],
            &[&own(me)],
            &[WIDE],
            None,
        );
        me.make_table(&[WIDE], &[&own(me)]);
        me.make_device(LinkRole::Trunk, Some(other), 51830);
        me.make_peer(&trunk, other, &[WIDE], Some(51830));
        me.route(RouteKind::Wide, WIDE, &trunk);
        trunks.push(trunk);
    }
    assert!(a.observe().tables[&crate::rig::TABLE].rules.contains(&down));
    assert!(echo((&a.host, a.tunnel), (&b.host, b.tunnel), LONG));
    // Bytes, because datagrams that are joined on the way count as one packet.
    let sent = |gateway: &Gateway, device: &DeviceName| {
        let text = gateway.output("wg", &["show", device.as_str(), "transfer"]);
        text.split_whitespace().last().unwrap().parse::<u64>().unwrap()
    };
    let before = (sent(&a, &trunks[0]), sent(&b, &trunks[1]));
    let client = s.host.udp_socket(SocketAddr::new(s.tunnel, 0)).unwrap();
    for _ in 0..50 {
        client.send_to(b"x", "10.9.9.9:9").unwrap();
    }
    // A datagram of one byte is 64 bytes on the way; the trunks' own traffic may add a little.
    let (each, slack) = (64, 640);
    wait_for("all have crossed", || (sent(&a, &trunks[0]) >= before.0 + 50 * each).then_some(()));
    assert!(echo((&s.host, s.tunnel), (&b.host, b.tunnel), LONG), "the living are reached, both ways");
    assert!(sent(&b, &trunks[1]) <= before.1 + slack, "what crossed does not come back");
}
