//! Devices: make, adjust, remove. It refuses to touch an interface that does not carry the alias that it should.

use std::{collections::BTreeSet, net::IpAddr};

use spanwire_engine::{Backend, DeviceId, DeviceName, worker::DeviceConfig};

use crate::{
    configuration::SetDevice,
    netlink::{
        link::{Link, LinkChange},
        route::{Route, Target},
        rule::{Family, Rule},
    },
};

use super::{Error, LocalDevices, for_all, switches};

impl LocalDevices {
    /// Creates the device if it is not there, then changes what differs.
    pub(super) async fn apply_device(&self, config: &DeviceConfig) -> Result<(), Error> {
        let DeviceConfig { id, name, port, address, mtu } = config;
        let link = match self.find_link(name).await? {
            Some(link) if is_device(&link, name) && link.alias.as_deref() == Some(&id.alias()) => link,
            Some(link) if self.is_half_made(&link, name).await? => self.mark(&link, id, name).await?,
            Some(_) => return Err(Error::ForeignDevice { device: name.clone() }),
            None => self.create_device(id, name, *mtu).await?,
        };
        self.move_switches_away().await?;
        self.set_switches(name, address.is_some_and(|address| address.is_ipv6()))?;
        self.set_key_and_port(name, *port).await?;
        if link.mtu != *mtu || !link.up {
            let change = LinkChange { mtu: Some(*mtu), up: true, ..LinkChange::default() };
            self.netlink.change_link(link.index, change).await.map_err(Error::Netlink)?;
            self.wrote();
        }
        self.set_address(&link, *address).await?;
        if address.is_some_and(|address| address.is_ipv6()) {
            self.lead_probes(&link).await?;
        }
        self.check_device(config).await
    }

    async fn create_device(&self, id: &DeviceId, name: &DeviceName, mtu: u32) -> Result<Link, Error> {
        match name.backend() {
            Backend::Userspace => {
                self.control.create(name, id.alias(), mtu).await.map_err(Error::Control)?;
                self.wrote();
                self.own_link(name).await
            }
            Backend::Kernel => {
                let made = self.netlink.add_kernel_wireguard(name.as_str(), mtu).await;
                made.map_err(|error| match error.errno() {
                    Some(nix::libc::EOPNOTSUPP) => Error::NoKernelWireguard(error),
                    _ => Error::Netlink(error),
                })?;
                self.wrote();
                let link = self.find_link(name).await?;
                self.mark(&link.ok_or_else(|| Error::NoDevice { device: name.clone() })?, id, name).await
            }
        }
    }

    /// Whether it is a kernel device that was made and not marked before its maker was killed: of the kind and the name,
    /// with nothing that anybody wrote.
    async fn is_half_made(&self, link: &Link, name: &DeviceName) -> Result<bool, Error> {
        if !link.kernel_wireguard || link.alias.is_some() || name.backend() != Backend::Kernel {
            return Ok(false);
        }
        let info = self.configuration(name).await?;
        Ok(info.private_key.is_none() && info.peers.is_empty())
    }

    async fn mark(&self, link: &Link, id: &DeviceId, name: &DeviceName) -> Result<Link, Error> {
        let change = LinkChange { alias: Some(id.alias()), ..LinkChange::default() };
        self.netlink.change_link(link.index, change).await.map_err(Error::Netlink)?;
        self.wrote();
        self.own_link(name).await
    }

    async fn set_key_and_port(&self, name: &DeviceName, port: u16) -> Result<(), Error> {
        let info = self.configuration(name).await?;
        let keyed = info.private_key.as_ref().map(|key| key.public()) == Some(self.public);
        let set = SetDevice {
            private_key: (!keyed).then(|| self.options.secret.clone()),
            listen_port: (info.listen_port != port).then_some(port),
            ..SetDevice::default()
        };
        if set.private_key.is_some() || set.listen_port.is_some() {
            self.set_device(name, &set).await?;
        }
        Ok(())
    }

    /// The new address stands before the old one goes.
    async fn set_address(&self, link: &Link, wanted: Option<IpAddr>) -> Result<(), Error> {
        let there = self.netlink.addresses().await.map_err(Error::Netlink)?;
        let there: Vec<_> =
            there.into_iter().filter(|have| have.index == link.index && have.global).collect();
        let right = |address: IpAddr, prefix: u8| wanted == Some(address) && prefix == host_bits(address);
        if let Some(address) = wanted
            && !there.iter().any(|have| right(have.address, have.prefix))
        {
            self.netlink.add_address(link.index, address).await.map_err(Error::Netlink)?;
            self.wrote();
        }
        for extra in there.iter().filter(|have| !right(have.address, have.prefix)) {
            self.netlink.delete_address(extra).await.map_err(Error::Netlink)?;
            self.wrote();
        }
        Ok(())
    }

    fn set_switches(&self, name: &DeviceName, v6: bool) -> Result<(), Error> {
        for changed in switches::set(&self.sysctl, name, v6).map_err(Error::Switch)? {
            tracing::debug!(%name, changed, "set a switch of the device");
            self.wrote();
        }
        Ok(())
    }

