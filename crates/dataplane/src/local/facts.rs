//! What a plan has to know of the rest of the host: ports in use, prefixes, MTU, address. It refuses to count what is ours.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    net::IpAddr,
};

use ipnet::IpNet;

use crate::netlink::{
    self, Netlink,
    address::Address,
    link::Link,
    route::{Route, Target},
};

/// The table of a host's common routes.
const MAIN: u32 = 254;
/// A larger MTU of the underlay is not made use of: what a userspace device reads at once is sized for this.
const LARGEST: u32 = 9216;
/// The table of its own addresses.
const LOCAL: u32 = 255;

/// UDP ports in use in the namespace of the calling thread.
pub(super) fn used_ports() -> BTreeSet<u16> {
    let read = |name: &str| fs::read_to_string(format!("/proc/thread-self/net/{name}")).unwrap_or_default();
    // A host without IPv6 has no udp6.
    [read("udp"), read("udp6")].iter().flat_map(|text| text.lines().skip(1)).filter_map(local_port).collect()
}

/// The port in a line such as `  27: 00000000:CA6C 00000000:0000 07 …`.
fn local_port(line: &str) -> Option<u16> {
    let (_, port) = line.split_whitespace().nth(1)?.rsplit_once(':')?;
    u16::from_str_radix(port, 16).ok()
}

/// Networks of interfaces that are not ours, and routes that are not ours, without default and link-local ones.
pub(super) fn prefixes(links: &[Link], addresses: &[Address], routes: &[Route], protocol: u8) -> Vec<IpNet> {
    let ours: BTreeSet<u32> = links.iter().filter(|link| link.is_ours()).map(|link| link.index).collect();
    let of_addresses = addresses
        .iter()
        .filter(|address| !ours.contains(&address.index))
        .filter_map(|address| IpNet::new(address.address, address.prefix).ok());
    let of_routes = routes.iter().filter(|route| route.protocol != protocol && route.table != LOCAL);
    let of_routes = of_routes.filter(|route| match route.target {
        Target::Device(index) => !ours.contains(&index),
        Target::Unreachable | Target::Throw | Target::Other => false,
    });
    let all = of_addresses.chain(of_routes.map(|route| route.prefix)).map(|prefix| prefix.trunc());
    let mut all: Vec<IpNet> =
        all.filter(|prefix| prefix.prefix_len() > 0 && !is_link_local(prefix)).collect();
    all.sort();
    all.dedup();
    all
}

/// Addresses of interfaces that are not ours.
pub(super) fn addresses(links: &[Link], addresses: &[Address]) -> BTreeSet<IpAddr> {
    let foreign =
        |address: &&Address| links.iter().any(|link| link.index == address.index && !link.is_ours());
    addresses.iter().filter(foreign).map(|address| address.address).collect()
}

fn is_link_local(prefix: &IpNet) -> bool {
    match prefix {
        IpNet::V4(net) => net.addr().is_link_local() || net.addr().is_multicast(),
        IpNet::V6(net) => net.addr().is_unicast_link_local() || net.addr().is_multicast(),
    }
}

/// The smallest MTU of the interfaces with a default route; without one, of those with a global address.
pub(super) fn underlay_mtu(links: &[Link], addresses: &[Address], routes: &[Route], protocol: u8) -> u32 {
    let outward: BTreeSet<u32> = defaults(routes, protocol).map(|(_, index)| index).collect();
    let usable = |link: &&Link| link.up && !link.loopback && !link.is_ours();
    let by_default = links.iter().filter(usable).filter(|link| outward.contains(&link.index));
    let addressed = |link: &&Link| addresses.iter().any(|have| have.index == link.index && have.global);
    let by_address = links.iter().filter(usable).filter(addressed);
    let smallest = by_default.map(|link| link.mtu).min();
    smallest.or_else(|| by_address.map(|link| link.mtu).min()).unwrap_or(1500).min(LARGEST)
}

/// Default routes of the main table that are not ours, with their interface.
fn defaults(routes: &[Route], protocol: u8) -> impl Iterator<Item = (&Route, u32)> {
    let fits = move |route: &&Route| {
        route.table == MAIN && route.prefix.prefix_len() == 0 && route.protocol != protocol
    };
    routes.iter().filter(fits).filter_map(|route| match route.target {
        Target::Device(index) => Some((route, index)),
        Target::Unreachable | Target::Throw | Target::Other => None,
    })
}

