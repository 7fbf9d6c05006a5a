//! What can go wrong with a child. It refuses to judge how a child ended: that is a status, not an error.

use std::{io, path::PathBuf, time::Duration};

/// A step that failed.
#[derive(Debug, thiserror::Error)]
pub enum ProcessError {
    /// The log could not be opened.
    #[error("opening {path}")]
    Log {
        /// The file.
        path: PathBuf,
        /// The refusal.
        #[source]
        source: io::Error,
    },
    /// The program could not be started.
    #[error("starting {name} ({path})")]
    Start {
        /// Its name.
        name: String,
        /// Its file.
        path: PathBuf,
        /// The refusal.
        #[source]
        source: io::Error,
    },
    /// The child could not be waited for.
    #[error("waiting for {name}")]
    Wait {
        /// Its name.
        name: String,
        /// The refusal.
        #[source]
        source: io::Error,
    },
    /// The child did not end when asked.
    #[error("{name} did not end within {limit:?} after SIGTERM and was killed")]
    Stubborn {
        /// Its name.
        name: String,
        /// How long it was given.
        limit: Duration,
    },
    /// The child could not be signalled.
    #[error("signalling {name}")]
    Signal {
        /// Its name.
        name: String,
        /// The refusal.
        #[source]
        source: nix::Error,
    },
    /// The child's figures could not be read.
    #[error("reading memory and time of {name}")]
    Usage {
        /// Its name.
        name: String,
        /// The refusal.
        #[source]
        source: io::Error,
    },
}
