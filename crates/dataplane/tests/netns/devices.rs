//! Devices, tables and what is not ours. It refuses to leave anything behind that it made.

use std::{
    io::{Read, Write},
    net::SocketAddr,
    time::Duration,
};

use nix::mount::{MsFlags, mount};
use spanwire_dataplane::{
    LocalDevices, Options,
    key::SecretKey,
    local::Error,
    process::{self, ProcessConfig, serve},
};
use spanwire_engine::{
    Backend, DeviceId, LinkRole,
    firewall::Firewall,
    port::{Devices, Written},
    worker::{DeviceConfig, HostStep, PeerConfig, RouteKind},
};
use spanwire_testkit::lab::Lab;

use crate::rig::{Gateway, TABLE, backend, connect, echo, net, wait_for};

const WIDE: &str = "10.9.0.0/16";

fn pair(lab: &mut Lab) -> (Gateway, Gateway) {
    (Gateway::start(lab.host("s").unwrap(), "10.9.0.1"), Gateway::start(lab.host("h").unwrap(), "10.9.0.2"))
}

#[test]
fn d7_a_deleted_device_a_deleted_and_a_foreign_peer_are_seen_and_repaired() {
    let mut lab = Lab::new().unwrap();
    let (s, h) = pair(&mut lab);
    let (_, down) = connect(&s, &h, WIDE);
    let stranger = spanwire_engine::PublicKey([5; 32]);
    h.output("wg", &["set", down.as_str(), "peer", &stranger.to_string(), "allowed-ips", "10.9.99.0/24"]);
    assert!(h.peer(LinkRole::Downlink, None, stranger).is_some());
    h.apply(HostStep::RemovePeer { device: down.clone(), public_key: stranger });
    assert!(h.peer(LinkRole::Downlink, None, stranger).is_none());

    let changed = h.run({
        let (host, name) = (h.host.clone(), down.clone());
        move |devices| {
            Box::pin(async move {
                let mut changes = devices.changes().unwrap();
                tokio::task::spawn_blocking(move || host.delete_device(name.as_str()).unwrap())
                    .await
                    .unwrap();
                tokio::time::timeout(Duration::from_secs(5), changes.changed()).await.is_ok()
            })
        }
    });
    assert!(changed, "a deleted device is noticed at once");
    wait_for("the device is gone", || h.observe().devices.is_empty().then_some(()));
    h.make_device(LinkRole::Downlink, None, 51820);
    h.make_peer(&down, &s, &["10.9.0.1/32"], None);
    h.route(RouteKind::Exact, "10.9.0.1/32", &down);
    assert!(echo((&s.host, s.tunnel), (&h.host, h.tunnel), Duration::from_secs(20)));
}

#[test]
fn d8_what_is_not_ours_is_never_touched_not_even_on_uninstall() {
    let mut lab = Lab::new().unwrap();
    let (s, h) = pair(&mut lab);
    let foreign = h.device(LinkRole::Mesh, None);
    h.output("ip", &["tuntap", "add", "dev", foreign.as_str(), "mode", "tun"]);
    h.output("ip", &["rule", "add", "pref", "10000", "lookup", "7000"]);
    h.output("ip", &["route", "add", "unreachable", "203.0.113.0/24", "table", "7000"]);
    h.output("nft", &["add", "table", "inet", "other"]);
    let state = || {
        let rules = h.output("ip", &["rule", "show", "pref", "10000"]);
        let rules: Vec<&str> = rules.lines().filter(|line| !line.contains("proto 83")).collect();
        let routes = h.output("ip", &["route", "show", "table", "7000"]);
        let routes: Vec<&str> = routes.lines().filter(|line| !line.contains("proto 83")).collect();
        format!("{rules:?} {routes:?} {}", h.output("nft", &["list", "table", "inet", "other"]))
    };
    let before = state();
    let (_, down) = connect(&s, &h, WIDE);
    let config = DeviceConfig {
        id: h.id(LinkRole::Mesh, None),
        name: foreign.clone(),
        port: 51900,
        address: Some(h.tunnel),
        mtu: 1420,
    };
    assert!(matches!(h.try_apply(HostStep::Device(config)), Err(Error::ForeignDevice { .. })));
    assert!(matches!(h.try_apply(HostStep::RemoveDevice(foreign.clone())), Err(Error::ForeignDevice { .. })));
    assert!(h.observe().host_prefixes.iter().all(|prefix| !prefix.to_string().starts_with("10.9.")));
    for step in [
        HostStep::RemoveRoute { table: TABLE, kind: RouteKind::Exact, prefix: net("10.9.0.1/32") },
        HostStep::RemoveRule { table: TABLE, device: down.clone() },
        HostStep::RemoveDevice(down),
        HostStep::RemoveTable(TABLE),
        HostStep::Firewall(Firewall::default()),
    ] {
        assert_eq!(h.apply(step.clone()), Written::Changed);
        assert_eq!(h.apply(step), Written::Same);
    }
    assert_eq!(state(), before);
    assert!(h.host.device_index(foreign.as_str()).is_ok());
    let left = h.observe();
    assert!(left.devices.is_empty() && left.tables.is_empty() && left.firewall.is_none());
    assert!(!h.output("ip", &["-6", "rule"]).contains("proto 83"));
    assert!(!h.output("nft", &["list", "tables"]).contains("spanwire"));
}

