//! Routes: list, put, delete. It refuses to delete by anything less than table, prefix, metric and protocol.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use ipnet::IpNet;
use netlink_packet_core::{NLM_F_CREATE, NLM_F_REPLACE};
use netlink_packet_route::{
    AddressFamily, RouteNetlinkMessage,
    route::{RouteAddress, RouteAttribute, RouteMessage, RouteProtocol, RouteScope, RouteType},
};

use super::{
    Error, Netlink,
    rule::{Family, address_family},
};

/// What a route does with a packet, as far as it matters here.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Target {
    /// It leaves by an interface.
    Device(u32),
    /// It is answered with "unreachable".
    Unreachable,
    /// The lookup goes on in the next table.
    Throw,
    /// Anything else; never written by us.
    Other,
}

/// One route.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Route {
    pub(crate) table: u32,
    pub(crate) prefix: IpNet,
    pub(crate) metric: u32,
    pub(crate) protocol: u8,
    pub(crate) target: Target,
    pub(crate) source: Option<IpAddr>,
}

impl Netlink {
    pub(crate) async fn routes(&self) -> Result<Vec<Route>, Error> {
        let mut routes = Vec::new();
        for &family in Family::present() {
            let mut message = RouteMessage::default();
            message.header.address_family = address_family(family);
            let found = self.dump("routes", &RouteNetlinkMessage::GetRoute(message)).await?;
            routes.extend(found.into_iter().filter_map(read));
        }
        Ok(routes)
    }

    /// The routes of one table, protocol and family; the kernel leaves out the others.
    pub(crate) async fn routes_of(&self, table: u32, protocol: u8, v4: bool) -> Result<Vec<Route>, Error> {
        if !v4 && !Family::present().contains(&Family::V6) {
            return Ok(Vec::new());
        }
        let mut message = RouteMessage::default();
        message.header.address_family = if v4 { AddressFamily::Inet } else { AddressFamily::Inet6 };
        message.header.protocol = RouteProtocol::from(protocol);
        message.attributes = vec![RouteAttribute::Table(table)];
        match self.dump("routes", &RouteNetlinkMessage::GetRoute(message)).await {
            Ok(found) => {
                let ours = |route: &Route| route.table == table && route.protocol == protocol;
                Ok(found.into_iter().filter_map(read).filter(ours).collect())
            }
            // There is no such table yet.
            Err(error) if error.errno() == Some(nix::libc::ENOENT) => Ok(Vec::new()),
            Err(error) => Err(error),
        }
    }

    /// Makes a route, or replaces the one with the same table, prefix and metric in one step.
    pub(crate) async fn put_route(&self, route: &Route) -> Result<(), Error> {
        let what = format!("put route {} into table {}", route.prefix, route.table);
        let message = RouteNetlinkMessage::NewRoute(write(route));
        self.write(what, NLM_F_CREATE | NLM_F_REPLACE, message).await
    }

    pub(crate) async fn delete_route(&self, route: &Route) -> Result<(), Error> {
        let what = format!("delete route {} from table {}", route.prefix, route.table);
        self.write(what, 0, RouteNetlinkMessage::DelRoute(write(route))).await
    }
}

fn write(route: &Route) -> RouteMessage {
    let mut message = RouteMessage::default();
    let v4 = route.prefix.addr().is_ipv4();
    message.header.address_family = if v4 { AddressFamily::Inet } else { AddressFamily::Inet6 };
    message.header.destination_prefix_length = route.prefix.prefix_len();
    message.header.protocol = RouteProtocol::from(route.protocol);
    message.attributes = vec![
        RouteAttribute::Table(route.table),
        RouteAttribute::Destination(RouteAddress::from(route.prefix.network())),
        RouteAttribute::Priority(route.metric),
    ];
    (message.header.kind, message.header.scope) = match route.target {
        Target::Device(index) => {
            message.attributes.push(RouteAttribute::Oif(index));
            (RouteType::Unicast, if v4 { RouteScope::Link } else { RouteScope::Universe })
        }
        Target::Unreachable | Target::Other => (RouteType::Unreachable, RouteScope::Universe),
        Target::Throw => (RouteType::Throw, RouteScope::Universe),
    };
    message.attributes.extend(route.source.map(|source| RouteAttribute::PrefSource(source.into())));
    message
}

fn read(message: RouteNetlinkMessage) -> Option<Route> {
    let RouteNetlinkMessage::NewRoute(message) = message else { return None };
    let unspecified = match message.header.address_family {
        AddressFamily::Inet => IpAddr::from(Ipv4Addr::UNSPECIFIED),
        AddressFamily::Inet6 => IpAddr::from(Ipv6Addr::UNSPECIFIED),
        _ => return None,
    };
    let (mut table, mut metric) = (u32::from(message.header.table), 0);
    let (mut destination, mut source, mut device) = (unspecified, None, None);
    for attribute in &message.attributes {
        match attribute {
            RouteAttribute::Table(number) => table = *number,
            RouteAttribute::Priority(number) => metric = *number,
            RouteAttribute::Destination(address) => destination = ip(address)?,
            RouteAttribute::PrefSource(address) => source = ip(address),
            RouteAttribute::Oif(index) => device = Some(*index),
            _ => {}
        }
    }
    let target = match (message.header.kind, device) {
        (RouteType::Unicast, Some(index)) => Target::Device(index),
        (RouteType::Unreachable, _) => Target::Unreachable,
        (RouteType::Throw, _) => Target::Throw,
        _ => Target::Other,
    };
    let prefix = IpNet::new(destination, message.header.destination_prefix_length).ok()?;
    let protocol = u8::from(message.header.protocol);
    Some(Route { table, prefix, metric, protocol, target, source })
}

fn ip(address: &RouteAddress) -> Option<IpAddr> {
    match address {
        RouteAddress::Inet(address) => Some((*address).into()),
        RouteAddress::Inet6(address) => Some((*address).into()),
        _ => None,
    }
}
