//! The links, addresses and routes of the lab, by netlink. It refuses devices that the lab did not name itself.

use std::{
    future::Future,
    net::{IpAddr, Ipv4Addr, Ipv6Addr},
    os::fd::AsRawFd,
};

use futures::TryStreamExt;
use ipnet::IpNet;
use netlink_packet_route::{
    link::{InfoData, InfoVeth},
    route::RouteMessage,
};
use rtnetlink::{Handle, LinkBridge, LinkUnspec, LinkVeth, RouteMessageBuilder};

use super::{LabError, Namespace};

/// A pair of devices.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Veth<'a> {
    /// Its end in the first namespace.
    pub(crate) here: &'a str,
    /// Its end in the second namespace.
    pub(crate) there: &'a str,
    /// MTU of both ends in bytes.
    pub(crate) mtu: u32,
}

/// Adds a bridge and sets it up.
pub(crate) fn add_bridge(at: &Namespace, name: &str) -> Result<(), LabError> {
    let message = LinkBridge::new(name).build();
    request(at, "adding", name, |handle| async move { handle.link().add(message).execute().await })
}

/// Adds a veth pair between two namespaces and sets both ends up.
pub(crate) fn add_veth(at: &Namespace, other: &Namespace, pair: Veth<'_>) -> Result<(), LabError> {
    let peer =
        LinkUnspec::new_with_name(pair.there).mtu(pair.mtu).setns_by_fd(other.net().as_raw_fd()).build();
    let message = LinkVeth::new(pair.here, pair.there)
        .set_info_data(InfoData::Veth(InfoVeth::Peer(peer)))
        .mtu(pair.mtu)
        .build();
    request(at, "adding", pair.here, |handle| async move { handle.link().add(message).execute().await })?;
    set_up(at, pair.here, true)?;
    set_up(other, pair.there, true)
}

/// Makes a device a port of a bridge.
pub(crate) fn attach(at: &Namespace, device: &str, bridge: &str) -> Result<(), LabError> {
    let controller = index(at, bridge)?;
    let message = LinkUnspec::new_with_name(device).controller(controller).build();
    request(at, "attaching", device, |handle| async move { handle.link().set(message).execute().await })
}

/// Sets a device up or down.
pub(crate) fn set_up(at: &Namespace, device: &str, up: bool) -> Result<(), LabError> {
    let link = LinkUnspec::new_with_name(device);
    let message = if up { link.up() } else { link.down() }.build();
    request(at, "setting", device, |handle| async move { handle.link().set(message).execute().await })
}

/// Changes the MTU of a device.
pub(crate) fn set_mtu(at: &Namespace, device: &str, mtu: u32) -> Result<(), LabError> {
    let message = LinkUnspec::new_with_name(device).mtu(mtu).build();
    request(at, "setting the MTU", device, |handle| async move { handle.link().set(message).execute().await })
}

/// Deletes a device.
pub(crate) fn delete(at: &Namespace, device: &str) -> Result<(), LabError> {
    let index = index(at, device)?;
    request(at, "deleting", device, |handle| async move { handle.link().del(index).execute().await })
}

/// Adds an address to a device.
pub(crate) fn add_address(at: &Namespace, device: &str, address: IpNet) -> Result<(), LabError> {
    let index = index(at, device)?;
    let (ip, length) = (address.addr(), address.prefix_len());
    request(at, "adding an address", device, |handle| async move {
        handle.address().add(index, ip, length).execute().await
    })
}

/// Leads everything else to `gateway`.
pub(crate) fn add_default_route(at: &Namespace, gateway: IpAddr) -> Result<(), LabError> {
    let route: RouteMessage = match gateway {
        IpAddr::V4(gateway) => RouteMessageBuilder::<Ipv4Addr>::new().gateway(gateway).build(),
        IpAddr::V6(gateway) => RouteMessageBuilder::<Ipv6Addr>::new().gateway(gateway).build(),
    };
    request(
        at,
        "adding a default route",
        "",
        |handle| async move { handle.route().add(route).execute().await },
    )
}

/// The index of a device.
pub(crate) fn index(at: &Namespace, device: &str) -> Result<u32, LabError> {
    let name = device.to_owned();
    let found = request(at, "looking up", device, |handle| async move {
        handle.link().get().match_name(name).execute().try_next().await
    })?;
    let missing = || LabError::NoDevice { namespace: at.name().to_owned(), device: device.to_owned() };
    Ok(found.ok_or_else(missing)?.header.index)
}

/// Sends one request from inside the namespace and waits for its answer.
fn request<T, F>(
    at: &Namespace,
    action: &'static str,
    device: &str,
    send: impl FnOnce(Handle) -> F + Send,
) -> Result<T, LabError>
where
    T: Send,
    F: Future<Output = Result<T, rtnetlink::Error>>,
{
    let failed = |source| LabError::Netlink { namespace: at.name().to_owned(), source };
    at.run(|| {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_io().build().map_err(failed)?;
        runtime.block_on(async {
            let (connection, handle, _) = rtnetlink::new_connection().map_err(failed)?;
            tokio::spawn(connection);
            send(handle).await.map_err(|source| LabError::Request {
                namespace: at.name().to_owned(),
                action,
                device: device.to_owned(),
                source: Box::new(source),
            })
        })
    })?
}