    async fn move_switches_away(&self) -> Result<(), Error> {
        let links = self.netlink.links().await.map_err(Error::Netlink)?;
        let ours = links.iter().filter(|link| link.is_ours()).map(|link| link.name.clone()).collect();
        for change in for_all::move_away(&self.sysctl, &self.options.run_dir, &ours)? {
            tracing::warn!(change, "a switch moved from all interfaces to each that is not ours");
            self.wrote();
        }
        Ok(())
    }

    /// An IPv6 socket that is bound to a device finds only routes over that device, so one is kept that nobody else sees.
    async fn lead_probes(&self, link: &Link) -> Result<(), Error> {
        let (rule, route) = self.probe_path(link);
        let rules = self.netlink.rules(self.options.protocol).await.map_err(Error::Netlink)?;
        if !self.netlink.routes().await.map_err(Error::Netlink)?.contains(&route) {
            self.netlink.put_route(&route).await.map_err(Error::Netlink)?;
            self.wrote();
        }
        if !rules.contains(&rule) {
            self.netlink.add_rule(&rule, self.options.protocol).await.map_err(Error::Netlink)?;
            self.wrote();
        }
        Ok(())
    }

    /// The rule and the route by which IPv6 probes leave by `link`.
    pub(super) fn probe_path(&self, link: &Link) -> (Rule, Route) {
        let table = self.options.probe_table;
        let rule = Rule {
            family: Family::V6,
            priority: self.options.probe_priority(),
            table,
            from: None,
            out: Some(link.name.clone()),
        };
        let route = Route {
            table,
            prefix: ipnet::Ipv6Net::default().into(),
            metric: link.index,
            protocol: self.options.protocol,
            target: Target::Device(link.index),
            source: None,
        };
        (rule, route)
    }

    async fn check_device(&self, config: &DeviceConfig) -> Result<(), Error> {
        let DeviceConfig { id: _, name, port, address, mtu } = config;
        let differs = |what| Error::ReadBack { device: name.clone(), what };
        let link = self.own_link(name).await?;
        let info = self.configuration(name).await?;
        let addresses = self.netlink.addresses().await.map_err(Error::Netlink)?;
        let addresses: BTreeSet<IpAddr> = addresses
            .iter()
            .filter(|have| have.index == link.index && have.global)
            .map(|have| have.address)
            .collect();
        if info.private_key.as_ref().map(|key| key.public()) != Some(self.public) {
            return Err(differs("the key"));
        }
        if info.listen_port != *port {
            return Err(differs("the port"));
        }
        if link.mtu != *mtu || !link.up {
            return Err(differs("MTU or state"));
        }
        if !addresses.iter().eq(address.iter()) {
            return Err(differs("the address"));
        }
        Ok(())
    }

    pub(super) async fn remove_device(&self, name: &DeviceName) -> Result<(), Error> {
        let probes = |rule: &&Rule| rule.out.as_deref() == Some(name.as_str());
        for rule in
            self.netlink.rules(self.options.protocol).await.map_err(Error::Netlink)?.iter().filter(probes)
        {
            self.delete_rule(rule).await?;
        }
        self.endpoints().retain(|(device, _), _| device != name);
        let links = self.netlink.links().await.map_err(Error::Netlink)?;
        let Some(link) = links.iter().find(|link| link.name == name.as_str()) else { return Ok(()) };
        if !link.is_ours() || !is_device(link, name) {
            return Err(Error::ForeignDevice { device: name.clone() });
        }
        match name.backend() {
            Backend::Userspace => self.control.delete(name).await.map_err(Error::Control)?,
            Backend::Kernel => self.netlink.delete_link(link.index).await.map_err(Error::Netlink)?,
        }
        self.wrote();
        if self.find_link(name).await?.is_some() {
            return Err(Error::ReadBack { device: name.clone(), what: "a removed device" });
        }
        // Two devices have one alias while one takes the place of the other.
        let had_successor = links.iter().any(|other| other.alias == link.alias && other.index != link.index);
        if had_successor && self.filter.end_handover().await.map_err(Error::Filter)? {
            self.wrote();
        }
        Ok(())
    }

    async fn find_link(&self, name: &DeviceName) -> Result<Option<Link>, Error> {
        let links = self.netlink.links().await.map_err(Error::Netlink)?;
        Ok(links.into_iter().find(|link| link.name == name.as_str()))
    }

    /// The device, if it is there and ours.
    pub(super) async fn own_link(&self, name: &DeviceName) -> Result<Link, Error> {
        match self.find_link(name).await? {
            None => Err(Error::NoDevice { device: name.clone() }),
            Some(link) if !link.is_ours() || !is_device(&link, name) => {
                Err(Error::ForeignDevice { device: name.clone() })
            }
            Some(link) => Ok(link),
        }
    }
}

/// Whether an interface is of the kind that its name stands for.
pub(super) fn is_device(link: &Link, name: &DeviceName) -> bool {
    link.kernel_wireguard == (name.backend() == Backend::Kernel)
}

fn host_bits(address: IpAddr) -> u8 {
    if address.is_ipv4() { 32 } else { 128 }
}
