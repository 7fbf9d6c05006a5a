//! What only the kernel's own WireGuard can show. The tests refuse to run on the userspace one, where others stand for them:
//! `cargo xtask test-kernel` runs them.

use std::{
    fmt::Write as _,
    time::{Duration, Instant},
};

use spanwire_engine::{Backend, LinkRole, port::Written, worker::HostStep};
use spanwire_testkit::{
    lab::Lab,
    prober::{Prober, Rate},
};

use crate::{
    peers::{both_ways, pair, talk},
    rig::{Gateway, backend, connect, far_peers},
};

/// Whether this run is about the other backend.
fn is_elsewhere() -> bool {
    backend() != Backend::Kernel
}

#[test]
fn a_thousand_peers_are_made_in_few_messages_and_one_more_costs_one_small_one() {
    if is_elsewhere() {
        return;
    }
    let mut lab = Lab::new().unwrap();
    let h = Gateway::start(lab.host("h").unwrap(), "10.9.0.2");
    let down = h.make_device(LinkRole::Downlink, None, 51820);
    let sent = || h.run(|devices| Box::pin(async { devices.sent_to_kernel() }));
    let peers = far_peers(&down, 1001);
    let before = sent();
    h.apply_peers(peers[..1000].to_vec());
    let after = sent();
    assert!(after.messages - before.messages < 20, "{after:?}");
    assert_eq!(h.apply(HostStep::Peer(peers[1000].clone())), Written::Changed);
    let one = sent();
    let (messages, bytes) = (one.messages - after.messages, one.bytes - after.bytes);
    assert_eq!(messages, 1);
    assert!(bytes < 256, "{bytes} bytes");
    println!(
        "1,000 peers: {} messages. One more: {messages} message, {bytes} bytes",
        after.messages - before.messages
    );
}

/// Both kinds of device have a key: the kernel computes a secret for each peer of such a device. None is removed before the
/// end, which takes the kernel longer than to make it.
#[test]
fn a_thousand_peers_from_empty_beside_wg_syncconf() {
    if is_elsewhere() {
        return;
    }
    let mut lab = Lab::new().unwrap();
    let h = Gateway::start(lab.host("h").unwrap(), "10.9.0.2");
    let file = h.dir.path().join("sync.conf");
    let mut text = format!("[Interface]\nPrivateKey = {}\n", h.output("wg", &["genkey"]).trim());
    for peer in far_peers(&h.device(LinkRole::Downlink, None), 1000) {
        let (key, prefix, endpoint) = (peer.public_key, peer.allowed_ips[0], peer.endpoint.unwrap());
        write!(text, "[Peer]\nPublicKey = {key}\nAllowedIPs = {prefix}\nEndpoint = {endpoint}\n").unwrap();
    }
    std::fs::write(&file, text).unwrap();
    let (mut ours, mut theirs) = (Vec::new(), Vec::new());
    let another = Gateway::start(lab.host("g").unwrap(), "10.9.0.3");
    for (h, role) in [(&h, LinkRole::Downlink), (&another, LinkRole::Downlink), (&h, LinkRole::Mesh)] {
        let device = h.make_device(role, None, if role == LinkRole::Mesh { 51821 } else { 51820 });
        let peers = far_peers(&device, 1000);
        let begun = Instant::now();
        h.apply_peers(peers);
        ours.push(begun.elapsed());
        let plain = format!("plain-{role}");
        h.output("ip", &["link", "add", &plain, "type", "wireguard"]);
        let begun = Instant::now();
        h.output("wg", &["syncconf", &plain, file.to_str().unwrap()]);
        theirs.push(begun.elapsed());
        assert_eq!(h.output("wg", &["show", &plain, "peers"]).lines().count(), 1000);
    }
    let middle = |mut times: Vec<Duration>| {
        times.sort();
        times[times.len() / 2]
    };
    let (ours, theirs) = (middle(ours), middle(theirs));
    println!(
        "1,000 peers from empty, median of 3: {ours:?} with reading before and after; wg syncconf {theirs:?}; ratio {:.2}",
        ours.as_secs_f64() / theirs.as_secs_f64()
    );
}

#[test]
fn d4_five_thousand_prefixes_one_more_and_one_less_under_traffic_lose_nothing() {
    if is_elsewhere() {
        return;
    }
    let mut lab = Lab::new().unwrap();
    let (s, h) = pair(&mut lab);
    let (_, down) = connect(&s, &h, "10.9.0.0/16");
    assert!(talk(&s, &h));
    let mut prefixes: Vec<String> =
        (0..5000u16).map(|n| format!("10.20.{}.{}/30", n / 64, n % 64 * 4)).collect();
    prefixes.push("10.9.0.1/32".to_owned());
    let make = |prefixes: &[String]| {
        let prefixes: Vec<&str> = prefixes.iter().map(String::as_str).collect();
        h.make_peer(&down, &s, &prefixes, None)
    };
    assert_eq!(make(&prefixes), Written::Changed);
    let traffic = Prober::start(&both_ways(&s, &h), Rate::default()).unwrap();
    for round in 0..10 {
        prefixes.push(format!("10.30.{round}.0/24"));
        assert_eq!(make(&prefixes), Written::Changed);
        prefixes.remove(0);
        assert_eq!(make(&prefixes), Written::Changed);
    }
    let report = traffic.finish().unwrap();
    assert_eq!(report.total().lost, 0, "{:?}", report.total());
    let shown = h.peer(LinkRole::Downlink, None, s.key()).unwrap();
    assert_eq!(shown.allowed_ips.len(), prefixes.len());
    assert_eq!(make(&prefixes), Written::Same);
}

#[test]
fn a_device_that_was_made_and_not_marked_yet_is_taken_on_and_a_configured_one_is_not() {
    if is_elsewhere() {
        return;
    }
    let mut lab = Lab::new().unwrap();
    let h = Gateway::start(lab.host("h").unwrap(), "10.9.0.2");
    let (down, mesh) = (h.device(LinkRole::Downlink, None), h.device(LinkRole::Mesh, None));
    h.output("ip", &["link", "add", down.as_str(), "type", "wireguard"]);
    assert!(h.observe().devices.is_empty());
    h.make_device(LinkRole::Downlink, None, 51820);
    assert_eq!(h.observe().devices.len(), 1);
    h.output("ip", &["link", "add", mesh.as_str(), "type", "wireguard"]);
    let key = h.dir.path().join("key");
    std::fs::write(&key, h.output("wg", &["genkey"])).unwrap();
    h.output("wg", &["set", mesh.as_str(), "private-key", key.to_str().unwrap()]);
    let config = spanwire_engine::worker::DeviceConfig {
        id: h.id(LinkRole::Mesh, None),
        name: mesh,
        port: 51821,
        address: Some(h.tunnel),
        mtu: 1420,
    };
    assert!(h.try_apply(HostStep::Device(config)).is_err());
}
