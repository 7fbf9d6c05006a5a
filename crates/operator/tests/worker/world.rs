//! One host with a worker that can be started any number of times, beside a control store that tests edit. It refuses
//! real time and real devices.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex},
    time::Duration,
};

use crate::host::{Disturbance, HostTwin};
use crate::stores::{ControlTwin, LocalTwin};
use spanwire::{
    clock::Clock,
    driver::Reconciler as _,
    events::Events,
    metrics::links::Measures,
    resolver::Resolver,
    worker::{Ports, Probes, Worker, identity::Identity},
};
use spanwire_dataplane::probe::Target;
use spanwire_engine::{
    Gateway, GatewayFacts, GatewayName, Intent, LinkId, LinkRole, Listener, Meta, NetworkName, PublicKey,
    Stored, Topology, Transit, WorkerStatus,
    port::WorkerView,
    worker::{Evidence, Host, Recorded, Settings},
};

#[derive(Clone, Default)]
pub(crate) struct ProbesTwin(
    pub(crate) Arc<Mutex<BTreeMap<LinkId, Evidence>>>,
    pub(crate) Arc<Mutex<Vec<Target>>>,
);

impl Probes for ProbesTwin {
    fn set_targets(&self, targets: Vec<Target>) {
        *self.1.lock().unwrap() = targets;
    }
    fn evidence(&self) -> BTreeMap<LinkId, Evidence> {
        self.0.lock().unwrap().clone()
    }
}

pub(crate) fn gateway(name: &str) -> GatewayName {
    name.parse().unwrap()
}

pub(crate) fn network() -> NetworkName {
    "demo".parse().unwrap()
}

pub(crate) fn link(peer: &str, role: LinkRole) -> LinkId {
    LinkId { network: network(), peer: gateway(peer), role }
}

pub(crate) fn key(number: u8) -> PublicKey {
    PublicKey([number; 32])
}

pub(crate) fn meta(generation: i64) -> Meta {
    Meta { uid: spanwire_engine::Uid("u".into()), generation, resource_version: generation.to_string() }
}

/// Gateways spoke-1, hub-a and hub-b with keys 1, 2 and 3.
pub(crate) fn gateways() -> BTreeMap<GatewayName, Gateway> {
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

pub(crate) fn intent(hubs: &[&str]) -> Intent {
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

pub(crate) struct World {
    pub(crate) control: ControlTwin,
    pub(crate) local: LocalTwin,
    pub(crate) host: HostTwin,
    pub(crate) probes: ProbesTwin,
    pub(crate) disturbance: Arc<Mutex<Disturbance>>,
}

impl World {
    pub(crate) fn new() -> Self {
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
    pub(crate) fn worker(&self) -> Worker<ControlTwin, LocalTwin, HostTwin, ProbesTwin> {
        Worker {
            me: gateway("spoke-1"),
            identity: Identity { public: key(1), generation: Some(1), keys: None },
            settings: Settings { linger: Duration::ZERO, ..Settings::default() },
            ports: Ports {
                control: self.control.clone(),
                local: self.local.clone(),
                devices: self.host.clone(),
                probes: self.probes.clone(),
                resolver: Resolver::default(),
                clock: Clock::new().unwrap(),
            },
            events: Events::none(),
            measures: Measures::default(),
            said: BTreeMap::new(),
        }
    }

    pub(crate) fn intend(&self, intent: Option<Intent>, generation: i64) {
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

    pub(crate) fn connect(&self, links: &[LinkId]) {
        let connected = Evidence::Connected { settled: true };
        *self.probes.0.lock().unwrap() = links.iter().map(|link| (link.clone(), connected)).collect();
    }

    pub(crate) fn status(&self) -> WorkerStatus {
        self.control.0.lock().unwrap().as_ref().unwrap().intents[&network()].1.clone()
    }

    pub(crate) fn host(&self) -> Host {
        self.host.host.lock().unwrap().clone()
    }

    pub(crate) fn recorded(&self) -> Recorded {
        self.local.recorded.lock().unwrap().clone()
    }

    /// Passes until one writes nothing.
    pub(crate) async fn settle(&self) {
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
