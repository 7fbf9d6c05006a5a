//! Worker passes over twins: what is wanted gets made, a second pass writes nothing, a kill at any step is repaired, and
//! nothing is taken away after a failure. They refuse real devices.

#[path = "twins/host.rs"]
mod host;
#[path = "twins/stores.rs"]
mod stores;

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex},
    time::Duration,
};

use host::{Disturbance, HostTwin};
use spanwire::{
    clock::Clock,
    driver::Reconciler as _,
    ledger::Target,
    resolver::Resolver,
    worker::{HostFacts, Ports, Probes, Worker, identity::Identity, targets},
};
use spanwire_engine::{
    Gateway, GatewayFacts, GatewayName, Intent, LinkId, LinkRole, Listener, Meta, NetworkName, PublicKey,
    Stored, Topology, Transit, WorkerStatus,
    port::WorkerView,
    worker::{Evidence, Host, Recorded, Settings},
};
use stores::{ControlTwin, LocalTwin};

const LIMIT: Duration = Duration::from_secs(5);

#[derive(Clone, Default)]
struct ProbesTwin(Arc<Mutex<BTreeMap<LinkId, Evidence>>>, Arc<Mutex<Vec<targets::Target>>>);

impl Probes for ProbesTwin {
    fn set_targets(&self, targets: Vec<targets::Target>) {
        *self.1.lock().unwrap() = targets;
    }
    fn evidence(&self) -> BTreeMap<LinkId, Evidence> {
        self.0.lock().unwrap().clone()
    }
}

fn gateway(name: &str) -> GatewayName {
    name.parse().unwrap()
}

fn network() -> NetworkName {
    "demo".parse().unwrap()
}

fn link(peer: &str, role: LinkRole) -> LinkId {
    LinkId { network: network(), peer: gateway(peer), role }
}

fn key(number: u8) -> PublicKey {
    PublicKey([number; 32])
}

fn meta(generation: i64) -> Meta {
    Meta { uid: spanwire_engine::Uid("u".into()), generation, resource_version: generation.to_string() }
}

/// Gateways spoke-1, hub-a and hub-b with keys 1, 2 and 3.
fn gateways() -> BTreeMap<GatewayName, Gateway> {
    let named = ["spoke-1", "hub-a", "hub-b"].into_iter().zip(1u8..);
    let made = named.map(|(name, number)| {
        let listens = Listener { network: network(), role: LinkRole::Downlink, peer: None, port: 51820 };
        let facts = GatewayFacts {
            public_key: (number > 1).then(|| key(number).to_string()),
            key_generation: i64::from(number > 1),
            endpoint: Some(format!("192.0.2.{number}")),
            listeners: vec![listens],
            ..GatewayFacts::default()
        };
        let address = format!("10.9.0.{number}").parse().unwrap();
        let gateway = Gateway {
            meta: Meta { uid: spanwire_engine::Uid(name.into()), ..meta(1) },
            subnets: vec![format!("10.{number}.0.0/16")],
            facts,
            networks: [(network(), Some(address))].into(),
            ..Gateway::default()
        };
        (self::gateway(name), gateway)
    });
    made.collect()
}

fn intent(hubs: &[&str]) -> Intent {
    let hubs: Vec<GatewayName> = hubs.iter().map(|hub| gateway(hub)).collect();
    let peers = hubs.iter().map(ToString::to_string).collect();
    Intent {
        topology: Some(Topology::HubSpoke),
        members: ["spoke-1", "hub-a", "hub-b"].map(gateway).into(),
        tunnel_address: Some("10.9.0.1".parse().unwrap()),
        wide_cidrs: ["10.1.0.0/16", "10.2.0.0/16", "10.3.0.0/16", "10.9.0.0/24"]
            .map(|net| net.parse().unwrap())
            .into(),
        transit: Transit::Routed,
        hubs,
        ..Intent::bare(network(), gateway("spoke-1"), Some(peers))
    }
}

struct World {
    control: ControlTwin,
    local: LocalTwin,
    host: HostTwin,
    probes: ProbesTwin,
    disturbance: Arc<Mutex<Disturbance>>,
}

impl World {
    fn new() -> Self {
        let disturbance: Arc<Mutex<Disturbance>> = Arc::default();
        let view = WorkerView { gateways: gateways(), ..WorkerView::default() };
        Self {
            control: ControlTwin(Arc::new(Mutex::new(Some(view)))),
            local: LocalTwin { recorded: Arc::default(), disturbance: disturbance.clone() },
            host: HostTwin::new(key(1), disturbance.clone()),
            probes: ProbesTwin::default(),
            disturbance,
        }
    }

