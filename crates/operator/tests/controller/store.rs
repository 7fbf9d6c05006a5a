//! A control store in memory for the controller: preconditions, generations and versions as an API server has them. It
//! refuses every write whose precondition does not hold.

use std::{
    collections::BTreeMap,
    net::IpAddr,
    sync::{Arc, Mutex},
};

use spanwire_engine::{
    Class, GatewayName, Intent, Meta, NetworkName, NetworkStatus, Uid, WorkerStatus,
    port::{ControlView, ControllerStore, Fault, Written, controller_store::IntentView},
};

/// Why the twin refused.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Refused {
    #[error("the object was changed by another")]
    Conflict,
    #[error("the store does not answer")]
    Down,
}

impl Fault for Refused {
    fn class(&self) -> Class {
        match self {
            Refused::Conflict | Refused::Down => Class::Retry,
        }
    }
}

/// Something that happens just before the next intent is written.
type Meddler = Box<dyn FnOnce(&mut ControlView) + Send>;

/// The store.
#[derive(Clone, Default)]
pub(crate) struct ControlTwin(pub(crate) Arc<Mutex<State>>);

/// Its content.
#[derive(Default)]
pub(crate) struct State {
    pub(crate) view: ControlView,
    pub(crate) down: bool,
    pub(crate) before_intent: Option<Meddler>,
    /// Every write, in order.
    pub(crate) log: Vec<String>,
    version: u64,
}

impl State {
    fn next(&mut self) -> String {
        self.version += 1;
        format!("v{}", self.version)
    }

    fn up(&self) -> Result<(), Refused> {
        if self.down { Err(Refused::Down) } else { Ok(()) }
    }
}

fn same(standing: &Meta, expected: &Meta) -> bool {
    standing.uid == expected.uid && standing.resource_version == expected.resource_version
}

impl ControllerStore for ControlTwin {
    type Error = Refused;

    async fn read(&self) -> Result<ControlView, Refused> {
        let state = self.0.lock().unwrap();
        state.up()?;
        Ok(state.view.clone())
    }

    async fn write_network_status(
        &self,
        network: &NetworkName,
        status: &NetworkStatus,
        expected: &Meta,
    ) -> Result<Written, Refused> {
        let mut state = self.0.lock().unwrap();
        state.up()?;
        let version = state.next();
        let standing = state.view.networks.get_mut(network).ok_or(Refused::Conflict)?;
        if !same(&standing.meta, expected) {
            return Err(Refused::Conflict);
        }
        (standing.status, standing.meta.resource_version) = (status.clone(), version);
        state.log.push(format!("status {network}"));
        Ok(Written::Changed)
    }

    async fn write_intent(&self, intent: &Intent, expected: Option<&Meta>) -> Result<Written, Refused> {
        let mut state = self.0.lock().unwrap();
        state.up()?;
        if let Some(meddler) = state.before_intent.take() {
            meddler(&mut state.view);
        }
        let version = state.next();
        let key = (intent.network.clone(), intent.gateway.clone());
        match (state.view.intents.get_mut(&key), expected) {
            (None, None) => {
                let meta = Meta { uid: Uid(version.clone()), generation: 1, resource_version: version };
                let view = IntentView {
                    meta,
                    intent: intent.clone(),
                    status: WorkerStatus::default(),
                    managed: true,
                    deleting: None,
                };
                state.view.intents.insert(key, view);
            }
            (Some(standing), Some(expected)) if same(&standing.meta, expected) => {
                standing.intent = intent.clone();
                standing.meta.generation += 1;
                standing.meta.resource_version = version;
            }
            (None, Some(_)) | (Some(_), None | Some(_)) => return Err(Refused::Conflict),
        }
        state.log.push(format!("intent {}", intent.object_name()));
        Ok(Written::Changed)
    }

    async fn delete_intent(
        &self,
        network: &NetworkName,
        gateway: &GatewayName,
        expected: &Meta,
    ) -> Result<Written, Refused> {
        let mut state = self.0.lock().unwrap();
        state.up()?;
        let key = (network.clone(), gateway.clone());
        if state.view.intents.get(&key).is_some_and(|standing| standing.meta.uid == expected.uid) {
            state.view.intents.remove(&key);
            state.log.push(format!("delete {network}.{gateway}"));
        }
        Ok(Written::Changed)
    }

    async fn write_gateway_networks(
        &self,
        gateway: &GatewayName,
        networks: &BTreeMap<NetworkName, Option<IpAddr>>,
    ) -> Result<Written, Refused> {
        let mut state = self.0.lock().unwrap();
        state.up()?;
        let standing = state.view.gateways.get_mut(gateway).ok_or(Refused::Conflict)?;
        standing.networks = networks.clone();
        state.log.push(format!("networks {gateway}"));
        Ok(Written::Changed)
    }
}
