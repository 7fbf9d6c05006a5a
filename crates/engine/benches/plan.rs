//! How long a plan for 10,000 links takes: nothing to do, everything to make, everything to exchange; beside one sort and
//! merge of the same keys in the same run. It refuses to measure the setup.
#![allow(missing_docs, reason = "criterion's macros make public functions")]

use std::{collections::BTreeMap, hint::black_box, net::Ipv4Addr};

use criterion::{BatchSize, Criterion, criterion_group, criterion_main};
use ipnet::IpNet;
use spanwire_engine::{
    BootTime, Gateway, GatewayFacts, GatewayName, Intent, LinkId, LinkRole, Listener, Meta, NetworkName, Now,
    PublicKey, Role, Stored, Topology, Uid, WorkerStatus,
    port::WorkerView,
    worker::{
        self, Desired, Evidence, Host, HostStep, ObservedPeer, PeerConfig, Recorded, Settings, Situation,
        Step,
    },
};
use spanwire_testkit::twin;

const LINKS: usize = 10_000;

fn network() -> NetworkName {
    "net".parse().expect("a constant name")
}

fn name(index: usize) -> GatewayName {
    format!("gateway-{index:05}").parse().expect("a name")
}

fn key(index: usize) -> PublicKey {
    let mut bytes = [7; 32];
    bytes[..8].copy_from_slice(&(index as u64 + 1).to_be_bytes());
    PublicKey(bytes)
}

fn address(index: usize) -> Ipv4Addr {
    Ipv4Addr::from(0x6440_0000 + u32::try_from(index).expect("small") + 1)
}

fn subnet(index: usize) -> Ipv4Addr {
    Ipv4Addr::from(0x0a00_0000 + 256 * u32::try_from(index).expect("small"))
}

fn gateway(index: usize) -> Gateway {
    let listener = |role, port| Listener { network: network(), role, peer: None, port };
    Gateway {
        meta: Meta { uid: Uid(format!("uid-{index}")), generation: 1, resource_version: String::new() },
        subnets: vec![format!("{}/24", subnet(index))],
        facts: GatewayFacts {
            public_key: Some(key(index).to_string()),
            key_generation: 1,
            endpoint: Some(format!("198.51.{}.{}", index / 256, index % 256)),
            listeners: vec![listener(LinkRole::Downlink, 51820), listener(LinkRole::Mesh, 51821)],
            ..GatewayFacts::default()
        },
        networks: BTreeMap::from([(network(), Some(address(index).into()))]),
        ..Gateway::default()
    }
}

/// Which gateways one end is linked with: the listener of a hub, or the mesh device.
fn view(role: LinkRole, peers: std::ops::RangeInclusive<usize>, generation: i64) -> WorkerView {
    let hubs = if role == LinkRole::Downlink { vec![name(0)] } else { Vec::new() };
    let subnets = peers.clone().map(|peer| IpNet::new(subnet(peer).into(), 24).expect("short"));
    let cidr: IpNet = "100.64.0.0/10".parse().expect("a prefix");
    let mut wide_cidrs: Vec<IpNet> = subnets.chain([cidr]).collect();
    wide_cidrs.sort();
    let intent = Intent {
        topology: Some(if hubs.is_empty() { Topology::Mesh } else { Topology::HubSpoke }),
        role: Some(if hubs.is_empty() { Role::Spoke } else { Role::Hub }),
        hubs,
        tunnel_address: Some(address(0).into()),
        wide_cidrs,
        ..Intent::bare(network(), name(0), Some(peers.clone().map(|peer| name(peer).to_string()).collect()))
    };
    let meta = Meta { uid: Uid("intent".to_owned()), generation, resource_version: String::new() };
    WorkerView {
        gateways: std::iter::once(0)
            .chain(1..=2 * LINKS)
            .map(|index| (name(index), gateway(index)))
            .collect(),
        intents: BTreeMap::from([(network(), (Stored { meta, value: intent }, WorkerStatus::default()))]),
        ..WorkerView::default()
    }
}

struct Local {
    recorded: Recorded,
    host: Host,
}

fn now() -> Now {
    let since_boot = std::time::Duration::from_secs(1000);
    Now { boot: BootTime { boot_id: "boot".to_owned(), since_boot }, wall: "now".to_owned() }
}

