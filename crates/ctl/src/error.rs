//! Why a command gave no answer. It refuses to carry verdicts: an invalid network is an answer.

use std::{io, path::PathBuf};

use spanwire_store::{cluster, dir};

/// A failed command.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The control store could not be read.
    #[error("failed to read the control store")]
    Store(#[source] dir::Error),
    /// The API server could not be read.
    #[error(
        "failed to read the control cluster (another one: --control kube:CONTEXT, or --control dir:PATH)"
    )]
    Cluster(#[source] cluster::Error),
    /// The API server did not answer.
    #[error("the control cluster did not answer within {} s: is it reachable from here?", .0.as_secs())]
    Late(std::time::Duration),
    /// A file given on the command line could not be read.
    #[error("failed to read {}", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// Why.
        #[source]
        source: io::Error,
    },
    /// A file given on the command line holds no declaration.
    #[error("{0} is no declaration")]
    Declaration(PathBuf, #[source] dir::BadDeclaration),
    /// There is no network of that name.
    #[error("there is no network {0:?}; there are: {1}")]
    NoNetwork(String, String),
    /// The answer could not be expressed as JSON.
    #[error("failed to express the answer as JSON")]
    Json(#[source] serde_json::Error),
    /// The answer could not be expressed as YAML.
    #[error("failed to express the answer as YAML")]
    Yaml(#[source] serde_saphyr::ser::Error),
    /// A new worker cluster can't be prepared.
    #[error("failed to prepare the new gateway")]
    Join(#[source] crate::join::Error),
    /// The system gives no threads.
    #[error("failed to start")]
    Start(#[source] io::Error),
}

/// An error with its causes, on one line.
pub(crate) fn chain(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(cause) = source {
        text = format!("{text}: {cause}");
        source = cause.source();
    }
    text
}