    /// A worker process that starts now.
    fn worker(&self) -> Worker<ControlTwin, LocalTwin, HostTwin, ProbesTwin> {
        Worker {
            me: gateway("spoke-1"),
            identity: Identity { public: key(1), generation: Some(1), file: None },
            settings: Settings::default(),
            ports: Ports {
                control: self.control.clone(),
                local: self.local.clone(),
                devices: self.host.clone(),
                probes: self.probes.clone(),
                resolver: Resolver::default(),
                clock: Clock::new().unwrap(),
            },
            host_facts: Box::new(HostFacts::default),
            said: BTreeMap::new(),
        }
    }

    fn intend(&self, intent: Option<Intent>, generation: i64) {
        let mut view = self.control.0.lock().unwrap();
        let intents = &mut view.as_mut().unwrap().intents;
        match intent {
            None => intents.clear(),
            Some(value) => {
                let status = intents.remove(&network()).map(|(_, status)| status).unwrap_or_default();
                intents.insert(network(), (Stored { meta: meta(generation), value }, status));
            }
        }
    }

    fn connect(&self, links: &[LinkId]) {
        let connected = Evidence::Connected { settled: true };
        *self.probes.0.lock().unwrap() = links.iter().map(|link| (link.clone(), connected)).collect();
    }

    fn status(&self) -> WorkerStatus {
        self.control.0.lock().unwrap().as_ref().unwrap().intents[&network()].1.clone()
    }

    fn host(&self) -> Host {
        self.host.host.lock().unwrap().clone()
    }

    fn recorded(&self) -> Recorded {
        self.local.recorded.lock().unwrap().clone()
    }

    /// Passes until one writes nothing.
    async fn settle(&self) {
        let mut worker = self.worker();
        for _ in 0..10 {
            let outcome = worker.pass().await;
            if outcome.ledger.is_empty() {
                return;
            }
        }
        panic!("ten passes and still writing");
    }
}

#[tokio::test]
async fn w1_the_second_pass_writes_nothing_and_a_restart_neither() {
    let world = World::new();
    world.intend(Some(intent(&["hub-a"])), 1);
    world.connect(&[link("hub-a", LinkRole::Uplink)]);
    let mut worker = world.worker();
    let first = worker.pass().await;
    assert!(first.faults.is_empty(), "{:?}", first.faults);
    assert!(first.ledger.count(Target::Device) > 0 && first.ledger.count(Target::Record) > 0);
    world.settle().await;
    for mut worker in [worker, world.worker()] {
        let outcome = worker.pass().await;
        assert_eq!((outcome.ledger.entries(), &outcome.waits[..]), (&[][..], &[][..]));
    }
    assert_eq!(world.status().summary.ready, 1);
    assert_eq!(world.probes.1.lock().unwrap().len(), 1);
}

#[tokio::test]
async fn w15_facts_are_published_before_there_is_any_network() {
    let world = World::new();
    let outcome = world.worker().pass().await;
    assert_eq!(outcome.ledger.count(Target::Status), 1, "{outcome:?}");
    let view = world.control.0.lock().unwrap().clone().unwrap();
    assert_eq!(view.gateways[&gateway("spoke-1")].facts.public_key, Some(key(1).to_string()));
}

/// Kills the worker at every call of every plan on the way from hub-a to hub-b, and starts it again.
#[tokio::test]
async fn h4_a_kill_at_every_step_of_every_plan_ends_in_the_same_state() {
    let goal = {
        let world = World::new();
        change_hub(&world).await;
        (world.host(), world.recorded())
    };
    let mut at = 0;
    loop {
        let world = World::new();
        world.disturbance.lock().unwrap().stop_at = Some(at);
        let killed = tokio::time::timeout(Duration::from_millis(20), change_hub(&world)).await.is_err();
        world.disturbance.lock().unwrap().stop_at = None;
        if !killed {
            break;
        }
        change_hub(&world).await;
        assert_eq!(world.host().devices, goal.0.devices, "killed at {at}");
        assert_eq!(world.host().tables, goal.0.tables, "killed at {at}");
        assert_eq!(world.host().firewall, goal.0.firewall, "killed at {at}");
        let links = |recorded: &Recorded| recorded.links.keys().cloned().collect::<Vec<_>>();
        assert_eq!(links(&world.recorded()), links(&goal.1), "killed at {at}");
        at += 1;
    }
    assert!(at > 10, "only {at} fault points");
}

async fn change_hub(world: &World) {
    let (a, b) = (link("hub-a", LinkRole::Uplink), link("hub-b", LinkRole::Uplink));
    if !world.recorded().links.contains_key(&b) {
        world.intend(Some(intent(&["hub-a"])), 1);
        world.connect(std::slice::from_ref(&a));
        world.settle().await;
    }
    world.intend(Some(intent(&["hub-b"])), 2);
    world.settle().await;
    world.connect(&[a, b.clone()]);
    world.settle().await;
    let left = world.recorded();
    assert_eq!(left.links.keys().collect::<Vec<_>>(), [&b]);
}

