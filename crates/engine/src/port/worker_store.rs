//! A worker's side of the control store. It refuses to list intents of others.

use std::{collections::BTreeMap, future::Future};

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
}

/// Reads and writes of a worker at the control store.
pub trait WorkerStore: Send + Sync {
    /// Why a call failed.
    type Error: Fault;

    /// Reads everything that `gateway`'s worker may read. An error means unknown.
    fn read(&self, gateway: &GatewayName) -> impl Future<Output = Result<WorkerView, Self::Error>> + Send;

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
