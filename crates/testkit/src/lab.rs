//! A network of hosts on one machine: each host is a network namespace, all meet at a switch. It refuses names: the
//! namespaces are anonymous, so none can be left behind and none of another program can be met.

mod error;
mod filter;
mod host;
mod namespace;
mod netlink;
pub mod userns;

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use ipnet::IpNet;

pub use error::LabError;
pub use host::Host;
pub(crate) use namespace::working_directory;
pub use namespace::{Namespace, SOCKET_DIRECTORY};

/// The device of each host that leads to the switch.
pub const UPLINK: &str = "eth0";
const BRIDGE: &str = "switch";
const LAST_HOST: u8 = 250;

/// A switch and what hangs on it. Dropping it and its hosts removes everything.
#[derive(Debug)]
pub struct Lab {
    switch: Namespace,
    used: u8,
    mtu: u32,
}

/// How a host differs from a common one.
#[derive(Debug, Clone, Copy)]
pub struct HostOptions {
    /// `net.ipv4.conf.all.rp_filter` and `default.rp_filter`.
    pub rp_filter: u8,
    /// Whether the host forwards packets, v4 and v6.
    pub forwarding: bool,
}

impl Default for HostOptions {
    fn default() -> Self {
        Self { rp_filter: 2, forwarding: true }
    }
}

impl Lab {
    /// A switch without hosts.
    ///
    /// # Errors
    /// Namespaces may be forbidden here: the error says which call was refused.
    pub fn new() -> Result<Self, LabError> {
        Self::with_mtu(1500)
    }

    /// A switch whose links carry packets of `mtu` bytes.
    ///
    /// # Errors
    /// Like [`Lab::new`].
    pub fn with_mtu(mtu: u32) -> Result<Self, LabError> {
        let switch = Namespace::new("switch")?;
        switch.set_sysctl("net/ipv6/conf/default/accept_dad", "0")?;
        switch.set_sysctl("net/ipv6/conf/all/accept_dad", "0")?;
        let lab = Self { switch, used: 0, mtu };
        netlink::add_bridge(&lab.switch, BRIDGE)?;
        for address in [v4(254), v6(254)] {
            netlink::add_address(&lab.switch, BRIDGE, address)?;
        }
        Ok(lab)
    }

    /// Why no lab can be made here; `None`: one can.
    pub fn why_not() -> Option<LabError> {
        Namespace::new("probe").err()
    }

    /// A host on the switch: `eth0` with 192.0.2.n/24 and 2001:db8::n/64, default routes to the switch, loopback up.
    ///
    /// # Errors
    /// The kernel's refusal, with the step that was refused.
    pub fn host(&mut self, name: &str) -> Result<Host, LabError> {
        self.host_with(name, HostOptions::default())
    }

    /// A host that differs from a common one.
    ///
    /// # Errors
    /// Like [`Lab::host`].
    pub fn host_with(&mut self, name: &str, options: HostOptions) -> Result<Host, LabError> {
        let number = self.next_number()?;
        let namespace = new_namespace(name, options)?;
        let port = self.plug(&namespace, UPLINK, number)?;
        Ok(Host::new(name, namespace, self.switch.clone(), port, [v4(number).addr(), v6(number).addr()]))
    }

    /// A host behind a router that masquerades: `eth0` with 198.51.100.2/24 behind the router's 192.0.2.n. The
    /// router is the second host.
    ///
    /// # Errors
    /// Like [`Lab::host`].
    pub fn host_behind_nat(&mut self, name: &str) -> Result<(Host, Host), LabError> {
        let router = self.host_with(&format!("{name}-nat"), HostOptions::default())?;
        let namespace = new_namespace(name, HostOptions::default())?;
        let inner: IpNet = IpNet::new_assert(Ipv4Addr::new(198, 51, 100, 2).into(), 24);
        let gateway: IpNet = IpNet::new_assert(Ipv4Addr::new(198, 51, 100, 1).into(), 24);
        let veth = netlink::Veth { here: "inner", there: UPLINK, mtu: self.mtu };
        netlink::add_veth(router.namespace(), &namespace, veth)?;
        netlink::add_address(router.namespace(), "inner", gateway)?;
        netlink::add_address(&namespace, UPLINK, inner)?;
        netlink::add_default_route(&namespace, gateway.addr())?;
        router.masquerade(UPLINK)?;
        let inside = [inner.addr(), IpAddr::from(Ipv6Addr::UNSPECIFIED)];
        let host = Host::new(name, namespace, router.namespace().clone(), "inner".to_owned(), inside);
        Ok((host, router))
    }

    fn next_number(&mut self) -> Result<u8, LabError> {
        if self.used >= LAST_HOST {
            return Err(LabError::TooManyHosts { limit: LAST_HOST });
        }
        self.used += 1;
        Ok(self.used)
    }

    fn plug(&self, namespace: &Namespace, device: &str, number: u8) -> Result<String, LabError> {
        let port = format!("port{number}");
        netlink::add_veth(
            &self.switch,
            namespace,
            netlink::Veth { here: &port, there: device, mtu: self.mtu },
        )?;
        netlink::attach(&self.switch, &port, BRIDGE)?;
        for (address, gateway) in [(v4(number), v4(254)), (v6(number), v6(254))] {
            netlink::add_address(namespace, device, address)?;
            netlink::add_default_route(namespace, gateway.addr())?;
        }
        Ok(port)
    }
}

fn new_namespace(name: &str, options: HostOptions) -> Result<Namespace, LabError> {
    let namespace = Namespace::new(name)?;
    let forwarding = u8::from(options.forwarding).to_string();
    let rp_filter = options.rp_filter.to_string();
    for (key, value) in [
        ("net/ipv4/ip_forward", forwarding.as_str()),
        ("net/ipv6/conf/all/accept_dad", "0"),
        ("net/ipv6/conf/default/accept_dad", "0"),
        ("net/ipv6/conf/all/forwarding", &forwarding),
        ("net/ipv4/conf/all/rp_filter", &rp_filter),
        ("net/ipv4/conf/default/rp_filter", &rp_filter),
    ] {
        namespace.set_sysctl(key, value)?;
    }
    netlink::set_up(&namespace, "lo", true)?;
    Ok(namespace)
}

fn v4(number: u8) -> IpNet {
    IpNet::new_assert(Ipv4Addr::new(192, 0, 2, number).into(), 24)
}

fn v6(number: u8) -> IpNet {
    IpNet::new_assert(Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, number.into()).into(), 64)
}
