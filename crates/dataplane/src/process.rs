//! The process that outlives the worker: it holds the userspace devices, makes and removes them when told to, answers each
//! one's configuration socket, and answers the peers' probes on devices of either backend. It refuses policy: it reads no
//! store and decides nothing.

mod configuration;
mod device;
mod figures;
mod kernel_devices;
mod listen;
mod place;
mod plan;
mod registry;
mod responder;
mod server;
mod tun;
mod udp;

use std::{future::Future, io, path::PathBuf, sync::Arc};

use spanwire_engine::Class;

use crate::{kernel, netlink};
pub use figures::{Figures, Held};
use registry::Registry;

/// Where a device node for TUN devices is expected.
const TUN: &str = "/dev/net/tun";

/// Where the process listens.
#[derive(Debug, Clone)]
pub struct ProcessConfig {
    /// The control socket, made with mode 0600.
    pub control_socket: PathBuf,
    /// The directory of the devices' configuration sockets. `wg` looks into the default one only.
    pub uapi_dir: PathBuf,
}

impl ProcessConfig {
    /// With the configuration sockets where `wg` finds them.
    pub fn new(control_socket: impl Into<PathBuf>) -> Self {
        Self { control_socket: control_socket.into(), uapi_dir: PathBuf::from("/var/run/wireguard") }
    }
}

/// Why the process could not start or go on.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// No TUN devices here.
    #[error(
        "no userspace WireGuard: {TUN} cannot be opened; load the module `tun` and give the container that device, or \
         use a kernel with the module `wireguard`"
    )]
    NoTun(#[source] io::Error),
    /// Another process answers there.
    #[error("another dataplane process answers at {path}")]
    AlreadyRunning {
        /// The socket.
        path: PathBuf,
    },
    /// The socket could not be made.
    #[error("could not listen at {path}")]
    Listen {
        /// The socket.
        path: PathBuf,
        /// Why.
        #[source]
        source: io::Error,
    },
    /// The kernel's interfaces.
    #[error(transparent)]
    Netlink(netlink::Error),
    /// The kernel's WireGuard.
    #[error(transparent)]
    Kernel(kernel::Error),
    /// A device of that name belongs to somebody else.
    #[error("an interface {name} is there already and is not ours")]
    NameTaken {
        /// The name.
        name: String,
    },
    /// The name or alias is none of ours.
    #[error("{what:?} is not a name or alias that this process gives to devices")]
    NotOurs {
        /// The text.
        what: String,
    },
    /// The device could not be made.
    #[error("could not create device {name}")]
    Create {
        /// The device.
        name: String,
        /// Why.
        #[source]
        source: io::Error,
    },
}

impl Error {
    /// What the fault asks for.
    pub fn class(&self) -> Class {
        match self {
            Error::NoTun(_) | Error::AlreadyRunning { .. } | Error::NotOurs { .. } => Class::NeedsHuman,
            Error::Netlink(source) => source.class(),
            Error::Kernel(source) => source.class(),
            Error::NameTaken { .. } => Class::WaitForChange,
            Error::Listen { .. } | Error::Create { .. } => Class::Retry,
        }
    }
}

/// Runs until `shutdown` resolves; then the devices go, with their sockets. Everything happens in the network namespace
/// of the calling thread. `ready` is told once the control socket listens, and how to look at what is held.
///
/// # Errors
/// Neither a TUN device node nor a WireGuard in the kernel, another process at the control socket, or a socket that
/// cannot be made.
pub async fn serve(
    config: ProcessConfig,
    ready: impl FnOnce(Figures),
    shutdown: impl Future<Output = ()>,
) -> Result<(), Error> {
    let node = std::fs::OpenOptions::new().read(true).write(true).open(TUN);
    if let Err(error) = node {
        let kernel = kernel::Client::open().map_err(Error::Kernel)?;
        if kernel.present().await.is_err() {
            return Err(Error::NoTun(error));
        }
        tracing::info!(%error, "no userspace devices here: {TUN} cannot be opened; the kernel has WireGuard");
    }
    let control = listen::control(&config.control_socket).await?;
    listen::prepare_directory(&config.uapi_dir).await?;
    let registry = Arc::new(Registry::open(config.uapi_dir)?);
    let watcher = Arc::clone(&registry).watch_interfaces()?;
    tracing::info!(socket = %config.control_socket.display(), "dataplane is ready");
    ready(Figures::of(Arc::clone(&registry)));
    tokio::select! {
        () = server::run(control, Arc::clone(&registry)) => {}
        () = watcher => {}
        () = shutdown => {}
    }
    registry.clear().await;
    listen::remove(&config.control_socket);
    Ok(())
}
