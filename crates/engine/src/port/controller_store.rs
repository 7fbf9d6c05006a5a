//! The controller's side of the control store. It refuses writes without a precondition.

use std::{
    collections::{BTreeMap, BTreeSet},
    future::Future,
    time::Duration,
};

use crate::{
    Gateway, GatewayName, Intent, Meta, NetworkName, NetworkSpec, NetworkStatus, Unreadable, WorkerStatus,
};

use super::{Fault, Written};

/// Everything the controller reads, from one consistent moment.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ControlView {
    /// All gateways.
    pub gateways: BTreeMap<GatewayName, Gateway>,
    /// All networks.
    pub networks: BTreeMap<NetworkName, NetworkView>,
    /// All intents with what their workers say of them, by object name.
    pub intents: BTreeMap<(NetworkName, GatewayName), IntentView>,
    /// Objects that are there and could not be read.
    pub unreadable: Vec<Unreadable>,
    /// Traces that networks name, as written: for the spans of passes. No decision looks at them.
    pub traces: BTreeSet<String>,
}

/// A network.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NetworkView {
    /// Identity and versions.
    pub meta: Meta,
    /// What is declared.
    pub spec: NetworkSpec,
    /// What the controller wrote last.
    pub status: NetworkStatus,
}

/// An intent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct IntentView {
    /// Identity and versions.
    pub meta: Meta,
    /// The content; of one that is being deleted what its worker is told: a teardown.
    pub intent: Intent,
    /// What the worker says.
    pub status: WorkerStatus,
    /// Whether a controller of ours wrote it; others' intents are left alone.
    pub managed: bool,
    /// How long ago somebody deleted it, where it stays until its worker has no link of it any more.
    pub deleting: Option<Duration>,
}

/// Reads and writes of the controller.
pub trait ControllerStore: Send + Sync {
    /// Why a call failed.
    type Error: Fault;

    /// Reads everything. An error means unknown: nothing may be concluded.
    fn read(&self) -> impl Future<Output = Result<ControlView, Self::Error>> + Send;

    /// Writes a network's status if the network still has `expected`'s UID and resource version.
    ///
    /// # Errors
    /// A changed or missing network is a conflict: the pass ends.
    fn write_network_status(
        &self,
        network: &NetworkName,
        status: &NetworkStatus,
        expected: &Meta,
    ) -> impl Future<Output = Result<Written, Self::Error>> + Send;

    /// Writes an intent. `expected`: the version planned from; `None`: it must not exist yet.
    ///
    /// # Errors
    /// A changed object is a conflict.
    fn write_intent(
        &self,
        intent: &Intent,
        expected: Option<&Meta>,
    ) -> impl Future<Output = Result<Written, Self::Error>> + Send;

    /// Deletes an intent that still has `expected`'s UID, and lets go of it. A missing one is no error.
    fn delete_intent(
        &self,
        network: &NetworkName,
        gateway: &GatewayName,
        expected: &Meta,
    ) -> impl Future<Output = Result<Written, Self::Error>> + Send;

    /// Lets a gateway's worker read and answer its intents of these networks, besides those that it could read before.
    /// A store that has no rights to give does nothing.
    fn grant(
        &self,
        gateway: &GatewayName,
        networks: &BTreeSet<NetworkName>,
    ) -> impl Future<Output = Result<Written, Self::Error>> + Send {
        let _ = (gateway, networks);
        std::future::ready(Ok(Written::Same))
    }

    /// Writes the controller's part of a gateway's status: its networks.
    fn write_gateway_networks(
        &self,
        gateway: &GatewayName,
        networks: &BTreeMap<NetworkName, Option<std::net::IpAddr>>,
    ) -> impl Future<Output = Result<Written, Self::Error>> + Send;
}
