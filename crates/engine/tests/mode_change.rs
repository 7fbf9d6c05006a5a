//! A network whose devices become those of the other backend, step by step on a twin. It refuses an end that depends on
//! where a worker was killed.
#![allow(clippy::unwrap_used, clippy::panic, reason = "helpers of tests fail by panic")]

use std::collections::BTreeMap;

use spanwire_engine::{
    Backend, Gateway, GatewayFacts, GatewayName, Intent, LinkId, LinkRole, Meta, NetworkName, Now, PublicKey,
    Role, Stored, TunnelMode, WorkerStatus, check,
    port::WorkerView,
    worker::{self, Desired, Evidence, Host, HostStep, Recorded, Settings, Situation, Step},
};
use spanwire_testkit::twin;

const OWN_KEY: PublicKey = PublicKey([1; 32]);

/// A hub with two spokes, or one spoke of a hub, on one host.
#[derive(Clone)]
struct World {
    view: WorkerView,
    recorded: Recorded,
    host: Host,
}

fn name(text: &str) -> GatewayName {
    text.parse().unwrap()
}

fn network() -> NetworkName {
    "net".parse().unwrap()
}

impl World {
    fn new(role: Role, mode: TunnelMode) -> Self {
        let peers = if role == Role::Hub { vec!["a", "b"] } else { vec!["hub"] };
        let mut intent =
            Intent::bare(network(), name("me"), Some(peers.iter().map(|p| (*p).to_owned()).collect()));
        intent.topology = Some(spanwire_engine::Topology::HubSpoke);
        intent.hubs = vec![name(if role == Role::Hub { "me" } else { "hub" })];
        intent.tunnel.mode = mode;
        let gateway = |number: u8| {
            let facts = GatewayFacts {
                public_key: Some(PublicKey([number; 32]).to_string()),
                endpoint: Some(format!("192.0.2.{number}")),
                ..GatewayFacts::default()
            };
            Gateway { facts, subnets: vec![format!("10.{number}.0.0/16")], ..Gateway::default() }
        };
        let peers = peers.into_iter().zip(2..).map(|(peer, number)| (name(peer), gateway(number)));
        let gateways: BTreeMap<_, _> = peers.chain([(name("me"), gateway(1))]).collect();
        let meta = Meta { generation: 1, ..Meta::default() };
        let intents =
            BTreeMap::from([(network(), (Stored { meta, value: intent }, WorkerStatus::default()))]);
        let view = WorkerView { gateways, intents, unreadable: Vec::new(), ..WorkerView::default() };
        let host = Host { underlay_mtu: 1500, kernel_wireguard: true, ..Host::default() };
        Self { view, recorded: Recorded::default(), host }
    }

    fn ask_for(&mut self, mode: TunnelMode) {
        let (stored, _) = self.view.intents.get_mut(&network()).unwrap();
        stored.value.tunnel.mode = mode;
        stored.meta.generation += 1;
    }

    fn desire(&self) -> Desired {
        let settings = Settings::default();
        worker::desire(&Situation {
            me: &name("me"),
            own_key: OWN_KEY,
            view: Some(&self.view),
            consistent: true,
            recorded: &self.recorded,
            host: &self.host,
            settings: &settings,
        })
    }

    fn plan(&self) -> Vec<Step> {
        let desired = self.desire();
        let steps = worker::plan(&desired, &self.recorded, &self.host, &Now::default()).steps;
        let found = check::plan(&desired, &self.recorded, &self.host, &steps);
        assert!(found.is_empty(), "{found:?} in {steps:#?}");
        steps
    }

    fn take(&mut self, steps: &[Step]) {
        for step in steps {
            match step {
                Step::Record(step) => twin::apply_to_records(&mut self.recorded, step),
                Step::Host(step) => twin::apply_to_host(&mut self.host, step, OWN_KEY).unwrap(),
            }
        }
    }

    /// Passes until nothing is left to do, with every link answering.
    fn converge(&mut self) {
        for _ in 0..10 {
            let steps = self.plan();
            if steps.is_empty() {
                return;
            }
            self.take(&steps);
            let links: Vec<LinkId> = self.recorded.links.keys().cloned().collect();
            let connected = Evidence::Connected { settled: true };
            self.host.evidence = links.into_iter().map(|link| (link, connected)).collect();
        }
        panic!("it does not come to rest: {:#?}", self.plan());
    }

    fn ports(&self) -> Vec<u16> {
        self.host.devices.values().map(|device| device.port).collect()
    }
}

fn is_constructive_route_or_later(steps: &[Step]) -> Option<usize> {
    steps.iter().position(|step| matches!(step, Step::Host(HostStep::Route { .. })))
}

#[test]
fn a_mode_change_is_made_before_it_is_broken_and_ends_the_same_wherever_it_was_killed() {
    for role in [Role::Hub, Role::Spoke] {
        for (from, to) in [
            (TunnelMode::Userspace, TunnelMode::Kernel),
            (TunnelMode::Kernel, TunnelMode::Userspace),
            (TunnelMode::Userspace, TunnelMode::Auto),
        ] {
            let mut begun = World::new(role, from);
            begun.converge();
            let (ports, tables) = (begun.ports(), begun.host.tables.clone());
            begun.ask_for(to);
            let steps = begun.plan();
            let take_over =
                steps.iter().position(|step| matches!(step, Step::Host(HostStep::TakeOver { .. })));
            let (take_over, route) = (take_over.unwrap(), is_constructive_route_or_later(&steps).unwrap());
            let gone = steps.iter().position(Step::is_destructive).unwrap();
            assert!(take_over < route && route < gone, "{steps:#?}");
            for killed in 0..=steps.len() {
                let mut world = begun.clone();
                world.take(&steps[..killed]);
                world.converge();
                assert!(world.host.beside.is_empty());
                let wanted = Backend::wanted(to, true);
                assert!(world.host.devices.values().all(|device| device.backend() == wanted));
                assert_eq!(world.ports(), ports, "killed after {killed} of {steps:#?}");
                assert_eq!(world.host.tables.len(), tables.len());
                let routes = world.host.tables.values().flat_map(|table| table.routes.values());
                assert!(routes.clone().count() > 0);
                assert!(routes.clone().all(|route| route.device.backend() == wanted));
                let keepalives = world.host.devices.values().flat_map(|device| device.peers.values());
                assert!(keepalives.clone().all(|peer| !peer.keepalive.is_zero()));
            }
        }
    }
}

#[test]
fn a_mode_that_this_host_has_not_takes_nothing_away() {
    let mut world = World::new(Role::Spoke, TunnelMode::Userspace);
    world.converge();
    let before = world.host.clone();
    world.host.kernel_wireguard = false;
    world.ask_for(TunnelMode::Kernel);
    world.converge();
    assert_eq!(world.host.devices, before.devices);
    assert!(world.recorded.links.contains_key(&LinkId {
        network: network(),
        peer: name("hub"),
        role: LinkRole::Uplink
    }));
}
