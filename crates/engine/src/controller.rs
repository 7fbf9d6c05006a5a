//! The controller's decisions: from declared networks to one intent a gateway, in phases when hubs or topology change.
//! It refuses to publish anything for a network that is invalid or could not be read: what runs is left alone.

pub mod address;
pub mod barrier;
pub mod intents;
pub mod members;
pub mod phase;
pub mod report;
pub mod validate;

use std::{
    collections::{BTreeMap, BTreeSet},
    net::IpAddr,
    time::Duration,
};

use crate::{
    GatewayName, Intent, Meta, NetworkName, NetworkStatus, Now,
    port::{ControlView, NetworkView},
};

pub use intents::{Stage, publish};
pub use members::Membership;

/// How long a leaver's worker may take to confirm its teardown before its intent is deleted and its address freed.
pub const TEARDOWN_DEADLINE: Duration = Duration::from_secs(600);

/// What the controller has to write.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
#[must_use]
pub struct Plans {
    /// One plan a network that is declared, or of which intents are left.
    pub networks: BTreeMap<NetworkName, Plan>,
    /// The controller's part of each gateway's status, where it differs from what stands.
    pub gateways: BTreeMap<GatewayName, BTreeMap<NetworkName, Option<IpAddr>>>,
}

/// What to write for one network: the status first, with its precondition, then the intents, then the deletions.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
#[must_use]
pub struct Plan {
    /// The status, where it differs from what stands, and the version of the network that it was planned from.
    pub status: Option<(NetworkStatus, Meta)>,
    /// Intents that differ from what stands.
    pub intents: Vec<IntentWrite>,
    /// Intents that are done with.
    pub deletes: Vec<IntentDelete>,
    /// What the plan leaves undone and what it waits for.
    pub report: Report,
}

/// An intent to write.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct IntentWrite {
    /// The content.
    pub intent: Intent,
    /// The version planned from; `None`: it must not exist yet.
    pub expected: Option<Meta>,
}

/// An intent to delete.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct IntentDelete {
    /// The network.
    pub network: NetworkName,
    /// The gateway.
    pub gateway: GatewayName,
    /// The version planned from.
    pub expected: Meta,
    /// Its worker has not confirmed that the links are gone: the deadline has passed.
    pub overdue: bool,
}

/// What a plan leaves undone.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
#[must_use]
pub struct Report {
    /// What the running phase waits for, by name; empty: nothing.
    pub waits: Vec<String>,
    /// Why there is no verdict in this pass: something could not be read.
    pub unknown: Option<String>,
    /// When the running phase's time is over if nothing else happens.
    pub next_due: Option<Duration>,
    /// Phases that this plan ends although what they wait for has not come, because their time is over.
    pub overrun: Vec<String>,
}

/// Plans all networks of a control store.
pub fn plan(view: &ControlView, now: &Now) -> Plans {
    let mut plans = Plans::default();
    let mut addresses: BTreeMap<GatewayName, BTreeMap<NetworkName, Option<IpAddr>>> =
        view.gateways.iter().map(|(name, gateway)| (name.clone(), gateway.networks.clone())).collect();
    for (name, network) in &view.networks {
        let plan = plan_network(view, name, network, now);
        let status = plan.status.as_ref().map_or(&network.status, |(status, _)| status);
        for member in status.members.iter().filter(|member| member.tunnel_address.is_some()) {
            if let Some(entries) = addresses.get_mut(&member.gateway) {
                entries.insert(name.clone(), member.tunnel_address);
            }
        }
        plans.networks.insert(name.clone(), plan);
    }
    for (name, plan) in remove_deleted(view) {
        plans.networks.insert(name, plan);
    }
    let gone = |name: &NetworkName| {
        let intents = view.intents.keys().any(|(network, _)| network == name);
        !view.networks.contains_key(name)
            && !intents
            && !is_unreadable(view, "gatewaynetworks", name.as_str())
    };
    for (gateway, mut entries) in addresses {
        entries.retain(|network, _| !gone(network));
        if view.gateways.get(&gateway).is_some_and(|gateway| gateway.networks != entries) {
            plans.gateways.insert(gateway, entries);
        }
    }
    plans
}

pub(crate) fn is_unreadable(view: &ControlView, kind: &str, name: &str) -> bool {
    view.unreadable.iter().any(|object| object.kind == kind && object.name == name)
}

/// Whether there is no such gateway any more.
pub(crate) fn is_gone(view: &ControlView, gateway: &GatewayName) -> bool {
    !view.gateways.contains_key(gateway) && !is_unreadable(view, "gateways", gateway.as_str())
}

/// Plans one declared network. Whatever the verdict on it is, intents that somebody deleted end.
pub fn plan_network(view: &ControlView, name: &NetworkName, network: &NetworkView, now: &Now) -> Plan {
    let mut plan = judge_network(view, name, network, now);
    let going: Vec<GatewayName> = plan.deletes.iter().map(|delete| delete.gateway.clone()).collect();
    plan.deletes.extend(released(view, name, &going));
    plan
}

