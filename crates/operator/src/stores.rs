//! The stores that a command line may name, behind the ports. It refuses to mix what one of them knows into the other:
//! each call goes to the one that was opened.

mod controller;
mod error;
mod local;
mod worker;

pub use controller::ControllerPlace;
pub use error::Error;
pub use local::LocalPlace;
pub use worker::WorkerPlace;

use std::path::PathBuf;

use spanwire_engine::port::Changes;
use spanwire_store::{cluster, dir};

use crate::cli::Place;

/// Where a store is, with what is needed to reach it.
#[derive(Debug, Clone)]
pub enum Site {
    /// A directory.
    Folder(PathBuf),
    /// A namespace of an API server.
    Cluster(cluster::Connection),
}

impl Site {
    /// Finds out how a place is reached. `namespace`: another one than the context's.
    ///
    /// # Errors
    /// There is no usable configuration of the API server.
    pub async fn of(place: &Place, namespace: Option<&str>) -> Result<Self, Error> {
        Ok(match place {
            Place::Dir(path) => Site::Folder(path.clone()),
            Place::Kube { context } => {
                Site::Cluster(cluster::Connection::open(context.as_deref(), namespace).await?)
            }
            Place::InCluster => Site::Cluster(cluster::Connection::in_cluster(namespace)?),
        })
    }

    /// What writes Events there as `reporter`, where there are any.
    pub fn events(&self, reporter: &'static str) -> Option<cluster::EventWriter> {
        match self {
            Site::Folder(_) => None,
            Site::Cluster(connection) => Some(cluster::EventWriter::new(connection, reporter)),
        }
    }
}

/// Wakes when something was changed in the store.
#[derive(Debug)]
pub enum News {
    /// Of a directory.
    Dir(Box<dir::Watch>),
    /// Of an API server.
    Cluster(cluster::News),
}

impl Changes for News {
    async fn changed(&mut self) {
        match self {
            News::Dir(watch) => watch.changed().await,
            News::Cluster(news) => news.changed().await,
        }
    }
}