#[test]
fn d12_another_worker_finds_everything_right() {
    let mut lab = Lab::new().unwrap();
    let (s, h) = pair(&mut lab);
    let (up, _) = connect(&s, &h, WIDE);
    assert!(echo((&s.host, s.tunnel), (&h.host, h.tunnel), Duration::from_secs(10)));
    let before = s.observe();
    let changes = s.changes();
    let (root, name, secret) = (s.dir.path().to_owned(), s.name.clone(), s.secret.clone());
    let after = s.run(move |_| {
        Box::pin(async move {
            let options = Options::new(name, secret, root.join("control.sock"), root.join("run"));
            LocalDevices::open(options).await.unwrap().observe().await.unwrap()
        })
    });
    assert_eq!(after, before);
    assert_eq!(s.changes(), changes);
    assert_eq!(after.devices[&s.id(LinkRole::Uplink, Some(&h))].name, Some(up));
}

#[test]
fn d14_what_the_kernel_has_is_said_and_a_device_of_it_gives_the_reason() {
    let mut lab = Lab::new().unwrap();
    let h = Gateway::start(lab.host("h").unwrap(), "10.9.0.2");
    let present = h.run(|devices| Box::pin(async { devices.kernel_wireguard().await.is_ok() }));
    assert_eq!(h.observe().kernel_wireguard, present);
    let id = h.id(LinkRole::Downlink, None);
    let name = id.name(&h.name, Backend::Kernel);
    let config = DeviceConfig { id, name, port: 51820, address: Some(h.tunnel), mtu: 1420 };
    match h.try_apply(HostStep::Device(config)) {
        Ok(_) => assert!(present),
        Err(error) => {
            assert!(!present && matches!(error, Error::NoKernelWireguard(_)), "{error}");
            assert!(error.to_string().contains("tunnel mode kernel"), "{error}");
            assert!(h.observe().devices.is_empty());
        }
    }
}

#[test]
fn d15_without_a_tun_device_both_processes_name_both_ways_out() {
    let mut lab = Lab::new().unwrap();
    let host = lab.host("h").unwrap();
    let dir = tempfile::tempdir().unwrap();
    let (served, opened) = host
        .run(|| {
            mount(Some("tmpfs"), "/dev/net", Some("tmpfs"), MsFlags::empty(), None::<&str>).unwrap();
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
            runtime.block_on(async {
                let config = ProcessConfig::new(dir.path().join("control.sock"));
                let served = serve(config, |_| {}, std::future::ready(())).await;
                let secret = SecretKey::generate().unwrap();
                let options = Options::new("h".parse().unwrap(), secret, "/nonexistent", dir.path());
                (served, LocalDevices::open(options).await.map(drop))
            })
        })
        .unwrap();
    if backend() == Backend::Kernel {
        // A kernel with WireGuard needs no TUN device.
        served.unwrap();
        opened.unwrap();
        return;
    }
    let (served, opened) = (served.unwrap_err(), opened.unwrap_err());
    assert!(matches!(served, process::Error::NoTun(_)));
    for text in [served.to_string(), opened.to_string()] {
        assert!(text.contains("/dev/net/tun") && text.contains("wireguard"), "{text}");
    }
}

#[test]
fn d19_a_stream_passes_both_ways_at_the_mtu_that_is_set() {
    let mut lab = Lab::new().unwrap();
    let (s, h) = pair(&mut lab);
    let (up, _) = connect(&s, &h, WIDE);
    for mtu in [1440, 1420, 1340] {
        let id = s.id(LinkRole::Uplink, Some(&h));
        s.apply(HostStep::Device(DeviceConfig {
            id,
            name: up.clone(),
            port: 51821,
            address: Some(s.tunnel),
            mtu,
        }));
        assert_eq!(s.observe().devices.values().next().unwrap().mtu, mtu);
        for (from, to) in [(&s, &h), (&h, &s)] {
            let listener = to.host.tcp_listener(SocketAddr::new(to.tunnel, 0)).unwrap();
            let address = listener.local_addr().unwrap();
            let sender = std::thread::scope(|scope| {
                let stream = scope.spawn(|| {
                    let mut stream =
                        from.host.tcp_stream_from(from.tunnel, address, Duration::from_secs(10)).unwrap();
                    stream.write_all(&vec![7; 100_000]).unwrap();
                });
                let (mut received, _) = listener.accept().unwrap();
                let mut bytes = Vec::new();
                received.read_to_end(&mut bytes).unwrap();
                stream.join().unwrap();
                bytes
            });
            assert!(sender.len() == 100_000 && sender.iter().all(|byte| *byte == 7));
        }
    }
}

