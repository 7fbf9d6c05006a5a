//! Records and host in memory, and what each step does to them. It refuses nothing: an engine that plans what a kernel
//! would refuse is found by the engine's own tests.

use spanwire_engine::{
    DeviceName, PublicKey,
    worker::{
        DeviceConfig, Host, HostStep, ObservedDevice, ObservedRoute, PeerConfig, RecordStep, Recorded,
        TableConfig,
    },
};

/// Takes a step to the records.
pub(super) fn record(recorded: &mut Recorded, step: &RecordStep) {
    match step {
        RecordStep::Intent(applied) => {
            recorded.intents.insert(applied.intent.network.clone(), applied.as_ref().clone());
        }
        RecordStep::Link(link) => {
            recorded.links.insert(link.id.clone(), link.as_ref().clone());
        }
        RecordStep::ForgetLink(link) => drop(recorded.links.remove(link)),
        RecordStep::ForgetIntent(network) => drop(recorded.intents.remove(network)),
    }
}

/// Takes a step to the host.
pub(super) fn apply(host: &mut Host, step: &HostStep, own_key: PublicKey) {
    match step {
        HostStep::Firewall(firewall) => {
            host.firewall = (!firewall.networks.is_empty()).then(|| firewall.digest());
        }
        HostStep::Table(config) => table(host, config),
        HostStep::Device(config) => device(host, config, own_key),
        HostStep::AddRule { table, device } => {
            host.tables.entry(*table).or_default().rules.insert(device.clone());
        }
        HostStep::Peer(config) => peer(host, config),
        HostStep::TakeOver { from, to, port } => take_over(host, from, to, *port),
        HostStep::Route { table, kind, prefix, device, source } => {
            let route = ObservedRoute { device: device.clone(), source: *source };
            host.tables.entry(*table).or_default().routes.insert((*kind, *prefix), route);
        }
        HostStep::RemoveRoute { table, kind, prefix } => {
            host.tables.entry(*table).or_default().routes.remove(&(*kind, *prefix));
        }
        HostStep::RemovePeer { device, public_key } => {
            if let Some(device) = host.device_named(device) {
                device.peers.remove(public_key);
            }
        }
        HostStep::RemoveRule { table, device } => {
            host.tables.entry(*table).or_default().rules.remove(device);
        }
        HostStep::RemoveDevice(name) => {
            host.remove_device(name);
            host.used_ports = host.devices.values().map(|device| device.port).collect();
        }
        HostStep::RemoveTable(table) => drop(host.tables.remove(table)),
    }
}

fn table(host: &mut Host, config: &TableConfig) {
    let TableConfig { table, order: _, unreachable, throw } = config;
    let table = host.tables.entry(*table).or_default();
    table.unreachable = unreachable.iter().copied().collect();
    table.throw = throw.iter().copied().collect();
    table.host_rule = true;
}

fn device(host: &mut Host, config: &DeviceConfig, own_key: PublicKey) {
    let DeviceConfig { id, name, port, address, mtu } = config;
    let index = u32::try_from(host.devices.len()).unwrap_or(u32::MAX);
    let peers = host.device_named(name).map(|device| std::mem::take(&mut device.peers)).unwrap_or_default();
    let device = ObservedDevice {
        name: Some(name.clone()),
        index,
        port: *port,
        public_key: Some(own_key),
        addresses: address.iter().copied().collect(),
        mtu: *mtu,
        ready: true,
        peers,
    };
    match host.device_named(name) {
        Some(there) => *there = device,
        None => host.add_device(id.clone(), device),
    }
    host.used_ports.insert(*port);
}

fn take_over(host: &mut Host, from: &DeviceName, to: &DeviceName, port: u16) {
    if let Some(old) = host.device_named(from) {
        old.port = 0;
    }
    if let Some(new) = host.device_named(to) {
        new.port = port;
    }
}

fn peer(host: &mut Host, config: &PeerConfig) {
    let PeerConfig { device, public_key, allowed_ips, endpoint, keepalive } = config;
    let Some(device) = host.device_named(device) else { return };
    let peer = device.peers.entry(*public_key).or_default();
    peer.allowed_ips = allowed_ips.iter().copied().collect();
    peer.endpoint = endpoint.or(peer.endpoint);
    peer.keepalive = *keepalive;
}
