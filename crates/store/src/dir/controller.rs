//! The controller's side of a control directory. It refuses to write intents and statuses that somebody else changed
//! after they were read.

mod look;
mod write;

use std::{collections::BTreeMap, net::IpAddr, path::Path, sync::Arc};

use spanwire_api::{GatewayNetworkSpec, GatewaySpec, WorkerSliceConfigSpec};
use spanwire_engine::{
    GatewayName, Intent, Meta, NetworkName, NetworkStatus,
    port::{ControlView, ControllerStore, Written},
};

use super::{
    Error, Watch,
    file::Pen,
    folder::Folder,
    lock::Exclude,
    root::{Root, blocking},
};

/// The controller's handle on a control directory.
#[derive(Debug, Clone)]
pub struct Controller(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    root: Root,
    gateways: Folder<GatewaySpec>,
    networks: Folder<GatewayNetworkSpec>,
    intents: Folder<WorkerSliceConfigSpec>,
}

impl Controller {
    /// Opens a directory that is there.
    ///
    /// # Errors
    /// [`Error::Root`] if it is missing or closed.
    pub fn open(path: impl AsRef<Path>) -> Result<Self, Error> {
        let path = path.as_ref();
        Ok(Self(Arc::new(Inner {
            root: Root::open(path, Pen::open())?,
            gateways: Folder::new(path),
            networks: Folder::new(path),
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

    /// Reads everything and writes nothing: objects that no controller has seen yet have no UID.
    ///
    /// # Errors
    /// As [`ControllerStore::read`].
    pub async fn look(&self) -> Result<ControlView, Error> {
        let inner = Arc::clone(&self.0);
        blocking(move || {
            let _lock = inner.root.lock(Exclude::Writers)?;
            inner.gather().map(|gathered| gathered.view)
        })
        .await
    }
}

impl ControllerStore for Controller {
    type Error = Error;

    async fn read(&self) -> Result<ControlView, Error> {
        let inner = Arc::clone(&self.0);
        blocking(move || inner.read()).await
    }

    async fn write_network_status(
        &self,
        network: &NetworkName,
        status: &NetworkStatus,
        expected: &Meta,
    ) -> Result<Written, Error> {
        let (inner, network, status) = (Arc::clone(&self.0), network.clone(), status.clone());
        let expected = expected.clone();
        blocking(move || inner.write_network_status(&network, &status, &expected)).await
    }

    async fn write_intent(&self, intent: &Intent, expected: Option<&Meta>) -> Result<Written, Error> {
        let (inner, intent, expected) = (Arc::clone(&self.0), intent.clone(), expected.cloned());
        blocking(move || inner.write_intent(&intent, expected.as_ref())).await
    }

    async fn delete_intent(
        &self,
        network: &NetworkName,
        gateway: &GatewayName,
        expected: &Meta,
    ) -> Result<Written, Error> {
        let (inner, name) = (Arc::clone(&self.0), format!("{network}.{gateway}"));
        let expected = expected.clone();
        blocking(move || inner.delete_intent(&name, &expected)).await
    }

    async fn write_gateway_networks(
        &self,
        gateway: &GatewayName,
        networks: &BTreeMap<NetworkName, Option<IpAddr>>,
    ) -> Result<Written, Error> {
        let (inner, gateway, networks) = (Arc::clone(&self.0), gateway.clone(), networks.clone());
        blocking(move || inner.write_gateway_networks(&gateway, &networks)).await
    }
}
