//! The faults of both stores as one type. It refuses to reword them.

use spanwire_engine::{Class, port::Fault};
use spanwire_store::{cluster, dir};

/// A failed call.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// Of a directory.
    #[error(transparent)]
    Dir(#[from] dir::Error),
    /// Of an API server.
    #[error(transparent)]
    Cluster(#[from] cluster::Error),
}

impl Fault for Error {
    fn class(&self) -> Class {
        match self {
            Error::Dir(error) => error.class(),
            Error::Cluster(error) => error.class(),
        }
    }
}
