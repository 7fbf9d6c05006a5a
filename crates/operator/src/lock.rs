//! One process acts: a lock in the folder and, for workers, one in the host's network namespace. It refuses to break a
//! lock: a second process stands by until the first is gone.

use std::{
    fs::{File, OpenOptions},
    io,
    os::fd::OwnedFd,
    path::{Path, PathBuf},
    time::Duration,
};

use nix::{
    errno::Errno,
    fcntl::{Flock, FlockArg},
    sys::socket::{AddressFamily, SockFlag, SockType, UnixAddr, bind, socket},
};
use spanwire_engine::{Class, port};

/// How often a process that stands by looks again.
const LOOK_AGAIN: Duration = Duration::from_millis(500);

/// Why a lock could not even be tried.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The file of the lock can't be opened.
    #[error("cannot open the lock {path}")]
    Open {
        /// The file.
        path: PathBuf,
        /// Why.
        #[source]
        cause: io::Error,
    },
    /// The file can't be locked.
    #[error("cannot lock {path}")]
    Lock {
        /// The file.
        path: PathBuf,
        /// Why.
        #[source]
        cause: Errno,
    },
    /// The socket that stands for the lock in the network namespace can't be made.
    #[error("cannot take the lock {name} of this network namespace")]
    Namespace {
        /// The name of the socket.
        name: String,
        /// Why.
        #[source]
        cause: Errno,
    },
}

impl port::Fault for Error {
    fn class(&self) -> Class {
        match self {
            Error::Open { .. } | Error::Lock { .. } | Error::Namespace { .. } => Class::NeedsHuman,
        }
    }
}

/// What one process at a time may hold. All of it is given back when the process ends, however it ends.
#[derive(Debug, Clone)]
pub struct Lock {
    /// The file that is locked, made if missing; `None` where the store has a lease instead.
    pub file: Option<PathBuf>,
    /// The abstract socket name that is bound in the network namespace, for what acts on the host.
    pub namespace: Option<String>,
}

/// A lock that is held until this is dropped.
#[derive(Debug)]
pub struct Held {
    _file: Option<Flock<File>>,
    _namespace: Option<OwnedFd>,
}

impl Lock {
    /// Takes the lock; `None`: another process has it.
    ///
    /// # Errors
    /// The lock can't even be tried.
    pub fn try_take(&self) -> Result<Option<Held>, Error> {
        let file = match self.file.as_deref().map(lock_file).transpose()? {
            Some(None) => return Ok(None),
            held => held.flatten(),
        };
        match self.namespace.as_deref().map(bind_name) {
            None => Ok(Some(Held { _file: file, _namespace: None })),
            Some(Ok(socket)) => Ok(Some(Held { _file: file, _namespace: Some(socket) })),
            Some(Err(Errno::EADDRINUSE)) => Ok(None),
            Some(Err(cause)) => {
                Err(Error::Namespace { name: self.namespace.clone().unwrap_or_default(), cause })
            }
        }
    }

    /// Takes the lock, standing by for as long as another process has it.
    ///
    /// # Errors
    /// The lock can't even be tried.
    pub async fn take(&self) -> Result<Held, Error> {
        let mut said = false;
        loop {
            if let Some(held) = self.try_take()? {
                return Ok(held);
            }
            if !said {
                tracing::warn!(lock = ?self, "another process acts here: standing by until it ends");
                said = true;
            }
            tokio::time::sleep(LOOK_AGAIN).await;
        }
    }
}

fn lock_file(path: &Path) -> Result<Option<Flock<File>>, Error> {
    let file = OpenOptions::new()
        .create(true)
        .truncate(false)
        .write(true)
        .open(path)
        .map_err(|cause| Error::Open { path: path.to_owned(), cause })?;
    match Flock::lock(file, FlockArg::LockExclusiveNonblock) {
        Ok(held) => Ok(Some(held)),
        Err((_, Errno::EWOULDBLOCK)) => Ok(None),
        Err((_, cause)) => Err(Error::Lock { path: path.to_owned(), cause }),
    }
}

/// Abstract socket names belong to a network namespace and end with their socket.
fn bind_name(name: &str) -> Result<OwnedFd, Errno> {
    let socket = socket(AddressFamily::Unix, SockType::Stream, SockFlag::SOCK_CLOEXEC, None)?;
    bind(std::os::fd::AsRawFd::as_raw_fd(&socket), &UnixAddr::new_abstract(name.as_bytes())?)?;
    Ok(socket)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn w8_a_second_process_does_not_get_the_lock_before_the_first_is_gone() {
        let folder = tempfile::tempdir().unwrap();
        let namespace = Some(format!("spanwire/test-{}", std::process::id()));
        let lock = Lock { file: Some(folder.path().join("lock")), namespace: namespace.clone() };
        let elsewhere = Lock { file: Some(folder.path().join("other")), namespace };
        let held = lock.try_take().unwrap().unwrap();
        assert!(lock.try_take().unwrap().is_none(), "same folder");
        assert!(elsewhere.try_take().unwrap().is_none(), "same network namespace");
        drop(held);
        assert!(lock.try_take().unwrap().is_some());
    }

    #[test]
    fn a_missing_folder_is_an_error_with_its_path() {
        let lock = Lock { file: Some("/nonexistent/folder/lock".into()), namespace: None };
        assert!(lock.try_take().unwrap_err().to_string().contains("/nonexistent/folder/lock"));
    }
}
