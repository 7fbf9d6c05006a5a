//! Stores in memory for a worker: they write nothing that is the same. They refuse a status for an object that changed.

use std::{
    future::pending,
    sync::{Arc, Mutex},
};

use spanwire_engine::{
    GatewayFacts, GatewayName, Meta, NetworkName, WorkerStatus,
    port::{LocalStore, WorkerStore, WorkerView, Written},
    worker::{RecordStep, Recorded},
};

use super::host::{Disturbance, Refused};

/// The control store; `None` while it can't be read.
#[derive(Debug, Clone, Default)]
pub(crate) struct ControlTwin(pub(crate) Arc<Mutex<Option<WorkerView>>>);

impl WorkerStore for ControlTwin {
    type Error = Refused;

    async fn read(&self, _gateway: &GatewayName) -> Result<WorkerView, Refused> {
        self.0.lock().unwrap().clone().ok_or(Refused)
    }

    async fn write_gateway_facts(
        &self,
        gateway: &GatewayName,
        facts: &GatewayFacts,
    ) -> Result<Written, Refused> {
        let mut view = self.0.lock().unwrap();
        let own = view.as_mut().and_then(|view| view.gateways.get_mut(gateway)).ok_or(Refused)?;
        Ok(replace(&mut own.facts, facts))
    }

    async fn write_intent_status(
        &self,
        _gateway: &GatewayName,
        network: &NetworkName,
        status: &WorkerStatus,
        expected: &Meta,
    ) -> Result<Written, Refused> {
        let mut view = self.0.lock().unwrap();
        let (stored, place) = view.as_mut().and_then(|view| view.intents.get_mut(network)).ok_or(Refused)?;
        if stored.meta.uid == expected.uid { Ok(replace(place, status)) } else { Err(Refused) }
    }
}

/// The records.
#[derive(Debug, Clone)]
pub(crate) struct LocalTwin {
    /// What is recorded.
    pub(crate) recorded: Arc<Mutex<Recorded>>,
    /// How calls are disturbed.
    pub(crate) disturbance: Arc<Mutex<Disturbance>>,
}

impl LocalStore for LocalTwin {
    type Error = Refused;

    async fn read(&self) -> Result<Recorded, Refused> {
        if self.disturbance.lock().unwrap().unreadable {
            return Err(Refused);
        }
        Ok(self.recorded.lock().unwrap().clone())
    }

    async fn apply(&self, step: &RecordStep) -> Result<Written, Refused> {
        let answer = self.disturbance.lock().unwrap().call(&format!("{step:?}"));
        let Some(answer) = answer else { return pending().await };
        answer?;
        let mut recorded = self.recorded.lock().unwrap();
        let before = recorded.clone();
        match step {
            RecordStep::Intent(applied) => {
                recorded.intents.insert(applied.intent.network.clone(), (**applied).clone());
            }
            RecordStep::Link(link) => {
                recorded.links.insert(link.id.clone(), (**link).clone());
            }
            RecordStep::ForgetLink(id) => {
                recorded.links.remove(id);
            }
            RecordStep::ForgetIntent(network) => {
                recorded.intents.remove(network);
            }
        }
        Ok(if *recorded == before { Written::Same } else { Written::Changed })
    }
}

fn replace<T: PartialEq + Clone>(place: &mut T, value: &T) -> Written {
    if place == value {
        return Written::Same;
    }
    *place = value.clone();
    Written::Changed
}