#[test]
fn d20_the_longest_names_make_a_device_that_is_found_again() {
    let mut lab = Lab::new().unwrap();
    let h = Gateway::start(lab.host("h").unwrap(), "10.9.0.2");
    let long = "x".repeat(63);
    let id = DeviceId { network: long.parse().unwrap(), role: LinkRole::Downlink, peer: None };
    let trunk = DeviceId { role: LinkRole::Trunk, peer: Some(long.parse().unwrap()), ..id.clone() };
    for (id, port) in [(&id, 51820), (&trunk, 51821)] {
        let name = id.name(&h.name, backend());
        assert!(name.as_str().len() <= 15);
        let config = DeviceConfig { id: id.clone(), name, port, address: Some(h.tunnel), mtu: 1420 };
        assert_eq!(h.apply(HostStep::Device(config.clone())), Written::Changed);
        assert_eq!(h.apply(HostStep::Device(config)), Written::Same);
    }
    let observed = h.observe();
    assert_eq!(observed.devices.keys().collect::<Vec<_>>(), [&id, &trunk]);
}

#[test]
fn a_port_that_is_taken_is_refused_and_the_device_goes_on() {
    let mut lab = Lab::new().unwrap();
    let (s, h) = pair(&mut lab);
    let (_, down) = connect(&s, &h, WIDE);
    let _taken = h.host.udp_socket("0.0.0.0:51999".parse().unwrap()).unwrap();
    let id = h.id(LinkRole::Downlink, None);
    let config = DeviceConfig { id, name: down, port: 51999, address: Some(h.tunnel), mtu: 1420 };
    assert!(h.try_apply(HostStep::Device(config)).is_err());
    assert!(echo((&s.host, s.tunnel), (&h.host, h.tunnel), Duration::from_secs(10)));
}

#[test]
fn the_tools_of_wireguard_work_on_our_devices() {
    let mut lab = Lab::new().unwrap();
    let (s, h) = pair(&mut lab);
    let (_, down) = connect(&s, &h, WIDE);
    assert!(echo((&s.host, s.tunnel), (&h.host, h.tunnel), Duration::from_secs(10)));
    let shown = h.output("wg", &["show", down.as_str()]);
    for word in ["listening port: 51820", "latest handshake", "10.9.0.1/32", "every 25 seconds"] {
        assert!(shown.contains(word), "{shown}");
    }
    let file = h.dir.path().join("sync.conf");
    std::fs::write(&file, h.output("wg", &["showconf", down.as_str()])).unwrap();
    let (counted, before) = (h.changes(), h.observe());
    h.output("wg", &["syncconf", down.as_str(), file.to_str().unwrap()]);
    assert_eq!(h.changes(), counted, "the same configuration is no change");
    let more = PeerConfig {
        device: down.clone(),
        public_key: spanwire_engine::PublicKey([3; 32]),
        allowed_ips: vec![net("10.9.50.0/24")],
        endpoint: None,
        keepalive: Duration::ZERO,
    };
    h.apply(HostStep::Peer(more));
    h.output("wg", &["syncconf", down.as_str(), file.to_str().unwrap()]);
    assert_eq!(h.observe(), before, "what the file does not name is gone");
    assert!(echo((&s.host, s.tunnel), (&h.host, h.tunnel), Duration::from_secs(1)), "the session is kept");
}

#[test]
fn switches_of_all_interfaces_move_off_our_devices_and_back() {
    let mut lab = Lab::new().unwrap();
    let options = spanwire_testkit::lab::HostOptions { rp_filter: 1, forwarding: false };
    let h = Gateway::start(lab.host_with("h", options).unwrap(), "10.9.0.2");
    h.host.set_sysctl("net/ipv4/conf/eth0/rp_filter", "0").unwrap();
    h.make_table(&[WIDE], &[]);
    assert_eq!(h.host.sysctl("net/ipv4/ip_forward").unwrap(), "1");
    h.make_device(LinkRole::Downlink, None, 51820);
    let value = |name: &str| h.host.sysctl(&format!("net/ipv4/conf/{name}/rp_filter")).unwrap();
    let down = h.device(LinkRole::Downlink, None);
    assert_eq!((&*value("all"), &*value("eth0"), &*value(down.as_str())), ("0", "1", "0"));
    assert!(h.observe().devices.values().all(|device| device.ready));
    assert_eq!(h.host.sysctl("net/ipv4/conf/all/send_redirects").unwrap(), "0");
    assert_eq!(h.host.sysctl("net/ipv4/conf/eth0/send_redirects").unwrap(), "1");
    h.host.set_sysctl(&format!("net/ipv4/conf/{down}/rp_filter"), "2").unwrap();
    assert!(h.observe().devices.values().all(|device| !device.ready));
    let undone = h.run(|devices| Box::pin(async { devices.undo_sysctls().unwrap() }));
    assert!(!undone.is_empty());
    assert_eq!((&*value("all"), &*value("eth0")), ("1", "0"));
    assert_eq!(h.host.sysctl("net/ipv4/conf/all/send_redirects").unwrap(), "1");
}
