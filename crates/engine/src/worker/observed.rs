//! What is there right now, read from the kernel and the devices at every pass. It refuses to remember.

use std::{
    collections::{BTreeMap, BTreeSet},
    net::{IpAddr, SocketAddr},
    time::Duration,
};

use ipnet::IpNet;

use crate::{Backend, DeviceId, DeviceName, LinkId, PublicKey};

use super::step::RouteKind;

/// One host. Only what is ours is listed, but for the fields that say otherwise.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Host {
    /// Our devices, found by their ifalias. A device whose configuration could not be read is in `unreadable`. Of an
    /// identity that has a device of each backend this is the kernel's.
    pub devices: BTreeMap<DeviceId, ObservedDevice>,
    /// The userspace devices of identities that have one of each backend: one of the two takes the place of the other.
    pub beside: BTreeMap<DeviceId, ObservedDevice>,
    /// Devices of ours that could not be read, with the cause: unknown, never absent.
    pub unreadable: BTreeMap<DeviceId, String>,
    /// Our routing tables, by number: routes and rules with our protocol number.
    pub tables: BTreeMap<u32, ObservedTable>,
    /// Digest of the packet filter table that stands and is intact; `None`: absent or changed by others.
    pub firewall: Option<String>,
    /// Whether devices are made by the kernel's own WireGuard.
    pub kernel_wireguard: bool,
    /// UDP ports in use on this host, by whomever.
    pub used_ports: BTreeSet<u16>,
    /// Prefixes of interfaces and routes that are not ours, without default routes.
    pub host_prefixes: Vec<IpNet>,
    /// Addresses of interfaces that are not ours.
    pub addresses: BTreeSet<IpAddr>,
    /// The smallest MTU of the interfaces that lead to the underlay, in bytes.
    pub underlay_mtu: u32,
    /// Addresses of endpoints' host names, as resolved last. Literal addresses need no entry.
    pub resolved: BTreeMap<String, IpAddr>,
    /// What is known of each link from probes and counters. No entry: nothing known (yet).
    pub evidence: BTreeMap<LinkId, Evidence>,
}

impl Host {
    /// Notes a device.
    pub fn add_device(&mut self, id: DeviceId, device: ObservedDevice) {
        let other = match device.backend() {
            Backend::Kernel => self.devices.insert(id.clone(), device),
            Backend::Userspace if self.devices.contains_key(&id) => Some(device),
            Backend::Userspace => self.devices.insert(id.clone(), device),
        };
        self.beside.extend(other.map(|other| (id, other)));
    }

    /// The device of this name.
    pub fn device_named(&mut self, name: &DeviceName) -> Option<&mut ObservedDevice> {
        let mut devices = self.devices.values_mut().chain(self.beside.values_mut());
        devices.find(|device| device.name.as_ref() == Some(name))
    }

    /// Forgets a device and, as in the kernel, the routes over it; rules by its name stay.
    pub fn remove_device(&mut self, name: &DeviceName) {
        let (devices, beside) = (std::mem::take(&mut self.devices), std::mem::take(&mut self.beside));
        let stays = |(_, device): &(DeviceId, ObservedDevice)| device.name.as_ref() != Some(name);
        for (id, device) in devices.into_iter().chain(beside).filter(stays) {
            self.add_device(id, device);
        }
        for table in self.tables.values_mut() {
            table.routes.retain(|_, route| route.device != *name);
        }
    }

    /// The device of an identity: the one of this backend, or else the one of the other.
    pub(in crate::worker) fn device(&self, id: &DeviceId, backend: Backend) -> Option<&ObservedDevice> {
        let both = || self.devices.get(id).into_iter().chain(self.beside.get(id));
        both().find(|device| device.backend() == backend).or_else(|| both().next())
    }

    /// The address of a host name: literal, or as resolved last.
    pub(super) fn address_of(&self, name: &str) -> Option<IpAddr> {
        name.parse().ok().or_else(|| self.resolved.get(name).copied())
    }
}

/// A device.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ObservedDevice {
    /// Its name; empty only in tests.
    pub name: Option<DeviceName>,
    /// Kernel index; a changed index is another device.
    pub index: u32,
    /// UDP port on which it listens.
    pub port: u16,
    /// Public half of its private key; `None`: no key set.
    pub public_key: Option<PublicKey>,
    /// Its addresses.
    pub addresses: BTreeSet<IpAddr>,
    /// Its MTU in bytes.
    pub mtu: u32,
    /// Whether it is up, and reverse-path filtering and redirects on it are off.
    pub ready: bool,
    /// Its peers.
    pub peers: BTreeMap<PublicKey, ObservedPeer>,
}

impl ObservedDevice {
    /// The implementation that it is of.
    pub fn backend(&self) -> Backend {
        self.name.as_ref().map_or(Backend::Userspace, DeviceName::backend)
    }
}

/// A peer on a device.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ObservedPeer {
    /// Allowed IPs.
    pub allowed_ips: BTreeSet<IpNet>,
    /// The endpoint that is used now: set or learned.
    pub endpoint: Option<SocketAddr>,
    /// Persistent keepalive; zero: off.
    pub keepalive: Duration,
}

/// One of our routing tables.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ObservedTable {
    /// Routes over devices, by kind (which is their metric) and prefix.
    pub routes: BTreeMap<(RouteKind, IpNet), ObservedRoute>,
    /// Unreachable routes that end the table.
    pub unreachable: BTreeSet<IpNet>,
    /// Throw routes: own prefixes, left to the host's other tables.
    pub throw: BTreeSet<IpNet>,
    /// Devices with an `iif` rule that leads here.
    pub rules: BTreeSet<DeviceName>,
    /// Whether the rules for the host's own traffic stand, for both families.
    pub host_rule: bool,
}

/// A route.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct ObservedRoute {
    /// The device it leaves by.
    pub device: DeviceName,
    /// The preferred source address.
    pub source: Option<IpAddr>,
}

/// What is known of a link's health.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Evidence {
    /// It works. `settled`: it was never lost, or has been without a miss for long enough to take traffic back.
    Connected {
        /// Whether it may take the wide route from a connected link that stands later in the order.
        settled: bool,
    },
    /// It can't be probed, or its peer does not probe, and bytes arrive in a session.
    Receiving,
    /// It does not work.
    NotConnected {
        /// Packets arrive from the peer, but it does not hear us.
        one_way: bool,
    },
}

impl Evidence {
    /// Whether the link works.
    pub fn is_connected(self) -> bool {
        matches!(self, Evidence::Connected { .. } | Evidence::Receiving)
    }
}
