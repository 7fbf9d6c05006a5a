//! Tunnel addresses. It refuses to move one that is taken, and to give out one that a leaver still has.

use std::{collections::BTreeSet, net::IpAddr};

use ipnet::IpNet;

/// The address for a newcomer: `earlier` if it is inside `cidr` and free, else the lowest free host address. `None`:
/// there is none left. Network and broadcast addresses are not given out where the prefix has them.
pub fn allocate(cidr: IpNet, taken: &BTreeSet<IpAddr>, earlier: Option<IpAddr>) -> Option<IpAddr> {
    let usable = |address: &IpAddr| {
        let edge = match cidr {
            IpNet::V4(net) if net.prefix_len() < 31 => {
                *address == IpAddr::V4(net.network()) || *address == IpAddr::V4(net.broadcast())
            }
            IpNet::V6(net) if net.prefix_len() < 127 => *address == IpAddr::V6(net.network()),
            IpNet::V4(_) | IpNet::V6(_) => false,
        };
        cidr.contains(address) && !edge && !taken.contains(address)
    };
    earlier.filter(usable).or_else(|| cidr.hosts().find(usable))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn net(text: &str) -> IpNet {
        text.parse().unwrap()
    }

    fn ip(text: &str) -> IpAddr {
        text.parse().unwrap()
    }

    #[test]
    fn a3_a_30_has_two_addresses() {
        let first = allocate(net("10.0.0.0/30"), &BTreeSet::new(), None).unwrap();
        let second = allocate(net("10.0.0.0/30"), &BTreeSet::from([first]), None).unwrap();
        assert_eq!((first, second), (ip("10.0.0.1"), ip("10.0.0.2")));
        assert_eq!(allocate(net("10.0.0.0/30"), &BTreeSet::from([first, second]), None), None);
    }

    #[test]
    fn a4_an_earlier_address_comes_back_if_it_is_free() {
        let cidr = net("10.0.0.0/24");
        assert_eq!(allocate(cidr, &BTreeSet::new(), Some(ip("10.0.0.7"))), Some(ip("10.0.0.7")));
        assert_eq!(
            allocate(cidr, &BTreeSet::from([ip("10.0.0.7")]), Some(ip("10.0.0.7"))),
            Some(ip("10.0.0.1"))
        );
        assert_eq!(allocate(cidr, &BTreeSet::new(), Some(ip("10.9.0.7"))), Some(ip("10.0.0.1")));
    }

    #[test]
    fn a5_v6() {
        assert_eq!(allocate(net("fd00::/64"), &BTreeSet::new(), None), Some(ip("fd00::1")));
    }
}
