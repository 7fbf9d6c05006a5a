//! A worker's side of whichever control store was opened.

use std::collections::BTreeSet;

use spanwire_engine::{
    GatewayFacts, GatewayName, Meta, NetworkName, WorkerStatus,
    port::{WorkerStore, WorkerView, Written},
};
use spanwire_store::{cluster, dir};

use super::{Error, News, Site};

/// The control store of a worker.
#[derive(Clone)]
pub enum WorkerPlace {
    /// A directory.
    Dir(dir::Worker),
    /// An API server.
    Cluster(cluster::Worker),
}

impl WorkerPlace {
    /// Opens it. Call it within a Tokio runtime.
    ///
    /// # Errors
    /// The directory is not there.
    pub fn open(site: &Site) -> Result<Self, Error> {
        Ok(match site {
            Site::Folder(path) => Self::Dir(dir::Worker::open(path)?),
            Site::Cluster(connection) => Self::Cluster(cluster::Worker::new(connection)),
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

impl WorkerStore for WorkerPlace {
    type Error = Error;

    fn follow(&self, networks: BTreeSet<NetworkName>) {
        match self {
            Self::Dir(store) => store.follow(networks),
            Self::Cluster(store) => store.follow(networks),
        }
    }

    async fn read(&self, gateway: &GatewayName) -> Result<WorkerView, Error> {
        Ok(match self {
            Self::Dir(store) => store.read(gateway).await?,
            Self::Cluster(store) => store.read(gateway).await?,
        })
    }

    async fn reread(
        &self,
        gateway: &GatewayName,
        networks: &BTreeSet<NetworkName>,
    ) -> Result<WorkerView, Error> {
        Ok(match self {
            Self::Dir(store) => store.reread(gateway, networks).await?,
            Self::Cluster(store) => store.reread(gateway, networks).await?,
        })
    }

    async fn write_gateway_facts(
        &self,
        gateway: &GatewayName,
        facts: &GatewayFacts,
    ) -> Result<Written, Error> {
        Ok(match self {
            Self::Dir(store) => store.write_gateway_facts(gateway, facts).await?,
            Self::Cluster(store) => store.write_gateway_facts(gateway, facts).await?,
        })
    }

    async fn write_intent_status(
        &self,
        gateway: &GatewayName,
        network: &NetworkName,
        status: &WorkerStatus,
        expected: &Meta,
    ) -> Result<Written, Error> {
        Ok(match self {
            Self::Dir(store) => store.write_intent_status(gateway, network, status, expected).await?,
            Self::Cluster(store) => store.write_intent_status(gateway, network, status, expected).await?,
        })
    }
}
