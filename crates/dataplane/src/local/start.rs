//! What is checked before the first pass. It refuses to start without switches of the kernel, a packet filter or any
//! WireGuard.

use std::{io, path::Path};

use crate::{control, netlink::Netlink, nft::Filter, sysctl::Sysctl, wireguard::Wireguard};

use super::{Error, LocalDevices, Options, Writes};

const NODE: &str = "/dev/net/tun";

pub(super) async fn open(options: Options) -> Result<LocalDevices, Error> {
    let sysctl = Sysctl::open(&options.sysctl_dir).map_err(Error::Switch)?;
    let filter = Filter::open().await.map_err(Error::Filter)?;
    let netlink = Netlink::open().map_err(Error::Netlink)?;
    let wireguard = Wireguard::open(options.uapi_dir.clone()).map_err(Error::Configuration)?;
    let kernel = wireguard.kernel_is_present().await;
    tracing::info!(kernel_has_wireguard = kernel.is_ok(), "WireGuard of this host");
    any(kernel, Path::new(NODE))?;
    Ok(LocalDevices {
        public: options.secret.public(),
        netlink,
        control: control::Client::new(options.control_socket.clone()),
        wireguard,
        filter,
        sysctl,
        writes: Writes::default(),
        drain: Default::default(),
        endpoints: Default::default(),
        options,
    })
}

/// Whether there is one to be had: the kernel's, or a device node for a userspace one.
fn any(kernel: io::Result<()>, node: &Path) -> Result<(), Error> {
    match kernel {
        Err(kernel) if !node.exists() => Err(Error::NoWireguard { node: node.to_owned(), kernel }),
        Ok(()) | Err(_) => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn d15_what_is_missing_is_named() {
        let none = || Err(io::ErrorKind::Unsupported.into());
        let error = any(none(), Path::new("/nonexistent/tun")).unwrap_err().to_string();
        assert!(error.contains("`wireguard`") && error.contains("/nonexistent/tun"), "{error}");
        assert!(any(none(), Path::new("/")).is_ok() && any(Ok(()), Path::new("/nonexistent/tun")).is_ok());
    }
}