fn judge_network(view: &ControlView, name: &NetworkName, network: &NetworkView, now: &Now) -> Plan {
    let valid = match validate::validate(view, &network.spec) {
        Ok(valid) => valid,
        Err(validate::Fault::Invalid(reason)) => return invalid(network, &reason, now),
        Err(validate::Fault::Unknown(why)) => {
            return Plan { report: Report { unknown: Some(why), ..Report::default() }, ..Plan::default() };
        }
    };
    let members = members::resolve(view, name, network, &valid, now);
    let target = match phase::target(&valid, &members, view) {
        Ok(target) => target,
        Err(reason) => return invalid(network, &reason, now),
    };
    let context = phase::Context { view, name, network, valid: &valid, members: &members, now };
    let outcome = phase::advance(&context, target);
    let wanted = intents::publish(&context, &outcome.stage);
    let mut plan = Plan { report: outcome.report.clone(), ..Plan::default() };
    write_intents(view, name, wanted, &mut plan);
    let done = intents::finished_leavers(&context, &outcome.stage);
    plan.deletes = done.iter().filter_map(|gateway| delete(view, name, gateway)).collect();
    let status = report::status(&context, &outcome, &done, &plan.report.waits);
    if status != network.status {
        plan.status = Some((status, network.meta.clone()));
    }
    plan
}

/// What stands is left alone; only the verdict is written.
fn invalid(network: &NetworkView, reason: &str, now: &Now) -> Plan {
    let status = report::invalid(network, reason, now);
    let changed = status != network.status;
    Plan { status: changed.then(|| (status, network.meta.clone())), ..Plan::default() }
}

fn write_intents(view: &ControlView, name: &NetworkName, wanted: Vec<Intent>, plan: &mut Plan) {
    for intent in wanted {
        let standing = view.intents.get(&(name.clone(), intent.gateway.clone()));
        match standing {
            Some(standing) if !standing.managed => {
                let object = intent.object_name();
                plan.report.waits.push(format!("{object} was written by somebody else and is left alone"));
            }
            Some(standing) if standing.deleting.is_some() => {
                let object = intent.object_name();
                plan.report.waits.push(format!(
                    "{object} was deleted by somebody: {} to tear down its links of it first",
                    intent.gateway
                ));
            }
            Some(standing) if standing.intent == intent => {}
            Some(standing) => {
                plan.intents.push(IntentWrite { intent, expected: Some(standing.meta.clone()) });
            }
            None if is_unreadable(view, "workersliceconfigs", &intent.object_name()) => {
                plan.report.waits.push(format!("{} can't be read and is left alone", intent.object_name()));
            }
            None => plan.intents.push(IntentWrite { intent, expected: None }),
        }
    }
}

fn delete(view: &ControlView, network: &NetworkName, gateway: &GatewayName) -> Option<IntentDelete> {
    let standing =
        view.intents.get(&(network.clone(), gateway.clone())).filter(|standing| standing.managed)?;
    let overdue = !intents::is_torn_down(standing) && !is_gone(view, gateway);
    let (network, gateway) = (network.clone(), gateway.clone());
    Some(IntentDelete { network, gateway, expected: standing.meta.clone(), overdue })
}

/// Intents that somebody deleted and that nobody waits for any more, besides those that go anyway.
fn released(view: &ControlView, name: &NetworkName, going: &[GatewayName]) -> Vec<IntentDelete> {
    let released = view.intents.iter().filter(|((network, gateway), standing)| {
        network == name && !going.contains(gateway) && intents::is_released(standing)
    });
    released.filter_map(|((_, gateway), _)| delete(view, name, gateway)).collect()
}

/// Networks that are no longer declared: every intent becomes a teardown, and goes when its worker has confirmed it.
fn remove_deleted(view: &ControlView) -> BTreeMap<NetworkName, Plan> {
    let left = view.intents.iter().filter(|(_, standing)| standing.managed);
    let names: BTreeSet<&NetworkName> = left
        .map(|((network, _), _)| network)
        .filter(|name| {
            !view.networks.contains_key(*name) && !is_unreadable(view, "gatewaynetworks", name.as_str())
        })
        .collect();
    let mut plans = BTreeMap::new();
    for name in names {
        let mut plan = Plan::default();
        for ((_, gateway), standing) in view.intents.iter().filter(|((network, _), _)| network == name) {
            let gone = is_gone(view, gateway);
            if intents::is_torn_down(standing) || intents::is_released(standing) || gone {
                plan.deletes.extend(delete(view, name, gateway));
            } else {
                plan.report
                    .waits
                    .push(format!("{gateway} to tear down its links of the deleted network {name}"));
                write_intents(view, name, vec![standing.intent.teardown()], &mut plan);
            }
        }
        plans.insert(name.clone(), plan);
    }
    plans
}
