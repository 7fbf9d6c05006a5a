//! Verb 5, report: what the links are worth, published where its meaning changed; then what is probed and looked up from
//! now on. It refuses to publish for a gateway that another worker has taken over.

use std::collections::BTreeMap;

use spanwire_engine::{
    Gateway, Meta, NetworkName, WorkerStatus,
    port::{LocalStore, WorkerStore, WorkerView},
    worker::{self, Desired, Host, Statuses},
};

use super::{Facts, Probes, STORE_LIMIT, Worker, apply::Applied, facts, identity::Standing, targets, told};
use crate::{
    driver::Outcome,
    fault::{Noted, limited},
    ledger::{Ledger, Target},
};

/// Publishes, and says what the pass came to.
pub async fn report<C: WorkerStore, L: LocalStore, D: Facts, P: Probes>(
    worker: &mut Worker<C, L, D, P>,
    applied: Applied,
) -> Outcome {
    let previous = previous(&applied, &worker.said);
    let desired = &applied.validated.desired;
    let fetched = &applied.validated.fetched;
    let statuses =
        worker::report(desired, &fetched.recorded, &fetched.host, &fetched.now, &previous, &applied.failed);
    tell(worker, &previous, &statuses);
    worker.ports.probes.set_targets(targets::targets(desired, &fetched.recorded));
    worker.ports.resolver.want(&names(desired, &fetched.host));
    worker.measures.note(&applied);
    let mut outcome = begin(&applied, &statuses);
    if let Ok(view) = &fetched.view {
        publish(worker, &applied, view, &statuses, &mut outcome).await;
    }
    worker.said = statuses.intents;
    outcome
}

/// Tells what came and went of links since the last report; after a start, since what stands in the control store.
fn tell<C, L: LocalStore, D, P>(
    worker: &Worker<C, L, D, P>,
    previous: &BTreeMap<NetworkName, WorkerStatus>,
    statuses: &Statuses,
) {
    for (network, after) in &statuses.intents {
        let Some(before) = worker.said.get(network).or_else(|| previous.get(network)) else { continue };
        for turn in told::turns(network, before, after) {
            if let Some(uid) = worker.ports.local.uid(&turn.link) {
                worker.events.tell(turn.happening(uid));
            }
        }
    }
}

/// The statuses that stand in the control store; where it can't be read, those reported last.
fn previous(
    applied: &Applied,
    said: &BTreeMap<NetworkName, WorkerStatus>,
) -> BTreeMap<NetworkName, WorkerStatus> {
    match &applied.validated.fetched.view {
        Ok(view) => view.intents.iter().map(|(name, (_, status))| (name.clone(), status.clone())).collect(),
        Err(_) => said.clone(),
    }
}

/// Names that are dialled, and whether a link that dials the name is not connected.
fn names(desired: &Desired, host: &Host) -> BTreeMap<String, bool> {
    let mut names = BTreeMap::new();
    for (network, wanted) in &desired.networks {
        for ((peer, role), link) in &wanted.links {
            let Some(endpoint) = &link.endpoint else { continue };
            let id = spanwire_engine::LinkId { network: network.clone(), peer: peer.clone(), role: *role };
            let down = !host.evidence.get(&id).is_some_and(|evidence| evidence.is_connected());
            *names.entry(endpoint.host.clone()).or_default() |= down;
        }
    }
    names
}

fn begin(applied: &Applied, statuses: &Statuses) -> Outcome {
    let fetched = &applied.validated.fetched;
    let mut waits = statuses.waits.clone();
    match &applied.validated.standing {
        Standing::TakenOver { message } => waits.push(message.clone()),
        Standing::Unknown if fetched.view.is_ok() => waits.push(format!(
            "GatewayNotFound: there is no Gateway {} in the control store. Nothing is removed; create it, or check \
             --control and --gateway",
            applied.validated.desired.me
        )),
        Standing::Unknown | Standing::Acts { .. } => {}
    }
    let worker::Report { kept, held, strangers, next_due } = &applied.report;
    waits.extend(kept.iter().map(|(network, why)| format!("{network}: nothing is removed: {why}")));
    for (device, _) in strangers {
        tracing::warn!(%device, "a peer that nobody asked for was found on our device and is removed");
    }
    tracing::debug!(held = held.len(), "links that stay until others are connected");
    let faults = fetched.faults().into_iter().chain(applied.faults.clone()).collect();
    Outcome { ledger: applied.ledger.clone(), waits, faults, due: *next_due }
}

/// Publishes the facts of the gateway, then each network's status on its own.
async fn publish<C: WorkerStore, L, D: Facts, P>(
    worker: &Worker<C, L, D, P>,
    applied: &Applied,
    view: &WorkerView,
    statuses: &Statuses,
    outcome: &mut Outcome,
) {
    let Standing::Acts { generation } = applied.validated.standing else { return };
    let Some(own) = view.gateways.get(&worker.me) else { return };
    publish_facts(worker, applied, own, generation, statuses, outcome).await;
    for (network, status) in &statuses.intents {
        let Some((stored, before)) = view.intents.get(network) else { continue };
        if before != status {
            let (Outcome { ledger, faults, .. }, meta) = (&mut *outcome, &stored.meta);
            publish_status(worker, network, status, meta, (ledger, faults)).await;
        }
    }
}

async fn publish_facts<C: WorkerStore, L, D: Facts, P>(
    worker: &Worker<C, L, D, P>,
    applied: &Applied,
    own: &Gateway,
    generation: i64,
    statuses: &Statuses,
    outcome: &mut Outcome,
) {
    let key = (&worker.identity.public, generation);
    let host = worker.ports.devices.host_facts().await;
    let facts = facts::facts(own, key, host, statuses.listeners.clone(), &outcome.faults, applied.now());
    if facts == own.facts {
        return;
    }
    let call = worker.ports.control.write_gateway_facts(&worker.me, &facts);
    match limited("cannot publish the facts of this gateway", STORE_LIMIT, call).await {
        Ok(written) => {
            outcome.ledger.note(Target::Status, written, || format!("facts of gateway {}", worker.me));
        }
        Err(fault) => outcome.faults.push(fault),
    }
}

async fn publish_status<C: WorkerStore, L, D, P>(
    worker: &Worker<C, L, D, P>,
    network: &NetworkName,
    status: &WorkerStatus,
    expected: &Meta,
    (ledger, faults): (&mut Ledger, &mut Vec<Noted>),
) {
    let call = worker.ports.control.write_intent_status(&worker.me, network, status, expected);
    let what = format!("cannot publish the status of {network}");
    match limited(&what, STORE_LIMIT, call).await {
        Ok(written) => ledger.note(Target::Status, written, || format!("status of {network}.{}", worker.me)),
        Err(fault) => faults.push(fault),
    }
}
