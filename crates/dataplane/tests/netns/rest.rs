//! What a gateway costs while nothing happens. It refuses wall-clock limits: it counts CPU time of one thread.

use std::{
    net::{IpAddr, SocketAddr},
    time::Duration,
};

use nix::time::{ClockId, clock_gettime};
use spanwire_dataplane::{key::SecretKey, probe::Target};
use spanwire_engine::{
    DeviceId, LinkId, LinkRole,
    worker::{DeviceConfig, HostStep, PeerConfig},
};
use spanwire_testkit::lab::Lab;

use crate::rig::{Gateway, backend, net, wait_for};

const LINKS: u8 = 100;

/// The CPU time that the gateway's own thread has used: its dataplane process, its prober and its adapter.
fn cpu(gateway: &Gateway) -> Duration {
    gateway
        .run(|_| Box::pin(async { Duration::from(clock_gettime(ClockId::CLOCK_THREAD_CPUTIME_ID).unwrap()) }))
}

/// One uplink of the far side, with a key of its own, and the hub's peer for it.
fn link(far: &Gateway, hub: &Gateway, number: u8) -> (Target, Target) {
    let network = format!("n{number}").parse().unwrap();
    let id = DeviceId { network, role: LinkRole::Uplink, peer: Some(hub.name.clone()) };
    let (name, secret) = (id.name(&far.name, backend()), SecretKey::generate().unwrap());
    let address = IpAddr::from([10, 9, 1, number]);
    let port = 52000 + u16::from(number);
    let config = DeviceConfig { id: id.clone(), name: name.clone(), port, address: Some(address), mtu: 1420 };
    far.apply(HostStep::Device(config));
    let file = far.dir.path().join("key");
    std::fs::write(&file, &*secret.to_base64()).unwrap();
    far.output("wg", &["set", name.as_str(), "private-key", file.to_str().unwrap()]);
    far.apply(HostStep::Peer(PeerConfig {
        device: name.clone(),
        public_key: hub.key(),
        allowed_ips: vec![net("10.9.0.0/16")],
        endpoint: Some(SocketAddr::new(hub.host.address(), 51820)),
        keepalive: Duration::from_secs(25),
    }));
    let down = hub.device(LinkRole::Downlink, None);
    hub.apply(HostStep::Peer(PeerConfig {
        device: down.clone(),
        public_key: secret.public(),
        allowed_ips: vec![IpAddr::into(address)],
        endpoint: None,
        keepalive: Duration::from_secs(25),
    }));
    let up = LinkId { network: id.network.clone(), peer: hub.name.clone(), role: LinkRole::Uplink };
    let back = LinkId { network: id.network, peer: far.name.clone(), role: LinkRole::Downlink };
    let target = |link, device, public_key, addresses| Target {
        link,
        device,
        public_key,
        addresses: Some(addresses),
        connected_once: false,
        lost: false,
    };
    let (there, here) = ((address, hub.tunnel), (hub.tunnel, address));
    (target(up, name, hub.key(), there), target(back, down, secret.public(), here))
}

#[test]
fn a_hundred_links_at_rest_cost_little() {
    let mut lab = Lab::new().unwrap();
    let hub = Gateway::start(lab.host("hub").unwrap(), "10.9.0.1");
    let far = Gateway::start(lab.host("far").unwrap(), "10.9.0.2");
    hub.make_device(LinkRole::Downlink, None, 51820);
    let (ups, downs): (Vec<_>, Vec<_>) = (1..=LINKS).map(|number| link(&far, &hub, number)).unzip();
    let (up, down) = (far.probe(ups), hub.probe(downs));
    wait_for("all links are connected at both ends", || {
        let connected = |prober: &spanwire_dataplane::probe::Prober| {
            prober.evidence().values().filter(|evidence| evidence.is_connected()).count()
                == usize::from(LINKS)
        };
        (connected(&up) && connected(&down)).then_some(())
    });
    let before = cpu(&hub);
    let (_stop, stopped) = std::sync::mpsc::channel::<()>();
    let _ = stopped.recv_timeout(Duration::from_secs(5));
    let used = cpu(&hub) - before;
    println!("a hub with {LINKS} links used {used:?} in 5 s");
    assert!(used <= Duration::from_millis(250), "{used:?}");
}