fn desire(view: &WorkerView, local: &Local) -> Desired {
    worker::desire(&Situation {
        me: &name(0),
        own_key: key(0),
        view: Some(view),
        consistent: true,
        recorded: &local.recorded,
        host: &local.host,
        settings: &Settings { linger: std::time::Duration::ZERO, ..Settings::default() },
    })
}

/// The twin looks at all other peers of the device for each new one; no two have a prefix in common here.
fn peer(host: &mut Host, config: &PeerConfig) {
    let device = host.devices.values_mut().find(|device| device.name.as_ref() == Some(&config.device));
    let peer = ObservedPeer {
        allowed_ips: config.allowed_ips.iter().copied().collect(),
        endpoint: config.endpoint,
        keepalive: config.keepalive,
    };
    device.expect("it was made before").peers.insert(config.public_key, peer);
}

/// Records and host when nothing is left to do, all links connected.
fn at_rest(view: &WorkerView) -> Local {
    let mut local = Local { recorded: Recorded::default(), host: Host::default() };
    loop {
        let desired = desire(view, &local);
        let plan = worker::plan(&desired, &local.recorded, &local.host, &now());
        if plan.steps.is_empty() {
            return local;
        }
        for step in &plan.steps {
            match step {
                Step::Record(step) => twin::apply_to_records(&mut local.recorded, step),
                Step::Host(HostStep::Peer(config)) => peer(&mut local.host, config),
                Step::Host(step) => twin::apply_to_host(&mut local.host, step, key(0)).expect("a good step"),
            }
        }
        let connected = |id: &LinkId| (id.clone(), Evidence::Connected { settled: true });
        local.host.evidence = local.recorded.links.keys().map(connected).collect();
    }
}

/// Sorts two lists of links and walks them side by side: the least that any comparison of them costs.
fn sort_merge(mut left: Vec<LinkId>, mut right: Vec<LinkId>) -> usize {
    left.sort_unstable();
    right.sort_unstable();
    let (mut a, mut b, mut same) = (0, 0, 0);
    while let (Some(x), Some(y)) = (left.get(a), right.get(b)) {
        match x.cmp(y) {
            std::cmp::Ordering::Less => a += 1,
            std::cmp::Ordering::Greater => b += 1,
            std::cmp::Ordering::Equal => (a, b, same) = (a + 1, b + 1, same + 1),
        }
    }
    same
}

fn shuffled(local: &Local) -> Vec<LinkId> {
    let mut keys: Vec<LinkId> = local.recorded.links.keys().cloned().collect();
    let count = keys.len();
    for index in 0..count {
        keys.swap(index, (index * 7919 + 13) % count);
    }
    keys
}

fn plans(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("10000 links");
    group.sample_size(20);
    for role in [LinkRole::Downlink, LinkRole::Mesh] {
        let (standing, exchanged) = (view(role, 1..=LINKS, 1), view(role, LINKS + 1..=2 * LINKS, 2));
        let nothing = Local { recorded: Recorded::default(), host: Host::default() };
        let local = at_rest(&standing);
        let mut measure = |what: &str, view: &WorkerView, local: &Local, least: usize| {
            let desired = desire(view, local);
            let plan = worker::plan(&desired, &local.recorded, &local.host, &now());
            assert!(
                plan.steps.len() >= least && (least > 0 || plan.steps.is_empty()),
                "{}",
                plan.steps.len()
            );
            group.bench_function(format!("{role}, {what}: plan"), |bencher| {
                bencher.iter_with_large_drop(|| worker::plan(&desired, &local.recorded, &local.host, &now()));
            });
        };
        measure("nothing to do", &standing, &local, 0);
        measure("all to make", &standing, &nothing, 2 * LINKS);
        measure("all to exchange", &exchanged, &local, 2 * LINKS);
        group.bench_function(format!("{role}, nothing to do: desire"), |bencher| {
            bencher.iter_with_large_drop(|| desire(&standing, &local));
        });
        let (left, right) = (shuffled(&local), shuffled(&local));
        group.bench_function(format!("{role}: sort and merge of the keys"), |bencher| {
            let copy = || (left.clone(), right.clone());
            bencher.iter_batched(
                copy,
                |(left, right)| black_box(sort_merge(left, right)),
                BatchSize::LargeInput,
            );
        });
    }
    group.finish();
}

criterion_group!(benches, plans);
criterion_main!(benches);
