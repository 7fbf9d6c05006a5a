//! A host in memory that takes steps as the dataplane does, and can fail or stop at one of them. It refuses steps that
//! name what is not there.

use std::{
    future::pending,
    sync::{Arc, Mutex},
};

use spanwire::worker::{Facts, HostFacts};
use spanwire_engine::{
    Class, DeviceName, PublicKey,
    port::{Devices, Fault, Written},
    worker::{
        DeviceConfig, Host, HostStep, ObservedDevice, ObservedPeer, ObservedRoute, ObservedTable, PeerConfig,
        TableConfig,
    },
};

/// What a twin answers when it is told to fail.
#[derive(Debug, Clone, thiserror::Error)]
#[error("the twin was told to fail")]
pub(crate) struct Refused;

impl Fault for Refused {
    fn class(&self) -> Class {
        Class::Retry
    }
}

/// How calls are disturbed.
#[derive(Debug, Default)]
pub(crate) struct Disturbance {
    /// Calls so far.
    pub(crate) calls: usize,
    /// Number of the call that never returns, as if the process were killed there.
    pub(crate) stop_at: Option<usize>,
    /// Debug text of calls that fail.
    pub(crate) fail: Option<&'static str>,
    /// Records can't be read.
    pub(crate) unreadable: bool,
}

impl Disturbance {
    /// Counts a call; `None`: it is never to return.
    pub(crate) fn call(&mut self, what: &str) -> Option<Result<(), Refused>> {
        self.calls += 1;
        if self.stop_at.is_some_and(|at| self.calls > at) {
            return None;
        }
        Some(if self.fail.is_some_and(|text| what.contains(text)) { Err(Refused) } else { Ok(()) })
    }
}

/// The host.
#[derive(Debug, Clone)]
pub(crate) struct HostTwin {
    /// What is there.
    pub(crate) host: Arc<Mutex<Host>>,
    /// Steps taken, as debug text.
    pub(crate) taken: Arc<Mutex<Vec<String>>>,
    /// How calls are disturbed, over all twins that share it.
    pub(crate) disturbance: Arc<Mutex<Disturbance>>,
    key: PublicKey,
}

impl HostTwin {
    /// A host without devices whose worker has `key`.
    pub(crate) fn new(key: PublicKey, disturbance: Arc<Mutex<Disturbance>>) -> Self {
        let host = Host { underlay_mtu: 1500, ..Host::default() };
        Self { host: Arc::new(Mutex::new(host)), taken: Arc::default(), disturbance, key }
    }
}

impl Facts for HostTwin {
    async fn host_facts(&self) -> HostFacts {
        HostFacts { endpoint: None, kernel: Err("a twin".to_owned()) }
    }
}

impl Devices for HostTwin {
    type Error = Refused;

    async fn observe(&self) -> Result<Host, Refused> {
        Ok(self.host.lock().unwrap().clone())
    }

    async fn apply(&self, step: &HostStep) -> Result<Written, Refused> {
        let text = format!("{step:?}");
        let answer = self.disturbance.lock().unwrap().call(&text);
        let Some(answer) = answer else { return pending().await };
        answer?;
        let mut host = self.host.lock().unwrap();
        let before = host.clone();
        take(&mut host, step, self.key);
        self.taken.lock().unwrap().push(text);
        Ok(if *host == before { Written::Same } else { Written::Changed })
    }
}

fn device<'a>(host: &'a mut Host, name: &DeviceName) -> &'a mut ObservedDevice {
    host.device_named(name).unwrap_or_else(|| panic!("no device {name}"))
}

fn table(host: &mut Host, number: u32) -> &mut ObservedTable {
    host.tables.entry(number).or_default()
}

fn take(host: &mut Host, step: &HostStep, key: PublicKey) {
    match step {
        HostStep::Firewall(firewall) => {
            host.firewall = (!firewall.networks.is_empty()).then(|| firewall.digest());
        }
        HostStep::Table(TableConfig { table: number, order: _, unreachable, throw }) => {
            let entry = table(host, *number);
            entry.unreachable = unreachable.iter().copied().collect();
            entry.throw = throw.iter().copied().collect();
            entry.host_rule = true;
        }
        HostStep::Device(config) => set_device(host, config, key),
        HostStep::AddRule { table: number, device } => {
            table(host, *number).rules.insert(device.clone());
        }
        HostStep::Peer(config) => set_peer(host, config),
        HostStep::TakeOver { from: _, to, port } => device(host, to).port = *port,
        HostStep::Route { table: number, kind, prefix, device, source } => {
            let route = ObservedRoute { device: device.clone(), source: *source };
            table(host, *number).routes.insert((*kind, *prefix), route);
        }
        HostStep::RemoveRoute { table: number, kind, prefix } => {
            table(host, *number).routes.remove(&(*kind, *prefix));
        }
        HostStep::RemovePeer { device: name, public_key } => {
            device(host, name).peers.remove(public_key);
        }
        HostStep::RemoveRule { table: number, device } => {
            table(host, *number).rules.remove(device);
        }
        HostStep::RemoveDevice(name) => host.remove_device(name),
        HostStep::RemoveTable(number) => {
            host.tables.remove(number);
        }
    }
}

fn set_device(host: &mut Host, config: &DeviceConfig, key: PublicKey) {
    let index = u32::try_from(host.devices.len()).unwrap() + 1;
    let entry = host.devices.entry(config.id.clone()).or_default();
    if entry.index == 0 {
        entry.index = index;
    }
    entry.name = Some(config.name.clone());
    entry.port = config.port;
    entry.public_key = Some(key);
    entry.addresses = config.address.into_iter().collect();
    entry.mtu = config.mtu;
    entry.ready = true;
}

fn set_peer(host: &mut Host, config: &PeerConfig) {
    let entry = device(host, &config.device).peers.entry(config.public_key).or_default();
    let ObservedPeer { allowed_ips, endpoint, keepalive } = entry;
    *allowed_ips = config.allowed_ips.iter().copied().collect();
    *endpoint = config.endpoint.or(*endpoint);
    *keepalive = config.keepalive;
}
