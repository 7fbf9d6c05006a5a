//! Why the host could not be read or changed. It refuses to print a source within its own words.

use std::{io, path::PathBuf};

use ipnet::IpNet;
use spanwire_engine::{Class, DeviceName, PublicKey, port::Fault};

use crate::{control, netlink, nft, sysctl, wireguard};

/// See the module.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The kernel's routes, rules, interfaces or addresses.
    #[error(transparent)]
    Netlink(netlink::Error),
    /// The dataplane process.
    #[error(transparent)]
    Control(control::Error),
    /// A device's configuration.
    #[error(transparent)]
    Configuration(wireguard::Error),
    /// The packet filter.
    #[error(transparent)]
    Filter(nft::Error),
    /// A kernel switch.
    #[error(transparent)]
    Switch(sysctl::Error),
    /// Neither backend is possible here.
    #[error(
        "no WireGuard here: the kernel has none (enable the module `wireguard`) and {node} is missing (load the module \
         `tun` and give the container that device): enable one of the two"
    )]
    NoWireguard {
        /// The device node.
        node: PathBuf,
        /// What the kernel said.
        #[source]
        kernel: io::Error,
    },
    /// A kernel device was asked for and the kernel has no WireGuard.
    #[error(
        "the kernel has no WireGuard, which tunnel mode kernel asks for: enable the module `wireguard` or use mode auto"
    )]
    NoKernelWireguard(#[source] netlink::Error),
    /// The name is used by an interface without our mark.
    #[error("interface {device} is not ours: it is left alone")]
    ForeignDevice {
        /// The name.
        device: DeviceName,
    },
    /// A device that a step speaks of is not there.
    #[error("device {device} is not there")]
    NoDevice {
        /// The name.
        device: DeviceName,
    },
    /// A peer has the key of this host.
    #[error("peer {public_key} on {device} has this gateway's own key: a device would drop it silently")]
    OwnKey {
        /// The device.
        device: DeviceName,
        /// The key.
        public_key: PublicKey,
    },
    /// A prefix has host bits.
    #[error("allowed IP {prefix} of peer {public_key} has host bits: write {}", prefix.trunc())]
    HostBits {
        /// The prefix.
        prefix: IpNet,
        /// The peer.
        public_key: PublicKey,
    },
    /// What was written does not read back.
    #[error("{device} does not show what was written: {what} differs")]
    ReadBack {
        /// The device.
        device: DeviceName,
        /// What differs.
        what: &'static str,
    },
    /// The note of what has to be undone later.
    #[error("could not keep {path}")]
    Note {
        /// The file.
        path: PathBuf,
        /// Why.
        #[source]
        source: io::Error,
    },
}

impl Error {
    /// What the fault asks for.
    pub fn class(&self) -> Class {
        match self {
            Error::Netlink(source) => source.class(),
            Error::Control(source) => source.class(),
            Error::Configuration(source) => source.class(),
            Error::Filter(source) => source.class(),
            Error::Switch(source) => source.class(),
            Error::NoWireguard { .. } | Error::NoKernelWireguard(_) => Class::NeedsHuman,
            Error::ForeignDevice { .. } | Error::OwnKey { .. } | Error::HostBits { .. } => {
                Class::WaitForChange
            }
            Error::NoDevice { .. } | Error::ReadBack { .. } | Error::Note { .. } => Class::Retry,
        }
    }
}

impl Fault for Error {
    fn class(&self) -> Class {
        Error::class(self)
    }
}