#[tokio::test]
async fn after_a_failed_step_nothing_is_taken_away_and_the_rest_is_made() {
    let world = World::new();
    world.intend(Some(intent(&["hub-a"])), 1);
    world.connect(&[link("hub-a", LinkRole::Uplink)]);
    world.settle().await;
    let before = world.host();
    world.intend(Some(Intent { peers: Some(vec![]), ..intent(&["hub-a"]) }), 2);
    world.disturbance.lock().unwrap().fail = Some("Intent(");
    let outcome = world.worker().pass().await;
    assert_eq!(outcome.faults.len(), 1, "{outcome:?}");
    assert_eq!((world.host().devices, world.host().firewall), (before.devices, before.firewall));
    world.disturbance.lock().unwrap().fail = None;
    world.settle().await;
    assert!(world.host().devices.is_empty() && world.recorded().links.is_empty());
}

#[tokio::test]
async fn without_the_packet_filter_no_device_is_made() {
    let world = World::new();
    world.intend(Some(intent(&["hub-a"])), 1);
    world.disturbance.lock().unwrap().fail = Some("Firewall");
    let outcome = world.worker().pass().await;
    assert_eq!(outcome.faults.len(), 1);
    assert!(world.host().devices.is_empty(), "{:?}", world.host.taken.lock().unwrap());
}

#[tokio::test]
async fn a_failed_peer_is_named_and_the_other_is_made() {
    let world = World::new();
    let both = Intent { hubs: vec![gateway("hub-a"), gateway("hub-b")], ..intent(&["hub-a", "hub-b"]) };
    world.intend(Some(both), 1);
    let bad = link("hub-a", LinkRole::Uplink).device().name(&gateway("spoke-1"));
    let text: &'static str =
        Box::leak(format!("Peer(PeerConfig {{ device: DeviceName(\"{bad}\")").into_boxed_str());
    world.disturbance.lock().unwrap().fail = Some(text);
    let outcome = world.worker().pass().await;
    assert_eq!(outcome.faults.len(), 1, "{outcome:?}");
    let status = world.status();
    let row = status.peers.iter().find(|row| row.peer == "hub-a").unwrap();
    assert_eq!(row.reason, spanwire_engine::Reason::StepFailed);
    let made = link("hub-b", LinkRole::Uplink).device();
    assert_eq!(world.host().devices[&made].peers.len(), 1);
}

#[tokio::test]
async fn w5_an_unreadable_control_store_removes_nothing_and_drift_is_still_repaired() {
    let world = World::new();
    world.intend(Some(intent(&["hub-a"])), 1);
    world.connect(&[link("hub-a", LinkRole::Uplink)]);
    world.settle().await;
    let before = world.host();
    *world.control.0.lock().unwrap() = None;
    world.host.host.lock().unwrap().devices.clear();
    let mut worker = world.worker();
    for _ in 0..3 {
        let outcome = tokio::time::timeout(LIMIT, worker.pass()).await.unwrap();
        assert!(outcome.faults[0].message.contains("cannot read the control store"), "{outcome:?}");
    }
    assert_eq!(world.host().devices.keys().collect::<Vec<_>>(), before.devices.keys().collect::<Vec<_>>());
    assert_eq!(world.host().tables, before.tables);
}

#[tokio::test]
async fn w11_an_emptied_control_store_removes_nothing() {
    let world = World::new();
    world.intend(Some(intent(&["hub-a"])), 1);
    world.connect(&[link("hub-a", LinkRole::Uplink)]);
    world.settle().await;
    let before = world.host();
    *world.control.0.lock().unwrap() = Some(WorkerView::default());
    let outcome = world.worker().pass().await;
    assert!(outcome.waits.iter().any(|wait| wait.contains("GatewayNotFound")), "{outcome:?}");
    assert_eq!(world.host(), before);
}

#[tokio::test]
async fn w16_a_gateway_taken_over_keeps_its_links_and_publishes_nothing() {
    let world = World::new();
    world.intend(Some(intent(&["hub-a"])), 1);
    world.connect(&[link("hub-a", LinkRole::Uplink)]);
    world.settle().await;
    let host = world.host();
    {
        let mut view = world.control.0.lock().unwrap();
        let own = view.as_mut().unwrap().gateways.get_mut(&gateway("spoke-1")).unwrap();
        (own.facts.public_key, own.facts.key_generation) = (Some(key(9).to_string()), 2);
    }
    world.intend(Some(intent(&["hub-b"])), 2);
    let view = world.control.0.lock().unwrap().clone();
    let outcome = world.worker().pass().await;
    assert!(outcome.waits.iter().any(|wait| wait.contains("GatewayTakenOver")), "{outcome:?}");
    assert_eq!((world.host(), world.control.0.lock().unwrap().clone()), (host, view));
}
