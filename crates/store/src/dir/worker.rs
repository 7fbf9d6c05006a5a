//! A worker's side of a control directory. It refuses to read intents of other gateways, and to write anything but the
//! status of its own gateway and intents.

mod look;
mod write;

use std::{path::Path, sync::Arc};

use spanwire_api::{GatewaySpec, WorkerSliceConfigSpec};
use spanwire_engine::{
    GatewayFacts, GatewayName, Meta, NetworkName, WorkerStatus,
    port::{WorkerStore, WorkerView, Written},
};

use super::{
    Error, Watch,
    file::Pen,
    folder::Folder,
    root::{Root, blocking},
};

/// A worker's handle on a control directory.
#[derive(Debug, Clone)]
pub struct Worker(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    root: Root,
    gateways: Folder<GatewaySpec>,
    intents: Folder<WorkerSliceConfigSpec>,
}

impl Worker {
    /// Opens a directory that is there.
    ///
    /// # Errors
    /// [`Error::Root`] if it is missing or closed.
    pub fn open(path: impl AsRef<Path>) -> Result<Self, Error> {
        let path = path.as_ref();
        Ok(Self(Arc::new(Inner {
            root: Root::open(path, Pen::open())?,
            gateways: Folder::new(path),
            intents: Folder::new(path),
        })))
    }

    /// Watches the directory.
    ///
    /// # Errors
    /// [`Error::Watch`] if the system gives no watch.
    pub fn watch(&self) -> Result<Watch, Error> {
        Watch::of(&self.0.root)
    }

    /// Files written or removed by this handle.
    pub fn writes(&self) -> u64 {
        self.0.root.writes()
    }
}

impl WorkerStore for Worker {
    type Error = Error;

    async fn read(&self, gateway: &GatewayName) -> Result<WorkerView, Error> {
        let (inner, gateway) = (Arc::clone(&self.0), gateway.clone());
        blocking(move || inner.read(&gateway)).await
    }

    async fn write_gateway_facts(
        &self,
        gateway: &GatewayName,
        facts: &GatewayFacts,
    ) -> Result<Written, Error> {
        let (inner, gateway, facts) = (Arc::clone(&self.0), gateway.clone(), facts.clone());
        blocking(move || inner.write_gateway_facts(&gateway, &facts)).await
    }

    async fn write_intent_status(
        &self,
        gateway: &GatewayName,
        network: &NetworkName,
        status: &WorkerStatus,
        expected: &Meta,
    ) -> Result<Written, Error> {
        let (inner, name) = (Arc::clone(&self.0), format!("{network}.{gateway}"));
        let (status, expected) = (status.clone(), expected.clone());
        blocking(move || inner.write_intent_status(&name, &status, &expected)).await
    }
}
