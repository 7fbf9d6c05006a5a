//! Verb 4, apply: statuses first, then addresses, then intents, each under its precondition. It refuses to publish an
//! intent of a phase that is not recorded, or over a change that it has not seen.

use std::{
    collections::{BTreeMap, BTreeSet},
    net::IpAddr,
};

use spanwire_engine::{
    Change, GatewayName, Meta, NetworkName,
    controller::{IntentDelete, IntentWrite, Plan as NetworkPlan, Plans, Report},
    port::{ControlView, ControllerStore},
};

use super::{STORE_LIMIT, plan::Plan, validate::Validated};
use crate::{
    fault::{Noted, limited},
    ledger::{Ledger, Target},
};

/// How often a write of an intent is tried when only its status moved under it.
const TRIES: u32 = 4;

/// What came of a plan.
#[derive(Debug)]
pub struct Applied {
    /// What each network waits for.
    pub reports: BTreeMap<NetworkName, Report>,
    /// What was written.
    pub ledger: Ledger,
    /// Everything that failed.
    pub faults: Vec<Noted>,
}

/// Writes what was planned. A network whose write fails ends there; the others go on.
pub async fn apply<S: ControllerStore>(store: &S, plan: Plan) -> Applied {
    let Plan { validated: Validated { fetched, faults }, plans: Plans { networks, gateways } } = plan;
    let mut writer = Writer { store, ledger: Ledger::default(), faults, ended: BTreeSet::new() };
    for (name, plan) in &networks {
        writer.status(name, plan).await;
    }
    for (gateway, entries) in &gateways {
        writer.addresses(gateway, entries).await;
    }
    for (name, plan) in &networks {
        let planned = plan.status.as_ref().map(|(status, _)| status.change.as_ref());
        let stood = || fetched.view.networks.get(name).and_then(|network| network.status.change.as_ref());
        writer.intents(name, plan, planned.unwrap_or_else(stood)).await;
    }
    let Writer { store: _, ledger, faults, ended: _ } = writer;
    let reports = networks.into_iter().map(|(name, plan)| (name, plan.report)).collect();
    Applied { reports, ledger, faults }
}

struct Writer<'a, S> {
    store: &'a S,
    ledger: Ledger,
    faults: Vec<Noted>,
    /// Networks of which nothing more is written in this pass.
    ended: BTreeSet<NetworkName>,
}

impl<S: ControllerStore> Writer<'_, S> {
    fn end(&mut self, network: &NetworkName, fault: Noted) {
        self.ended.insert(network.clone());
        self.faults.push(fault);
    }

    async fn status(&mut self, network: &NetworkName, plan: &NetworkPlan) {
        let Some((status, expected)) = &plan.status else { return };
        let what = format!("cannot write the status of network {network}");
        let call = self.store.write_network_status(network, status, expected);
        match limited(&what, STORE_LIMIT, call).await {
            Ok(written) => {
                self.ledger.note(Target::Status, written, || format!("status of network {network}"))
            }
            Err(fault) => self.end(network, fault),
        }
    }

    /// An address is published only once the status that reserves it stands.
    async fn addresses(&mut self, gateway: &GatewayName, entries: &BTreeMap<NetworkName, Option<IpAddr>>) {
        if entries.keys().any(|network| self.ended.contains(network)) {
            return;
        }
        let what = format!("cannot write the networks of gateway {gateway}");
        let call = self.store.write_gateway_networks(gateway, entries);
        match limited(&what, STORE_LIMIT, call).await {
            Ok(written) => {
                self.ledger.note(Target::Status, written, || format!("networks of gateway {gateway}"))
            }
            Err(fault) => self.faults.push(fault),
        }
    }

    async fn intents(&mut self, network: &NetworkName, plan: &NetworkPlan, change: Option<&Change>) {
        let NetworkPlan { status: _, intents, deletes, report: _ } = plan;
        for write in intents {
            if self.ended.contains(network) {
                return;
            }
            if let Err(fault) = self.intent(write, change).await {
                self.end(network, fault);
            }
        }
        for delete in deletes {
            if !self.ended.contains(network) {
                self.delete(delete).await;
            }
        }
    }

    /// Writes an intent. If something moved under it, looks again: only where the change is still the one planned from
    /// and the spec untouched (a worker wrote its status) is it tried again.
    async fn intent(&mut self, write: &IntentWrite, change: Option<&Change>) -> Result<(), Noted> {
        let IntentWrite { intent, expected } = write;
        let what = format!("cannot write the intent {}", intent.object_name());
        let mut standing = expected.clone();
        for attempt in 1.. {
            let call = self.store.write_intent(intent, standing.as_ref());
            match limited(&what, STORE_LIMIT, call).await {
                Ok(written) => {
                    self.ledger.note(Target::Intent, written, || format!("intent {}", intent.object_name()));
                    return Ok(());
                }
                Err(fault) if attempt >= TRIES || fault.late => return Err(fault),
                Err(fault) => match self.unmoved(write, change).await {
                    Some(meta) if meta != standing => standing = meta,
                    Some(_) | None => return Err(fault),
                },
            }
        }
        Ok(())
    }

    /// The version that stands now, if the plan still holds for it; `None`: it does not, or can't be told.
    async fn unmoved(&self, write: &IntentWrite, change: Option<&Change>) -> Option<Option<Meta>> {
        let view = limited("cannot look again", STORE_LIMIT, self.store.read()).await.ok()?;
        unmoved_in(&view, write, change)
    }

    async fn delete(&mut self, delete: &IntentDelete) {
        let IntentDelete { network, gateway, expected } = delete;
        let what = format!("cannot delete the intent {network}.{gateway}");
        let call = self.store.delete_intent(network, gateway, expected);
        match limited(&what, STORE_LIMIT, call).await {
            Ok(written) => {
                self.ledger
                    .note(Target::Intent, written, || format!("deletion of intent {network}.{gateway}"));
            }
            Err(fault) => self.faults.push(fault),
        }
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
