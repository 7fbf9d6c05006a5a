//! What can go wrong with a directory as a whole or with one write. It refuses to carry single bad files: those are
//! `Unreadable` entries of a view.

use std::{io, path::PathBuf};

use spanwire_engine::{Class, port::Fault};

use crate::Conflict;

/// A failed call.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The directory itself is missing or closed: unknown, not empty.
    #[error("failed to read the store's directory {}", path.display())]
    Root {
        /// The directory.
        path: PathBuf,
        /// Why.
        #[source]
        source: io::Error,
    },
    /// A folder of objects is closed: unknown, not empty.
    #[error("failed to list the folder {}", path.display())]
    List {
        /// The folder.
        path: PathBuf,
        /// Why.
        #[source]
        source: io::Error,
    },
    /// A file could not be written or removed.
    #[error("failed to write {}", path.display())]
    Write {
        /// The file.
        path: PathBuf,
        /// Why.
        #[source]
        source: io::Error,
    },
    /// An object could not be expressed as YAML.
    #[error("failed to express {} as YAML", path.display())]
    Express {
        /// The file.
        path: PathBuf,
        /// Why.
        #[source]
        source: Box<serde_saphyr::ser::Error>,
    },
    /// The lock file could not be used.
    #[error("failed to lock the store with {}", path.display())]
    Lock {
        /// The lock file.
        path: PathBuf,
        /// Why.
        #[source]
        source: io::Error,
    },
    /// Another process holds the lock for too long.
    #[error("the store's lock {} has been held by another process for {seconds} s", path.display())]
    LockHeld {
        /// The lock file.
        path: PathBuf,
        /// How long this call waited.
        seconds: u64,
    },
    /// Somebody else wrote in between, or the object is another one.
    #[error("conflict on {kind} {name}: {why}")]
    Conflict {
        /// Kind in the plural.
        kind: &'static str,
        /// Name of the object.
        name: String,
        /// What does not fit.
        why: Conflict,
    },
    /// The object that a status belongs to is not there.
    #[error("there is no {kind} {name}")]
    NotFound {
        /// Kind in the plural.
        kind: &'static str,
        /// Name of the object.
        name: String,
    },
    /// The object is there and cannot be read, so nothing is written over it.
    #[error("{kind} {name} is not overwritten, because it cannot be read: {cause}")]
    Unreadable {
        /// Kind in the plural.
        kind: &'static str,
        /// Name of the object.
        name: String,
        /// Path, place and what was expected.
        cause: String,
    },
    /// The intent was written by somebody else than a controller of ours.
    #[error("{name} is not managed by this controller and is left alone")]
    NotManaged {
        /// Name of the intent.
        name: String,
    },
    /// The system gave no random bytes for an identity.
    #[error("failed to get random bytes for a new identity")]
    Random(#[source] getrandom::Error),
    /// The directory cannot be watched.
    #[error("failed to watch {}", path.display())]
    Watch {
        /// The directory.
        path: PathBuf,
        /// Why.
        #[source]
        source: io::Error,
    },
    /// The thread that did the work ended without an answer.
    #[error("the store's thread ended without an answer")]
    Thread(#[source] tokio::task::JoinError),
}

impl Error {
    /// Whether another writer came first.
    pub fn is_conflict(&self) -> bool {
        matches!(self, Error::Conflict { .. })
    }
}

impl Fault for Error {
    fn class(&self) -> Class {
        match self {
            Error::Root { .. }
            | Error::List { .. }
            | Error::Write { .. }
            | Error::Lock { .. }
            | Error::LockHeld { .. }
            | Error::Conflict { .. }
            | Error::Random(_)
            | Error::Watch { .. }
            | Error::Thread(_) => Class::Retry,
            Error::NotFound { .. } => Class::WaitForChange,
            Error::Express { .. } | Error::Unreadable { .. } | Error::NotManaged { .. } => Class::NeedsHuman,
        }
    }
}
