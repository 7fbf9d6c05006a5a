//! What a change would do, before it is applied: controller and workers are played through in memory, and what differs
//! from one publication to the next is told. It refuses to guess how long real hosts take.

mod paths;
mod snapshot;

use std::collections::{BTreeMap, BTreeSet};

use serde::Serialize;
use spanwire_engine::{NetworkName, NetworkSpec, controller::Plans, port::ControlView};

pub use paths::Pair;
pub use snapshot::{LinkChange, RoleChange, RouteChange, Via};

use crate::{Declared, imagine::World};
use snapshot::Snapshot;

/// Publications after which a forecast gives up.
const MOST_STEPS: usize = 32;

/// What a change would do.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Forecast {
    /// Every network that the change touches.
    pub networks: Vec<Network>,
    /// Objects that cannot be read: what hangs on them is not in the forecast.
    pub unreadable: Vec<String>,
}

/// What it would do to one network.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Network {
    /// Its name.
    pub name: String,
    /// Why it would not be carried out; what runs is left alone then.
    pub invalid: Option<String>,
    /// What is published one after the other.
    pub steps: Vec<Step>,
    /// Pairs that have a path now and would have none.
    pub lost: Vec<Pair>,
    /// Pairs that would have a path and have none now.
    pub gained: Vec<Pair>,
    /// Members that would not take part, and why.
    pub left_out: Vec<String>,
    /// How long a phase waits for a member that does not answer.
    pub connect_timeout_seconds: u64,
    /// What then: Proceed or Hold.
    pub on_timeout: String,
}

/// One publication.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Step {
    /// Adding, Switching, Demoting, Removing; `At once` without a phase.
    pub phase: String,
    /// Gateways that are told something new.
    pub intents: Vec<String>,
    /// Links that are made and removed.
    pub links: Vec<LinkChange>,
    /// Where traffic goes now.
    pub routes: Vec<RouteChange>,
    /// Gateways that change their role.
    pub roles: Vec<RoleChange>,
    /// Pairs that have a path before and after the whole change, and none in this step.
    pub cut: Vec<Pair>,
}

impl Forecast {
    /// Whether everything can be carried out and no pair loses its path, not even for a while.
    pub fn is_harmless(&self) -> bool {
        let harmless = |network: &Network| {
            network.invalid.is_none()
                && network.lost.is_empty()
                && network.left_out.is_empty()
                && network.steps.iter().all(|step| step.cut.is_empty())
        };
        self.unreadable.is_empty() && self.networks.iter().all(harmless)
    }
}

/// Plays a change through.
pub fn forecast(view: &ControlView, declared: &[Declared]) -> Forecast {
    let after = declared.iter().fold(view.clone(), |view, declared| declared.onto(&view));
    let names: Vec<NetworkName> = touched(view, &after);
    let mut world = World::new(&only(view, &names));
    let before: BTreeMap<&NetworkName, Snapshot> =
        names.iter().map(|name| (name, Snapshot::of(&world.view, name))).collect();
    world.view = declared.iter().fold(world.view, |view, declared| declared.onto(&view));
    let mut told: BTreeMap<&NetworkName, Teller> =
        before.iter().map(|(name, before)| (*name, Teller::new(before.clone()))).collect();
    for _ in 0..MOST_STEPS {
        let Some(plans) = world.controller_pass() else { break };
        world.settle_workers();
        for (name, teller) in &mut told {
            teller.hear(&world.view, name, &plans);
        }
    }
    let networks = told.into_iter().map(|(name, teller)| teller.tell(&world.view, name)).collect();
    Forecast { networks, unreadable: after.unreadable.iter().map(|object| object.cause.clone()).collect() }
}

/// The store once everything that is declared in it is carried out, with every member alive.
pub fn settled(view: &ControlView) -> ControlView {
    let mut world = World::new(view);
    world.run();
    world.view
}

