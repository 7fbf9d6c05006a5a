//! A world in memory in which every member is alive and every link works: the engine decides for the controller and for
//! each worker, and this applies what they say. It refuses to decide anything.

mod facts;
mod host;

use std::collections::{BTreeMap, BTreeSet};

use spanwire_engine::{
    GatewayName, LinkId, Meta, NetworkName, Now, PublicKey, Stored, Uid, WorkerStatus,
    controller::{self, Plan, Plans},
    port::{ControlView, WorkerView, controller_store::IntentView},
    worker::{self, Desired, Evidence, Host, Recorded, Settings, Situation, Step},
};

/// Passes after which a world that still moves is left as it is: an engine that does not come to rest is a fault of
/// the engine, and not to be hidden by waiting.
const MOST_PASSES: usize = 64;

/// The world.
pub(crate) struct World {
    /// What the control store holds.
    pub(crate) view: ControlView,
    hosts: BTreeMap<GatewayName, Imagined>,
    now: Now,
}

/// One host.
struct Imagined {
    key: PublicKey,
    recorded: Recorded,
    host: Host,
}

impl World {
    /// The world of a store: what its intents ask for stands on every host.
    pub(crate) fn new(view: &ControlView) -> Self {
        let mut world = Self { view: view.clone(), hosts: BTreeMap::new(), now: Now::default() };
        world.meet();
        world.settle_workers();
        world
    }

    /// What the controller would write now, or `None` if nothing.
    pub(crate) fn controller_pass(&mut self) -> Option<Plans> {
        self.meet();
        let plans = controller::plan(&self.view, &self.now);
        let writes =
            |plan: &Plan| plan.status.is_some() || !plan.intents.is_empty() || !plan.deletes.is_empty();
        if plans.gateways.is_empty() && !plans.networks.values().any(writes) {
            return None;
        }
        for (gateway, networks) in &plans.gateways {
            if let Some(gateway) = self.view.gateways.get_mut(gateway) {
                gateway.networks.clone_from(networks);
            }
        }
        for (name, plan) in &plans.networks {
            self.apply(name, plan);
        }
        Some(plans)
    }

    /// Runs controller and workers until nothing moves.
    pub(crate) fn run(&mut self) {
        for _ in 0..MOST_PASSES {
            if self.controller_pass().is_none() {
                return;
            }
            self.settle_workers();
        }
    }

    /// Lets every worker do all that it would do, and say so.
    pub(crate) fn settle_workers(&mut self) {
        for _ in 0..MOST_PASSES {
            let mut seen = seen_by_all(&self.view);
            let moved = self.gateways().iter().filter(|me| self.worker_pass(me, &mut seen)).count() > 0;
            self.see();
            if !moved {
                break;
            }
        }
    }

    fn gateways(&self) -> Vec<GatewayName> {
        self.hosts.keys().cloned().collect()
    }

    /// Hosts and facts of gateways that are new in the view.
    fn meet(&mut self) {
        for (number, (name, gateway)) in (1u32..).zip(&mut self.view.gateways) {
            let key = facts::fill(number, name, gateway);
            self.hosts.entry(name.clone()).or_insert_with(|| Imagined {
                key,
                recorded: Recorded::default(),
                host: Host { underlay_mtu: 1500, ..Host::default() },
            });
        }
        let gateways = &self.view.gateways;
        self.hosts.retain(|name, _| gateways.contains_key(name));
    }

    fn apply(&mut self, name: &NetworkName, plan: &Plan) {
        if let Some((status, _)) = &plan.status
            && let Some(network) = self.view.networks.get_mut(name)
        {
            network.status = status.clone();
        }
        for write in &plan.intents {
            let intent = write.intent.clone();
            let key = (intent.network.clone(), intent.gateway.clone());
            let standing = self.view.intents.remove(&key);
            let (mut meta, status) = standing.map(|view| (view.meta, view.status)).unwrap_or_default();
            meta.generation += 1;
            if meta.uid == Uid::default() {
                meta.uid = Uid(intent.object_name());
            }
            self.view.intents.insert(key, IntentView { meta, intent, status, managed: true, deleting: None });
        }
        for delete in &plan.deletes {
            self.view.intents.remove(&(delete.network.clone(), delete.gateway.clone()));
        }
    }

