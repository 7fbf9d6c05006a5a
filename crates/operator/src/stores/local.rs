//! A worker's own records in whichever local store was opened.

use spanwire_engine::{
    LinkId,
    port::{LocalStore, Written},
    worker::{RecordStep, Recorded},
};
use spanwire_store::{cluster, dir};

use super::{Error, News, Site};

/// The local store of a worker.
#[derive(Clone)]
pub enum LocalPlace {
    /// A directory.
    Dir(dir::Local),
    /// An API server.
    Cluster(cluster::Local),
}

impl LocalPlace {
    /// Opens it. Call it within a Tokio runtime.
    ///
    /// # Errors
    /// The directory is not there.
    pub fn open(site: &Site) -> Result<Self, Error> {
        Ok(match site {
            Site::Folder(path) => Self::Dir(dir::Local::open(path)?),
            Site::Cluster(connection) => Self::Cluster(cluster::Local::new(connection)),
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

impl LocalStore for LocalPlace {
    type Error = Error;

    async fn read(&self) -> Result<Recorded, Error> {
        Ok(match self {
            Self::Dir(store) => store.read().await?,
            Self::Cluster(store) => store.read().await?,
        })
    }

    fn uid(&self, link: &LinkId) -> Option<String> {
        match self {
            Self::Dir(store) => store.uid(link),
            Self::Cluster(store) => store.uid(link),
        }
    }

    async fn apply(&self, step: &RecordStep) -> Result<Written, Error> {
        Ok(match self {
            Self::Dir(store) => store.apply(step).await?,
            Self::Cluster(store) => store.apply(step).await?,
        })
    }
}
