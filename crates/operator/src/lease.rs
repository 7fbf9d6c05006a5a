//! One process acts for a store on an API server: a Lease. It refuses to stop a holder that can't renew: it goes on
//! until it sees another holder, because links are repaired without the server, and writes carry preconditions.

use std::time::Duration;

use kube_lease_manager::{LeaseCreateMode, LeaseManagerBuilder};
use spanwire_engine::{Class, port};
use spanwire_store::cluster::{Connection, words};
use tokio::{sync::watch, task::JoinHandle, time::timeout};

/// How long a holder that ended without a word keeps others waiting, in seconds.
const DURATION: u64 = 15;
/// How long before that it renews, in seconds.
const GRACE: u64 = 10;
/// How long giving the lease back may take.
const RELEASE: Duration = Duration::from_secs(2);

/// Why a lease could not even be tried.
#[derive(Debug, thiserror::Error)]
#[error("cannot take the Lease {namespace}/{name}: {cause}")]
pub struct Error {
    namespace: String,
    name: String,
    cause: String,
}

impl port::Fault for Error {
    fn class(&self) -> Class {
        Class::Retry
    }
}

/// A lease that is held or waited for, until this is dropped or given back.
#[derive(Debug)]
pub struct Lease {
    holds: watch::Receiver<bool>,
    task: JoinHandle<Result<kube_lease_manager::LeaseManager, kube_lease_manager::LeaseManagerError>>,
}

impl Lease {
    /// Begins to ask for the lease `name` as `identity`. Whoever comes back with the same identity holds it at once.
    ///
    /// # Errors
    /// The server does not answer, or refuses the account.
    pub async fn ask(connection: &Connection, name: &str, identity: &str) -> Result<Self, Error> {
        let manager = LeaseManagerBuilder::new(connection.client().clone(), name)
            .with_namespace(connection.namespace())
            .with_identity(identity)
            .with_duration(DURATION)
            .with_grace(GRACE)
            .with_create_mode(LeaseCreateMode::AutoCreate)
            .build()
            .await
            .map_err(|cause| Error {
                namespace: connection.namespace().to_owned(),
                name: name.to_owned(),
                cause: words(&cause),
            })?;
        let (holds, task) = manager.watch().await;
        Ok(Self { holds, task })
    }

    /// Resolves once the lease is held.
    pub async fn held(&mut self) {
        if self.holds.wait_for(|holds| *holds).await.is_err() {
            std::future::pending::<()>().await;
        }
    }

    /// Resolves once another process holds it.
    pub async fn lost(&mut self) {
        if self.holds.wait_for(|holds| !*holds).await.is_err() {
            std::future::pending::<()>().await;
        }
    }

    /// Gives it back, so that another process need not wait.
    pub async fn give_back(self) {
        let Self { holds, mut task } = self;
        drop(holds);
        if timeout(RELEASE, &mut task).await.is_err() {
            task.abort();
        }
    }
}

/// Who this process is for a lease: this boot and network namespace, so that a restarted process is the same one. A lock
/// in the namespace keeps a second process of it away.
pub fn identity() -> std::io::Result<String> {
    let boot = std::fs::read_to_string("/proc/sys/kernel/random/boot_id")?;
    let namespace = std::os::unix::fs::MetadataExt::ino(&std::fs::metadata("/proc/thread-self/ns/net")?);
    let host = std::fs::read_to_string("/proc/sys/kernel/hostname")?;
    Ok(format!("{}-{}-{namespace}", host.trim(), boot.trim().get(..8).unwrap_or_default()))
}
