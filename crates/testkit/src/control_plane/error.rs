//! What can go wrong with a control plane. It refuses to be matched on for decisions: a test that meets one has failed.

use std::{path::PathBuf, time::Duration};

use super::assets::AssetsError;
use crate::{lab::LabError, process::ProcessError};

/// A step that failed.
#[derive(Debug, thiserror::Error)]
pub enum ControlPlaneError {
    /// The programs are not there.
    #[error("{source}")]
    Assets {
        /// What to do.
        source: AssetsError,
    },
    /// A file could not be used.
    #[error("using {path}")]
    File {
        /// The file.
        path: PathBuf,
        /// The refusal.
        #[source]
        source: std::io::Error,
    },
    /// The system gave no random bytes, or no key.
    #[error("making keys and tokens: {reason}")]
    Keys {
        /// Why.
        reason: String,
    },
    /// A process could not be started or stopped.
    #[error("running {program}")]
    Process {
        /// Which.
        program: &'static str,
        /// The refusal.
        #[source]
        source: ProcessError,
    },
    /// Another program has the port.
    #[error("port {port} was taken")]
    PortTaken {
        /// The port.
        port: u16,
    },
    /// A process ended or was not ready in time.
    #[error("{program} {what}; the end of its log:\n{log}")]
    NotReady {
        /// Which.
        program: &'static str,
        /// What it did.
        what: String,
        /// Its last lines.
        log: String,
    },
    /// There is no such user.
    #[error("the control plane {name} knows no user {user:?}: name it in Options::users")]
    UnknownUser {
        /// The control plane.
        name: String,
        /// The user.
        user: String,
    },
    /// A client could not be made.
    #[error("making a client for {user}")]
    Client {
        /// The user.
        user: String,
        /// Why.
        #[source]
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    /// A request of our own was refused.
    #[error("{action} was refused")]
    Request {
        /// The request.
        action: String,
        /// The refusal.
        #[source]
        source: Box<kube::Error>,
    },
    /// A manifest is no object.
    #[error("reading a manifest: {reason}")]
    Manifest {
        /// Why.
        reason: String,
    },
    /// Something did not come true in time.
    #[error("{what} within {limit:?}")]
    Late {
        /// What did not happen.
        what: String,
        /// How long it was waited for.
        limit: Duration,
    },
    /// The lab refused a listener.
    #[error("listening in the lab")]
    Lab {
        /// The refusal.
        #[source]
        source: LabError,
    },
}

impl From<AssetsError> for ControlPlaneError {
    fn from(source: AssetsError) -> Self {
        Self::Assets { source }
    }
}
