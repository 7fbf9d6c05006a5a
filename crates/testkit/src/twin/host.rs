//! A host in memory. It refuses what a kernel refuses: a peer on a missing device, a route over one, a port twice.

use spanwire_engine::{
    DeviceId, DeviceName, PublicKey,
    worker::{DeviceConfig, Host, HostStep, ObservedDevice, ObservedRoute, PeerConfig, TableConfig},
};

/// A step that a kernel would refuse.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Refused {
    /// No device of that name.
    #[error("there is no device {0}")]
    NoDevice(DeviceName),
    /// Another device listens there.
    #[error("port {0} is in use")]
    PortInUse(u16),
    /// A peer before the packet filter stands.
    #[error("the packet filter does not stand before the first peer of {0}")]
    NoFirewall(DeviceName),
    /// The table was not made first.
    #[error("table {0} does not end unreachable yet")]
    NoTable(u32),
}

/// Applies one step to a host, as the kernel and the device would.
///
/// # Errors
/// What the kernel refuses, and what design §6 forbids: a peer before filter and table stand.
pub fn apply_to_host(host: &mut Host, step: &HostStep, own_key: PublicKey) -> Result<(), Refused> {
    match step {
        HostStep::Firewall(firewall) => {
            host.firewall = (!firewall.networks.is_empty()).then(|| firewall.digest());
        }
        HostStep::Table(config) => table(host, config),
        HostStep::Device(config) => device(host, config, own_key)?,
        HostStep::AddRule { table, device } => {
            device_named(host, device)?;
            host.tables.get_mut(table).ok_or(Refused::NoTable(*table))?.rules.insert(device.clone());
        }
        HostStep::Peer(config) => peer(host, config)?,
        HostStep::TakeOver { from, to, port } => take_over(host, (from, to), *port)?,
        HostStep::Route { table, kind, prefix, device, source } => {
            device_named(host, device)?;
            let route = ObservedRoute { device: device.clone(), source: *source };
            let table = host.tables.get_mut(table).ok_or(Refused::NoTable(*table))?;
            table.routes.insert((*kind, *prefix), route);
        }
        HostStep::RemoveRoute { table, kind, prefix } => {
            if let Some(table) = host.tables.get_mut(table) {
                table.routes.remove(&(*kind, *prefix));
            }
        }
        HostStep::RemovePeer { device, public_key } => {
            device_named(host, device)?.peers.remove(public_key);
        }
        HostStep::RemoveRule { table, device } => {
            if let Some(table) = host.tables.get_mut(table) {
                table.rules.remove(device);
            }
        }
        HostStep::RemoveDevice(name) => {
            host.remove_device(name);
            note_ports(host);
        }
        HostStep::RemoveTable(table) => {
            host.tables.remove(table);
        }
    }
    Ok(())
}

fn table(host: &mut Host, config: &TableConfig) {
    let table = host.tables.entry(config.table).or_default();
    table.host_rule = true;
    table.unreachable = config.unreachable.iter().copied().collect();
    table.throw = config.throw.iter().copied().collect();
}

fn device(host: &mut Host, config: &DeviceConfig, own_key: PublicKey) -> Result<(), Refused> {
    let other =
        |device: &ObservedDevice| device.name.as_ref() != Some(&config.name) && device.port == config.port;
    if all(host).any(|(_, device)| other(device)) {
        return Err(Refused::PortInUse(config.port));
    }
    if host.device_named(&config.name).is_none() {
        let index = u32::try_from(all(host).count()).unwrap_or(u32::MAX);
        let name = Some(config.name.clone());
        host.add_device(config.id.clone(), ObservedDevice { index, name, ..ObservedDevice::default() });
    }
    let device = device_named(host, &config.name)?;
    device.port = config.port;
    device.public_key = Some(own_key);
    device.addresses = config.address.into_iter().collect();
    device.mtu = config.mtu;
    device.ready = true;
    note_ports(host);
    Ok(())
}

fn all(host: &Host) -> impl Iterator<Item = (&DeviceId, &ObservedDevice)> {
    host.devices.iter().chain(&host.beside)
}

fn note_ports(host: &mut Host) {
    host.used_ports = all(host).map(|(_, device)| device.port).collect();
}

/// The other one listens somewhere else then.
fn take_over(host: &mut Host, (from, to): (&DeviceName, &DeviceName), port: u16) -> Result<(), Refused> {
    let old = device_named(host, from)?;
    if old.port == port {
        old.port = u16::MAX;
    }
    let followed: Vec<_> = old.peers.iter().map(|(key, peer)| (*key, peer.endpoint)).collect();
    let new = device_named(host, to)?;
    new.port = port;
    for (key, endpoint) in followed {
        if let Some(peer) = new.peers.get_mut(&key) {
            peer.endpoint = endpoint.or(peer.endpoint);
        }
    }
    note_ports(host);
    Ok(())
}

fn device_named<'a>(host: &'a mut Host, name: &DeviceName) -> Result<&'a mut ObservedDevice, Refused> {
    host.device_named(name).ok_or_else(|| Refused::NoDevice(name.clone()))
}

/// Adds or changes a peer; a prefix that another peer of the device has moves, as WireGuard does.
fn peer(host: &mut Host, config: &PeerConfig) -> Result<(), Refused> {
    let PeerConfig { device: name, public_key, allowed_ips, endpoint, keepalive } = config;
    let ruled = host.tables.values().any(|table| table.rules.contains(name) && table.host_rule);
    if host.firewall.is_none() || !ruled {
        return Err(Refused::NoFirewall(name.clone()));
    }
    let device = device_named(host, name)?;
    for (_, other) in device.peers.iter_mut().filter(|(key, _)| *key != public_key) {
        other.allowed_ips.retain(|prefix| !allowed_ips.contains(prefix));
    }
    let peer = device.peers.entry(*public_key).or_default();
    peer.allowed_ips = allowed_ips.iter().copied().collect();
    peer.endpoint = endpoint.or(peer.endpoint);
    peer.keepalive = *keepalive;
    Ok(())
}
