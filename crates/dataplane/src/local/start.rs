//! What is checked before the first pass. It refuses to start without a packet filter or without any WireGuard.

use std::path::Path;

use spanwire_engine::TunnelMode;

use crate::{control, netlink, netlink::Netlink, nft::Filter, uapi};

use super::{Backend, Error, LocalDevices, Options};

const NODE: &str = "/dev/net/tun";
/// Made and removed at once, to see whether the kernel can.
const TRIAL: &str = "sw-trial";

pub(super) async fn open(options: Options) -> Result<LocalDevices, Error> {
    let filter = Filter::open().await.map_err(Error::Filter)?;
    let netlink = Netlink::open().map_err(Error::Netlink)?;
    let backend = backend(&netlink, options.mode, Path::new(NODE)).await?;
    tracing::info!(backend = backend.as_str(), "WireGuard of this host");
    Ok(LocalDevices {
        public: options.secret.public(),
        backend,
        netlink,
        control: control::Client::new(options.control_socket.clone()),
        uapi: uapi::Client::new(options.uapi_dir.clone()),
        filter,
        writes: 0.into(),
        drain: Default::default(),
        endpoints: Default::default(),
        options,
    })
}

async fn backend(netlink: &Netlink, mode: TunnelMode, node: &Path) -> Result<Backend, Error> {
    match mode {
        TunnelMode::Userspace => Ok(Backend::Userspace),
        TunnelMode::Kernel => match try_kernel(netlink).await {
            Ok(()) => Err(Error::KernelModeUnsupported),
            Err(kernel) => Err(Error::NoKernelWireguard(kernel)),
        },
        TunnelMode::Auto => match try_kernel(netlink).await {
            Err(kernel) if !node.exists() => Err(Error::NoWireguard { node: node.to_owned(), kernel }),
            Ok(()) | Err(_) => Ok(Backend::Userspace),
        },
    }
}

/// Whether the kernel makes WireGuard devices.
async fn try_kernel(netlink: &Netlink) -> Result<(), netlink::Error> {
    netlink.add_kernel_wireguard(TRIAL).await?;
    let links = netlink.links().await?;
    for link in links.iter().filter(|link| link.name == TRIAL) {
        netlink.delete_link(link.index).await?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn d14_d15_what_is_missing_is_named() {
        let netlink = Netlink::open().unwrap();
        if netlink
            .add_kernel_wireguard("lo")
            .await
            .is_err_and(|error| error.errno() == Some(nix::libc::EEXIST))
        {
            // A kernel with WireGuard gets as far as the name; nothing to see here.
            return;
        }
        let auto = backend(&netlink, TunnelMode::Auto, Path::new("/nonexistent/tun")).await.unwrap_err();
        assert!(auto.to_string().contains("`wireguard`") && auto.to_string().contains("/nonexistent/tun"));
        let kernel = backend(&netlink, TunnelMode::Kernel, Path::new("/")).await.unwrap_err();
        assert!(kernel.to_string().contains("kernel has no WireGuard"), "{kernel}");
        assert_eq!(backend(&netlink, TunnelMode::Auto, Path::new("/")).await.unwrap(), Backend::Userspace);
    }
}
