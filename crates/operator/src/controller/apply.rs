//! Verb 4, apply: statuses first, then rights, addresses and intents, each under its precondition. It refuses to publish an
//! intent of a phase that is not recorded, or over a change that it has not seen.

use std::{
    collections::{BTreeMap, BTreeSet},
    future::Future,
    net::IpAddr,
    sync::{Mutex, MutexGuard, PoisonError},
};

use futures::{StreamExt as _, stream};
use spanwire_engine::{
    Change, GatewayName, Meta, NetworkName,
    controller::{IntentDelete, IntentWrite, Plan as NetworkPlan, Plans, Report},
    port::{ControlView, ControllerStore, Written},
};

use super::{STORE_LIMIT, plan::Plan, told, validate::Validated};
use crate::{
    events::Events,
    fault::{Noted, limited},
    ledger::{Ledger, Target},
    metrics::changes::Standing,
};

/// How often a write of an intent is tried when only its status moved under it.
const TRIES: u32 = 4;
/// How many writes are under way at once.
const TOGETHER: usize = 8;

/// What came of a plan.
#[derive(Debug)]
pub struct Applied {
    /// What each network waits for.
    pub reports: BTreeMap<NetworkName, Report>,
    /// The networks with the statuses that stand now.
    pub standing: BTreeMap<NetworkName, Standing>,
    /// What was written.
    pub ledger: Ledger,
    /// Everything that failed.
    pub faults: Vec<Noted>,
}

/// Writes what was planned. A network whose write fails ends there; the others go on. Writes that do not depend on one
/// another are under way together.
pub async fn apply<S: ControllerStore>(store: &S, events: &Events, plan: Plan) -> Applied {
    let Plan { validated: Validated { fetched, faults }, plans: Plans { networks, gateways } } = plan;
    let writer = Writer { store, events, view: &fetched.view, ended: Mutex::default() };
    let mut done = Done { ledger: Ledger::default(), faults };
    let mut standing = BTreeMap::new();
    for (name, plan) in &networks {
        let tried = writer.status(name, plan).await;
        let status = match (&tried, &plan.status) {
            (Some(Ok(_)), Some((status, _))) => Some(status),
            _ => fetched.view.networks.get(name).map(|network| &network.status),
        };
        standing.extend(status.map(|status| (name.clone(), Standing::of(status))));
        done.take(tried);
    }
    let rights = fetched.view.gateways.iter().map(|(gateway, standing)| {
        let entries = gateways.get(gateway).unwrap_or(&standing.networks);
        writer.rights(gateway, entries)
    });
    done.take_all(rights).await;
    done.take_all(gateways.iter().map(|(gateway, entries)| writer.addresses(gateway, entries))).await;
    for (name, plan) in &networks {
        let planned = plan.status.as_ref().map(|(status, _)| status.change.as_ref());
        let stood = || fetched.view.networks.get(name).and_then(|network| network.status.change.as_ref());
        let change = planned.unwrap_or_else(stood);
        done.take_all(plan.intents.iter().map(|write| writer.intent(name, write, change))).await;
        done.take_all(plan.deletes.iter().map(|delete| writer.delete(delete))).await;
    }
    let Done { ledger, faults } = done;
    let reports = networks.into_iter().map(|(name, plan)| (name, plan.report)).collect();
    Applied { reports, standing, ledger, faults }
}

/// What came of one write; `None`: it was not tried, because one before it failed.
type Tried = Option<Result<(Target, Written, String), Noted>>;

/// What came of all writes so far.
struct Done {
    ledger: Ledger,
    faults: Vec<Noted>,
}

impl Done {
    fn take(&mut self, tried: Tried) {
        match tried {
            Some(Ok((target, written, what))) => self.ledger.note(target, written, || what),
            Some(Err(fault)) => self.faults.push(fault),
            None => {}
        }
    }

    async fn take_all(&mut self, writes: impl Iterator<Item = impl Future<Output = Tried>>) {
        let mut tried = stream::iter(writes).buffered(TOGETHER);
        while let Some(one) = tried.next().await {
            self.take(one);
        }
    }
}

struct Writer<'a, S> {
    store: &'a S,
    events: &'a Events,
    view: &'a ControlView,
    /// What nothing more is written of in this pass.
    ended: Mutex<Ended>,
}

#[derive(Default)]
struct Ended {
    networks: BTreeSet<NetworkName>,
    /// A store that gives no rights to one gateway gives none to the others.
    rights: bool,
}

