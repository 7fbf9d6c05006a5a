//! The controller's side of whichever store was opened.

use std::{
    collections::{BTreeMap, BTreeSet},
    net::IpAddr,
};

use spanwire_engine::{
    GatewayName, Intent, Meta, NetworkName, NetworkStatus,
    port::{ControlView, ControllerStore, Written},
};
use spanwire_store::{cluster, dir};

use super::{Error, News, Site};

/// The control store of a controller.
#[derive(Clone)]
pub enum ControllerPlace {
    /// A directory.
    Dir(dir::Controller),
    /// An API server.
    Cluster(cluster::Controller),
}

impl ControllerPlace {
    /// Opens it. Call it within a Tokio runtime.
    ///
    /// # Errors
    /// The directory is not there.
    pub fn open(site: &Site) -> Result<Self, Error> {
        Ok(match site {
            Site::Folder(path) => Self::Dir(dir::Controller::open(path)?),
            Site::Cluster(connection) => Self::Cluster(cluster::Controller::new(connection)),
        })
    }

    /// Wakes when something was changed.
    ///
    /// # Errors
    /// The directory can't be watched.
    pub fn watch(&self) -> Result<News, Error> {
        Ok(match self {
            Self::Dir(store) => News::Dir(Box::new(store.watch()?)),
            Self::Cluster(store) => News::Cluster(store.watch()),
        })
    }
}

impl ControllerStore for ControllerPlace {
    type Error = Error;

    async fn read(&self) -> Result<ControlView, Error> {
        Ok(match self {
            Self::Dir(store) => store.read().await?,
            Self::Cluster(store) => store.read().await?,
        })
    }

    async fn write_network_status(
        &self,
        network: &NetworkName,
        status: &NetworkStatus,
        expected: &Meta,
    ) -> Result<Written, Error> {
        Ok(match self {
            Self::Dir(store) => store.write_network_status(network, status, expected).await?,
            Self::Cluster(store) => store.write_network_status(network, status, expected).await?,
        })
    }

    async fn write_intent(&self, intent: &Intent, expected: Option<&Meta>) -> Result<Written, Error> {
        Ok(match self {
            Self::Dir(store) => store.write_intent(intent, expected).await?,
            Self::Cluster(store) => store.write_intent(intent, expected).await?,
        })
    }

    async fn delete_intent(
        &self,
        network: &NetworkName,
        gateway: &GatewayName,
        expected: &Meta,
    ) -> Result<Written, Error> {
        Ok(match self {
            Self::Dir(store) => store.delete_intent(network, gateway, expected).await?,
            Self::Cluster(store) => store.delete_intent(network, gateway, expected).await?,
        })
    }

    async fn grant(&self, gateway: &GatewayName, networks: &BTreeSet<NetworkName>) -> Result<Written, Error> {
        Ok(match self {
            Self::Dir(store) => store.grant(gateway, networks).await?,
            Self::Cluster(store) => store.grant(gateway, networks).await?,
        })
    }

    async fn write_gateway_networks(
        &self,
        gateway: &GatewayName,
        networks: &BTreeMap<NetworkName, Option<IpAddr>>,
    ) -> Result<Written, Error> {
        Ok(match self {
            Self::Dir(store) => store.write_gateway_networks(gateway, networks).await?,
            Self::Cluster(store) => store.write_gateway_networks(gateway, networks).await?,
        })
    }
}
