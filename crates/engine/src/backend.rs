//! The two implementations of WireGuard. It refuses to prefer one: [`TunnelMode`] says which is asked for.

use std::fmt;

use crate::TunnelMode;

/// Which implementation carries a device.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub enum Backend {
    /// The process `spanwire dataplane`.
    #[default]
    Userspace,
    /// The kernel's own.
    Kernel,
}

impl Backend {
    /// The word used in objects.
    pub fn as_str(self) -> &'static str {
        match self {
            Backend::Userspace => "userspace",
            Backend::Kernel => "kernel",
        }
    }

    /// The one that `mode` asks for on a host whose kernel has WireGuard or has none. Mode `kernel` asks for the kernel's
    /// even there: nothing can be made then, and nothing that is there is taken away for it.
    pub fn wanted(mode: TunnelMode, kernel_has_wireguard: bool) -> Self {
        match mode {
            TunnelMode::Kernel => Backend::Kernel,
            TunnelMode::Auto if kernel_has_wireguard => Backend::Kernel,
            TunnelMode::Auto | TunnelMode::Userspace => Backend::Userspace,
        }
    }

    /// The first letters of the names of its devices.
    pub(crate) fn prefix(self) -> &'static str {
        match self {
            Backend::Userspace => "sw",
            Backend::Kernel => "sk",
        }
    }
}

impl fmt::Display for Backend {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}
