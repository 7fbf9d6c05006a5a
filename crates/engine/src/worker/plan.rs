//! The steps of one host, over all its networks: record, packet filter, devices and peers, routes, then removals, then
//! the filter without what went. It refuses a removal before the steps that make it safe.

mod network;
mod numbers;
mod record;

use std::{
    collections::{BTreeMap, BTreeSet},
    time::Duration,
};

use crate::{DeviceName, LinkId, LinkRole, NetworkName, Now, PublicKey, firewall::Firewall};

use super::{Desired, Host, HostStep, Recorded, Step, links::Links};

use numbers::Numbers;

/// What to do, and what is left undone.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
#[must_use]
pub struct Plan {
    /// Steps, to be applied in order.
    pub steps: Vec<Step>,
    /// What the plan leaves undone and what it waits for.
    pub report: Report,
}

/// What a plan leaves undone.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
#[must_use]
pub struct Report {
    /// Networks of which nothing is removed in this pass, with the reason.
    pub kept: BTreeMap<NetworkName, String>,
    /// Unwanted links that stay until others are connected, with those others.
    pub held: BTreeMap<LinkId, Vec<LinkId>>,
    /// Peers on our devices that nobody asked for and that this plan removes.
    pub strangers: Vec<(DeviceName, PublicKey)>,
    /// When a held link's time is over if nothing else happens.
    pub next_due: Option<Duration>,
}

/// Plans one host. Applying all steps and planning again gives no step.
pub fn plan(desired: &Desired, recorded: &Recorded, host: &Host, now: &Now) -> Plan {
    let mut numbers = Numbers::new(desired, recorded, host);
    let mut report = Report::default();
    let mut parts = Vec::new();
    for network in desired.networks.keys() {
        let Some(links) = Links::new(desired, network, recorded, host, &now.boot) else { continue };
        parts.push(network::plan(links, recorded, host, now, &mut numbers, &mut report));
    }
    let before = Firewall { networks: parts.iter_mut().filter_map(|part| part.firewall.take()).collect() };
    let after = without_removed(&before, &parts);
    let mut plan = Plan { steps: Vec::new(), report };
    let mut destructive = Vec::new();
    for part in &mut parts {
        plan.steps.append(&mut part.intent);
    }
    let known = parts.iter().all(|part| part.firewall_known);
    if known && digest(&before) != host.firewall {
        plan.steps.push(Step::Host(HostStep::Firewall(before)));
    }
    for mut part in parts {
        plan.steps.append(&mut part.constructive);
        destructive.append(&mut part.destructive);
    }
    plan.steps.append(&mut destructive);
    plan.steps.extend(after.filter(|_| known).map(|after| Step::Host(HostStep::Firewall(after))));
    if desired.networks.values().all(|network| network.keep.is_none()) {
        let spare = numbers.unclaimed_tables(host);
        plan.steps.extend(spare.into_iter().map(|table| Step::Host(HostStep::RemoveTable(table))));
    }
    plan
}

/// The filter without the devices that go; their names are unique on a host. `None`: none goes.
fn without_removed(before: &Firewall, parts: &[network::NetworkPlan]) -> Option<Firewall> {
    let staying: BTreeSet<_> = parts.iter().flat_map(|part| &part.staying).collect();
    let goes = |device: &(LinkRole, DeviceName)| !staying.contains(device);
    let devices = || before.networks.iter().flat_map(|network| &network.devices);
    devices().any(goes).then(|| {
        let mut networks = before.networks.clone();
        for network in &mut networks {
            network.devices.retain(|device| !goes(device));
        }
        networks.retain(|network| !network.devices.is_empty());
        Firewall { networks }
    })
}

/// What the host shows when this filter stands: nothing where there is nothing to filter.
fn digest(firewall: &Firewall) -> Option<String> {
    (!firewall.networks.is_empty()).then(|| firewall.digest())
}
