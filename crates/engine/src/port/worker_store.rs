//! A worker's side of the control store. It refuses to list intents of others.

use std::{
    collections::{BTreeMap, BTreeSet},
    future::Future,
};

use crate::{Gateway, GatewayFacts, GatewayName, Intent, NetworkName, Stored, Unreadable, WorkerStatus};

use super::{Fault, Written};

/// Everything a worker reads.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct WorkerView {
    /// All gateways, its own among them (or not: then it removes nothing).
    pub gateways: BTreeMap<GatewayName, Gateway>,
    /// Intents for this gateway by network, with the status the worker wrote last.
    pub intents: BTreeMap<NetworkName, (Stored<Intent>, WorkerStatus)>,
    /// Objects that are there and could not be read.
    pub unreadable: Vec<Unreadable>,
    /// Traces that intents name, as written: for the spans of passes. No decision looks at them.
    pub traces: BTreeSet<String>,
}

/// Reads and writes of a worker at the control store.
pub trait WorkerStore: Send + Sync {
    /// Why a call failed.
    type Error: Fault;

    /// Reads everything that `gateway`'s worker may read. An error means unknown.
    fn read(&self, gateway: &GatewayName) -> impl Future<Output = Result<WorkerView, Self::Error>> + Send;

    /// Says of which networks the worker has records: their intents are read even if the own Gateway does not list
    /// them. A store that reads all intents of a gateway anyway does not need to know.
    fn follow(&self, networks: BTreeSet<NetworkName>) {
        drop(networks);
    }

    /// As [`WorkerStore::read`], with the intents of `networks` asked for anew from the place that decides, so that a
    /// generation lower than one seen before is a restored store and no late answer.
    fn reread(
        &self,
        gateway: &GatewayName,
        networks: &BTreeSet<NetworkName>,
    ) -> impl Future<Output = Result<WorkerView, Self::Error>> + Send {
        let _ = networks;
        self.read(gateway)
    }

    /// Publishes the facts of the worker's own gateway.
    fn write_gateway_facts(
        &self,
        gateway: &GatewayName,
        facts: &GatewayFacts,
    ) -> impl Future<Output = Result<Written, Self::Error>> + Send;

    /// Writes what the worker says of the intent of `network`, if the object still has that UID.
    fn write_intent_status(
        &self,
        gateway: &GatewayName,
        network: &NetworkName,
        status: &WorkerStatus,
        expected: &crate::Meta,
    ) -> impl Future<Output = Result<Written, Self::Error>> + Send;
}
