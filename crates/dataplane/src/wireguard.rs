//! Reads and changes WireGuard devices of either implementation: the name of a device of ours says which one it is of. It
//! refuses to treat them differently beyond how they are reached.

use std::path::PathBuf;

use spanwire_engine::{Backend, Class, DeviceName, PublicKey};

use crate::{
    configuration::{DeviceInfo, SetDevice},
    kernel, uapi,
};

/// Why a device could not be read or changed.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A device of the process `spanwire dataplane`.
    #[error(transparent)]
    Userspace(uapi::Error),
    /// A device of the kernel.
    #[error(transparent)]
    Kernel(kernel::Error),
}

impl Error {
    /// What the fault asks for.
    pub fn class(&self) -> Class {
        match self {
            Error::Userspace(source) => source.class(),
            Error::Kernel(source) => source.class(),
        }
    }
}

/// See the module.
pub(crate) struct Wireguard {
    userspace: uapi::Client,
    kernel: kernel::Client,
}

impl Wireguard {
    /// With configuration sockets in `uapi_dir`, and the kernel's devices of the caller's network namespace.
    pub(crate) fn open(uapi_dir: PathBuf) -> Result<Self, Error> {
        let kernel = kernel::Client::open().map_err(Error::Kernel)?;
        Ok(Self { userspace: uapi::Client::new(uapi_dir), kernel })
    }

    pub(crate) async fn get(&self, device: &DeviceName) -> Result<DeviceInfo, Error> {
        match device.backend() {
            Backend::Userspace => self.userspace.get(device).await.map_err(Error::Userspace),
            Backend::Kernel => self.kernel.get(device).await.map_err(Error::Kernel),
        }
    }

    /// The device with at least the peers that are named. A userspace device shows those alone: what it costs does not
    /// grow with the others.
    pub(crate) async fn get_peers(
        &self,
        device: &DeviceName,
        peers: &[PublicKey],
    ) -> Result<DeviceInfo, Error> {
        match device.backend() {
            Backend::Userspace => self.userspace.get_peers(device, peers).await.map_err(Error::Userspace),
            Backend::Kernel => self.kernel.get(device).await.map_err(Error::Kernel),
        }
    }

    pub(crate) async fn set(&self, device: &DeviceName, set: &SetDevice) -> Result<(), Error> {
        match device.backend() {
            Backend::Userspace => self.userspace.set(device, set).await.map_err(Error::Userspace),
            Backend::Kernel => self.kernel.set(device, set).await.map_err(Error::Kernel),
        }
    }

    /// Whether the kernel has WireGuard.
    pub(crate) async fn kernel_is_present(&self) -> std::io::Result<()> {
        self.kernel.present().await
    }

    /// What was sent to kernel devices so far.
    pub(crate) fn sent(&self) -> kernel::Sent {
        self.kernel.sent()
    }
}