impl<S: ControllerStore> Writer<'_, S> {
    fn ended(&self) -> MutexGuard<'_, Ended> {
        self.ended.lock().unwrap_or_else(PoisonError::into_inner)
    }

    async fn status(&self, network: &NetworkName, plan: &NetworkPlan) -> Tried {
        let (status, expected) = plan.status.as_ref()?;
        let what = format!("cannot write the status of network {network}");
        let call = self.store.write_network_status(network, status, expected);
        let tried = limited(&what, STORE_LIMIT, call).await;
        match (&tried, self.view.networks.get(network)) {
            (Err(_), _) => drop(self.ended().networks.insert(network.clone())),
            (Ok(Written::Changed), Some(before)) => {
                told::of_status(network, before, plan).into_iter().for_each(|told| self.events.tell(told));
            }
            (Ok(Written::Changed | Written::Same), _) => {}
        }
        Some(tried.map(|written| (Target::Status, written, format!("status of network {network}"))))
    }

    /// A worker may read its intents before it learns their names.
    async fn rights(&self, gateway: &GatewayName, entries: &BTreeMap<NetworkName, Option<IpAddr>>) -> Tried {
        if self.ended().rights {
            return None;
        }
        let networks = entries.keys().cloned().collect();
        let what = format!("cannot let the worker of {gateway} read its intents");
        let tried = limited(&what, STORE_LIMIT, self.store.grant(gateway, &networks)).await;
        self.ended().rights |= tried.is_err();
        Some(tried.map(|written| (Target::Rights, written, format!("rights of the worker of {gateway}"))))
    }

    /// An address is published only once the status that reserves it stands.
    async fn addresses(
        &self,
        gateway: &GatewayName,
        entries: &BTreeMap<NetworkName, Option<IpAddr>>,
    ) -> Tried {
        if entries.keys().any(|network| self.ended().networks.contains(network)) {
            return None;
        }
        let what = format!("cannot write the networks of gateway {gateway}");
        let call = self.store.write_gateway_networks(gateway, entries);
        let tried = limited(&what, STORE_LIMIT, call).await;
        Some(tried.map(|written| (Target::Status, written, format!("networks of gateway {gateway}"))))
    }

    async fn intent(&self, network: &NetworkName, write: &IntentWrite, change: Option<&Change>) -> Tried {
        if self.ended().networks.contains(network) {
            return None;
        }
        let tried = self.write(write, change).await;
        if tried.is_err() {
            self.ended().networks.insert(network.clone());
        }
        Some(tried.map(|written| (Target::Intent, written, format!("intent {}", write.intent.object_name()))))
    }

    /// Writes an intent. If something moved under it, looks again: only where the change is still the one planned from
    /// and the spec untouched (a worker wrote its status) is it tried again.
    async fn write(&self, write: &IntentWrite, change: Option<&Change>) -> Result<Written, Noted> {
        let IntentWrite { intent, expected } = write;
        let what = format!("cannot write the intent {}", intent.object_name());
        let mut standing = expected.clone();
        let mut attempt = 1;
        loop {
            let call = self.store.write_intent(intent, standing.as_ref());
            let fault = match limited(&what, STORE_LIMIT, call).await {
                Err(fault) if attempt < TRIES && !fault.late => fault,
                tried => return tried,
            };
            match self.unmoved(write, change).await {
                Some(meta) if meta != standing => standing = meta,
                Some(_) | None => return Err(fault),
            }
            attempt += 1;
        }
    }

    /// The version that stands now, if the plan still holds for it; `None`: it does not, or can't be told.
    async fn unmoved(&self, write: &IntentWrite, change: Option<&Change>) -> Option<Option<Meta>> {
        let view = limited("cannot look again", STORE_LIMIT, self.store.read()).await.ok()?;
        unmoved_in(&view, write, change)
    }

    async fn delete(&self, delete: &IntentDelete) -> Tried {
        let IntentDelete { network, gateway, expected, overdue } = delete;
        if self.ended().networks.contains(network) {
            return None;
        }
        let what = format!("cannot delete the intent {network}.{gateway}");
        let call = self.store.delete_intent(network, gateway, expected);
        let tried = limited(&what, STORE_LIMIT, call).await;
        if *overdue && matches!(tried, Ok(Written::Changed)) {
            self.events.tell(told::of_deadline(delete, self.view.networks.get(network)));
        }
        Some(
            tried.map(|written| (Target::Intent, written, format!("deletion of intent {network}.{gateway}"))),
        )
    }
}

fn unmoved_in(view: &ControlView, write: &IntentWrite, change: Option<&Change>) -> Option<Option<Meta>> {
    let IntentWrite { intent, expected } = write;
    let network = view.networks.get(&intent.network);
    let change_now = network.and_then(|network| network.status.change.as_ref());
    let meta = view.intents.get(&(intent.network.clone(), intent.gateway.clone())).map(|it| it.meta.clone());
    let spec = |meta: &Option<Meta>| meta.as_ref().map(|meta| (meta.uid.clone(), meta.generation));
    (change_now == change && spec(&meta) == spec(expected)).then_some(meta)
}