pub(super) async fn default_endpoint(
    netlink: &Netlink,
    protocol: u8,
) -> Result<Option<IpAddr>, netlink::Error> {
    let (links, addresses) = (netlink.links().await?, netlink.addresses().await?);
    Ok(endpoint(&links, &addresses, &netlink.routes().await?, protocol))
}

fn endpoint(links: &[Link], addresses: &[Address], routes: &[Route], protocol: u8) -> Option<IpAddr> {
    let usable: BTreeMap<u32, &Link> = links
        .iter()
        .filter(|link| link.up && !link.loopback && !link.is_ours())
        .map(|link| (link.index, link))
        .collect();
    let global = |index: u32, v4: bool| {
        let fits = move |have: &&Address| have.index == index && have.global && have.address.is_ipv4() == v4;
        addresses.iter().find(fits).map(|have| have.address)
    };
    let mut ways: Vec<(&Route, u32)> =
        defaults(routes, protocol).filter(|(_, index)| usable.contains_key(index)).collect();
    ways.sort_by_key(|(route, _)| (route.prefix.addr().is_ipv6(), route.metric));
    let by_route = ways
        .iter()
        .find_map(|(route, index)| route.source.or_else(|| global(*index, route.prefix.addr().is_ipv4())));
    by_route.or_else(|| {
        [true, false].into_iter().find_map(|v4| usable.keys().find_map(|index| global(*index, v4)))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn link(index: u32, mtu: u32, alias: Option<&str>) -> Link {
        let alias = alias.map(str::to_owned);
        Link {
            index,
            name: format!("i{index}"),
            alias,
            mtu,
            queue: 0,
            up: true,
            loopback: index == 1,
            kernel_wireguard: false,
        }
    }

    fn address(index: u32, text: &str) -> Address {
        let (address, prefix) = text.split_once('/').unwrap();
        Address {
            index,
            address: address.parse().unwrap(),
            prefix: prefix.parse().unwrap(),
            global: index != 1,
        }
    }

    fn route(prefix: &str, index: u32, metric: u32, protocol: u8) -> Route {
        let prefix = prefix.parse().unwrap();
        Route { table: MAIN, prefix, metric, protocol, target: Target::Device(index), source: None }
    }

    fn host() -> (Vec<Link>, Vec<Address>, Vec<Route>) {
        let ours = Some("spanwire/demo/downlink/-");
        let links = vec![link(1, 65536, None), link(2, 1500, None), link(3, 1400, None), link(4, 1420, ours)];
        let addresses = vec![
            address(1, "127.0.0.1/8"),
            address(2, "192.0.2.7/24"),
            address(3, "198.51.100.7/24"),
            address(4, "10.9.0.1/32"),
        ];
        (links, addresses, vec![route("192.0.2.0/24", 2, 0, 2), route("10.9.0.0/16", 4, 200, 83)])
    }

    #[test]
    fn d18_only_what_is_not_ours_counts() {
        let (links, addresses, routes) = host();
        let found: Vec<String> =
            prefixes(&links, &addresses, &routes, 83).iter().map(IpNet::to_string).collect();
        assert_eq!(found, ["127.0.0.0/8", "192.0.2.0/24", "198.51.100.0/24"]);
    }

    #[test]
    fn the_underlay_is_where_the_default_route_leads() {
        let (links, addresses, mut routes) = host();
        assert_eq!(underlay_mtu(&links, &addresses, &routes, 83), 1400);
        assert_eq!(endpoint(&links, &addresses, &routes, 83), Some("192.0.2.7".parse().unwrap()));
        routes.extend([
            route("0.0.0.0/0", 2, 100, 4),
            route("0.0.0.0/0", 3, 50, 4),
            route("0.0.0.0/0", 4, 1, 83),
        ]);
        assert_eq!(endpoint(&links, &addresses, &routes, 83), Some("198.51.100.7".parse().unwrap()));
        routes.retain(|route| !matches!(route.target, Target::Device(3)));
        assert_eq!(underlay_mtu(&links, &addresses, &routes, 83), 1500);
    }

    #[test]
    fn ports_are_read_from_the_kernels_table() {
        let line = "  27: 00000000:CA6C 00000000:0000 07 00000000:00000000 00:00000000 00000000";
        assert_eq!(local_port(line), Some(51820));
        assert_eq!(local_port("  sl  local_address"), None);
    }
}