/// Networks whose declaration changes, or that have a member whose declaration changes.
fn touched(before: &ControlView, after: &ControlView) -> Vec<NetworkName> {
    let spec =
        |view: &ControlView, name: &NetworkName| view.networks.get(name).map(|network| network.spec.clone());
    let changed: BTreeSet<&str> = after
        .gateways
        .iter()
        .filter(|(name, gateway)| before.gateways.get(*name) != Some(gateway))
        .map(|(name, _)| name.as_str())
        .collect();
    let has_changed_member = |spec: &NetworkSpec| {
        spec.members
            .iter()
            .chain(&spec.hub)
            .chain(&spec.standby_hubs)
            .any(|name| changed.contains(name.as_str()))
    };
    let is_touched = |name: &&NetworkName| {
        spec(before, name) != spec(after, name) || spec(after, name).as_ref().is_some_and(has_changed_member)
    };
    after.networks.keys().filter(is_touched).cloned().collect()
}

/// The part of a store that some networks need.
fn only(view: &ControlView, names: &[NetworkName]) -> ControlView {
    let mut view = view.clone();
    view.networks.retain(|name, _| names.contains(name));
    view.intents.retain(|(name, _), _| names.contains(name));
    view
}

/// Follows one network from publication to publication.
struct Teller {
    before: Snapshot,
    last: Snapshot,
    steps: Vec<(Step, Snapshot)>,
}

impl Teller {
    fn new(before: Snapshot) -> Self {
        Self { last: before.clone(), before, steps: Vec::new() }
    }

    fn hear(&mut self, view: &ControlView, name: &NetworkName, plans: &Plans) {
        let now = Snapshot::of(view, name);
        let intents = plans.networks.get(name).map(|plan| {
            let written = plan.intents.iter().map(|write| write.intent.gateway.to_string());
            written.chain(plan.deletes.iter().map(|delete| delete.gateway.to_string())).collect::<Vec<_>>()
        });
        let change = view.networks.get(name).and_then(|network| network.status.change.as_ref());
        let step = Step {
            phase: change.map_or("At once", |change| change.phase.as_str()).to_owned(),
            intents: intents.unwrap_or_default(),
            links: snapshot::link_changes(&self.last, &now),
            routes: snapshot::route_changes(&self.last, &now),
            roles: snapshot::role_changes(&self.last, &now),
            cut: Vec::new(),
        };
        // A pass that only notes that all is done is no step.
        let quiet = step.intents.is_empty() && step.links.is_empty() && step.routes.is_empty();
        if !quiet || !step.roles.is_empty() {
            self.steps.push((step, now.clone()));
        }
        self.last = now;
    }

    fn tell(self, view: &ControlView, name: &NetworkName) -> Network {
        let Self { before, last, steps } = self;
        let Some(network) = view.networks.get(name) else { return Network::default() };
        let declares = |gateway: &str| network.spec.members.iter().any(|member| member == gateway);
        let stay = |pair: &&Pair| declares(&pair.from) && declares(&pair.to);
        let kept: BTreeSet<&Pair> = before.paths.intersection(&last.paths).collect();
        let cut = |now: &Snapshot| {
            kept.iter().filter(|pair| !now.paths.contains(**pair)).copied().cloned().collect()
        };
        let left_out = network.status.members.iter().filter(|member| !member.accepted && !member.leaving);
        let policy = network.spec.hub_change;
        Network {
            name: name.to_string(),
            invalid: network.status.state.strip_prefix("Invalid: ").map(str::to_owned),
            lost: before.paths.difference(&last.paths).filter(stay).cloned().collect(),
            gained: last.paths.difference(&before.paths).cloned().collect(),
            steps: steps.into_iter().map(|(step, now)| Step { cut: cut(&now), ..step }).collect(),
            left_out: left_out
                .map(|member| {
                    let why =
                        member.reason.as_ref().map(|(reason, message)| format!(": {reason}: {message}"));
                    format!("{}{}", member.gateway, why.unwrap_or_default())
                })
                .collect(),
            connect_timeout_seconds: policy.connect_timeout.as_secs(),
            on_timeout: format!("{:?}", policy.on_timeout),
        }
    }
}