    /// One pass of one worker. Returns whether it did or said anything new.
    fn worker_pass(&mut self, me: &GatewayName, seen: &mut WorkerView) -> bool {
        seen_by(me, &self.view, seen);
        let Some(imagined) = self.hosts.get_mut(me) else { return false };
        let desired = desire(me, imagined.key, seen, &imagined.recorded, &imagined.host);
        let plan = worker::plan(&desired, &imagined.recorded, &imagined.host, &self.now);
        for step in &plan.steps {
            match step {
                Step::Record(step) => host::record(&mut imagined.recorded, step),
                Step::Host(step) => host::apply(&mut imagined.host, step, imagined.key),
            }
        }
        let previous: BTreeMap<NetworkName, WorkerStatus> =
            seen.intents.iter().map(|(network, (_, status))| (network.clone(), status.clone())).collect();
        let (recorded, host) = (&imagined.recorded, &imagined.host);
        let statuses = worker::report(&desired, recorded, host, &self.now, &previous, &BTreeMap::new());
        let mut moved = !plan.steps.is_empty();
        if let Some(gateway) = self.view.gateways.get_mut(me) {
            moved |= gateway.facts.listeners != statuses.listeners;
            gateway.facts.listeners = statuses.listeners;
        }
        for (network, status) in statuses.intents {
            if let Some(view) = self.view.intents.get_mut(&(network, me.clone())) {
                moved |= view.status != status;
                view.status = status;
            }
        }
        moved
    }

    /// A link is connected when both ends have it.
    fn see(&mut self) {
        let names: BTreeMap<PublicKey, GatewayName> =
            self.hosts.iter().map(|(name, host)| (host.key, name.clone())).collect();
        let mut ends: BTreeMap<GatewayName, BTreeSet<LinkId>> = BTreeMap::new();
        for (me, imagined) in &self.hosts {
            let mine = ends.entry(me.clone()).or_default();
            for (device, observed) in &imagined.host.devices {
                let peers = observed.peers.keys().filter_map(|key| names.get(key));
                mine.extend(peers.map(|peer| LinkId {
                    network: device.network.clone(),
                    peer: peer.clone(),
                    role: device.role,
                }));
            }
        }
        let other = |me: &GatewayName, link: &LinkId| LinkId {
            network: link.network.clone(),
            peer: me.clone(),
            role: link.role.other_end(),
        };
        for (me, imagined) in &mut self.hosts {
            let mine = ends.get(me).into_iter().flatten();
            let connected =
                mine.filter(|link| ends.get(&link.peer).is_some_and(|ends| ends.contains(&other(me, link))));
            imagined.host.evidence =
                connected.map(|link| (link.clone(), Evidence::Connected { settled: true })).collect();
        }
    }
}

/// What a worker would want, by the engine's own reading of its intents.
pub(crate) fn desire(
    me: &GatewayName,
    own_key: PublicKey,
    view: &WorkerView,
    recorded: &Recorded,
    host: &Host,
) -> Desired {
    let settings = Settings { linger: std::time::Duration::ZERO, ..Settings::default() };
    worker::desire(&Situation {
        me,
        own_key,
        view: Some(view),
        consistent: true,
        recorded,
        host,
        settings: &settings,
    })
}

/// What the workers of all gateways read alike.
pub(crate) fn seen_by_all(view: &ControlView) -> WorkerView {
    WorkerView { gateways: view.gateways.clone(), ..WorkerView::default() }
}

/// Adds what the worker of one gateway alone reads.
pub(crate) fn seen_by(me: &GatewayName, view: &ControlView, seen: &mut WorkerView) {
    let mine = view.intents.iter().filter(|((_, gateway), _)| gateway == me);
    seen.intents = mine
        .map(|((network, _), standing)| {
            let meta: Meta = standing.meta.clone();
            (network.clone(), (Stored { meta, value: standing.intent.clone() }, standing.status.clone()))
        })
        .collect();
}

/// The key that a gateway has, or one that stands for it.
pub(crate) fn key_of(name: &GatewayName, published: Option<&str>) -> PublicKey {
    published.and_then(|text| text.parse().ok()).unwrap_or_else(|| facts::stand_in(name))
}
