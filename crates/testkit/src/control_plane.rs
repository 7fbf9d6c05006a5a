//! Real control planes for tests: etcd and kube-apiserver as processes on loopback, with RBAC, a user a role, and an
//! audit log that is the ledger of requests. It refuses to build anything: `cargo xtask control-plane build` does, and
//! tests only find.
//!
//! There is no controller manager: nothing collects garbage by owner references and no namespace is ever emptied.
//!
//! ```no_run
//! use spanwire_testkit::control_plane::ControlPlane;
//!
//! # async fn test() -> Result<(), Box<dyn std::error::Error>> {
//! let Some(control) = ControlPlane::shared() else { return Ok(()) };
//! control.namespace("mine").await?;
//! let client = control.client("admin").await?;
//! # Ok(())
//! # }
//! ```

mod access;
pub mod assets;
mod error;
mod exposed;
mod ledger;
mod manifests;
mod programs;
mod proxy;
mod running;
mod together;

use std::{
    path::{Path, PathBuf},
    sync::{Mutex, MutexGuard, PoisonError},
};

use tempfile::TempDir;

pub use access::{ADMIN, User};
pub use error::ControlPlaneError;
pub use exposed::Exposed;
pub use ledger::{Mark, Request};
pub use proxy::{Call, Fault, Proxy};

use access::Access;
use assets::Assets;
use running::Running;

use crate::folder;

/// How a control plane differs from a common one.
#[derive(Debug, Clone)]
pub struct Options {
    /// Names its cluster and contexts in kubeconfigs.
    pub name: String,
    /// Users with a token each, beside [`ADMIN`]; they may do nothing until a binding lets them.
    pub users: Vec<User>,
    /// Whether it begins with our CRDs.
    pub crds: bool,
    /// Where it keeps its files; `None`: a temporary folder that vanishes with it.
    pub folder: Option<PathBuf>,
}

impl Default for Options {
    fn default() -> Self {
        Self { name: "control".to_owned(), users: Vec::new(), crds: true, folder: None }
    }
}

impl Options {
    /// The common one under another name.
    pub fn named(name: &str) -> Self {
        Self { name: name.to_owned(), ..Self::default() }
    }

    /// Adds users without groups.
    #[must_use]
    pub fn users(mut self, names: &[&str]) -> Self {
        self.users.extend(names.iter().map(|name| User::named(name)));
        self
    }
}

/// One API server with its etcd. Dropping it kills both; so does the kernel when this program ends.
#[derive(Debug)]
pub struct ControlPlane {
    name: String,
    access: Access,
    running: Mutex<Running>,
    folder: PathBuf,
    // Last: the folder goes when the processes have gone.
    _temporary: Option<TempDir>,
}

/// A copy of everything that an etcd held.
#[derive(Debug)]
pub struct Snapshot(TempDir);

impl ControlPlane {
    /// Starts one and waits until it is ready, CRDs included: some seconds. May be called from everywhere, also from
    /// inside a runtime, which it blocks.
    ///
    /// # Errors
    /// The programs are not there ([`assets::find`]), or they did not become ready: the error holds the end of their
    /// log.
    pub fn start(options: Options) -> Result<Self, ControlPlaneError> {
        let assets = assets::find()?;
        let Options { name, users, crds, folder } = options;
        let (folder, temporary) = place(folder)?;
        let (running, access) = start(&assets, &folder, &name, users)?;
        let plane = Self { name, access, running: Mutex::new(running), folder, _temporary: temporary };
        if crds {
            running::blocking(plane.apply_crds())?;
        }
        Ok(plane)
    }

    /// Its name in kubeconfigs.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// `https://127.0.0.1:port`.
    pub fn url(&self) -> String {
        self.access.url()
    }

    /// Its port on loopback.
    pub fn port(&self) -> u16 {
        self.access.port
    }

    /// Its authority as PEM.
    pub fn ca(&self) -> &str {
        &self.access.ca
    }

    /// The token of a user: [`ADMIN`], one of [`Options::users`], or what [`ControlPlane::service_account`] returned.
    ///
    /// # Errors
    /// There is no such user.
    pub fn token(&self, user: &str) -> Result<String, ControlPlaneError> {
        self.access.token(user)
    }

    /// The file of its audit log.
    pub fn audit_log(&self) -> PathBuf {
        programs::audit_log(&self.folder)
    }

    /// The folder with its logs, data and kubeconfigs.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// Ends the API server, as an outage would; clients get "connection refused".
    ///
    /// # Errors
    /// It could not be waited for.
    pub fn stop_api_server(&self) -> Result<(), ControlPlaneError> {
        self.running().stop_api_server()
    }

    /// Starts the API server again on the same port and waits until it is ready.
    ///
    /// # Errors
    /// It did not become ready.
    pub fn start_api_server(&self) -> Result<(), ControlPlaneError> {
        self.running().start_api_server(&self.access)
    }

    /// Ends etcd: the API server stays and answers errors.
    ///
    /// # Errors
    /// It could not be waited for.
    pub fn stop_etcd(&self) -> Result<(), ControlPlaneError> {
        self.running().stop_etcd()
    }

    /// Starts etcd again and waits until it listens. The API server comes back to it by itself.
    ///
    /// # Errors
    /// It did not listen.
    pub fn start_etcd(&self) -> Result<(), ControlPlaneError> {
        self.running().start_etcd()
    }

    /// Copies what etcd holds; both processes are stopped for it and started again.
    ///
    /// # Errors
    /// They could not be stopped or started, or the copy failed.
    pub fn snapshot(&self) -> Result<Snapshot, ControlPlaneError> {
        let copy = tempfile::tempdir_in(&self.folder)
            .map_err(|source| ControlPlaneError::File { path: self.folder.clone(), source })?;
        let mut running = self.running();
        running.while_stopped(&self.access, |data| folder::copy(data, copy.path()))?;
        Ok(Snapshot(copy))
    }

    /// Goes back to a snapshot, as an administrator would after a disaster: what was written since is gone, resource
    /// versions run again from where they were.
    ///
    /// # Errors
    /// Like [`ControlPlane::snapshot`].
    pub fn restore(&self, snapshot: &Snapshot) -> Result<(), ControlPlaneError> {
        let mut running = self.running();
        running.while_stopped(&self.access, |data| {
            std::fs::remove_dir_all(data)?;
            folder::copy(snapshot.0.path(), data)
        })
    }

    fn running(&self) -> MutexGuard<'_, Running> {
        self.running.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn place(folder: Option<PathBuf>) -> Result<(PathBuf, Option<TempDir>), ControlPlaneError> {
    let Some(folder) = folder else {
        let temporary = together::folder()?;
        return Ok((temporary.path().to_owned(), Some(temporary)));
    };
    std::fs::create_dir_all(&folder)
        .map_err(|source| ControlPlaneError::File { path: folder.clone(), source })?;
    Ok((folder, None))
}

/// Another program may take the port between the look and the start; then another port is tried.
fn start(
    assets: &Assets,
    folder: &Path,
    name: &str,
    users: Vec<User>,
) -> Result<(Running, Access), ControlPlaneError> {
    const ATTEMPTS: usize = 5;
    let mut access = Access::new(name, users)?;
    programs::prepare(folder, &access)?;
    for _ in 1..ATTEMPTS {
        access.port = programs::free_port()?;
        match Running::start(assets, folder, &mut access) {
            Err(ControlPlaneError::PortTaken { .. }) => {}
            result => return result.map(|running| (running, access)),
        }
    }
    access.port = programs::free_port()?;
    Running::start(assets, folder, &mut access).map(|running| (running, access))
}
