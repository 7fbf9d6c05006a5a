//! The host that a worker acts on: implements [`Devices`] over netlink, the devices' configuration sockets and the packet
//! filter. It refuses to touch interfaces, routes, rules and tables that do not carry our mark.

mod device;
mod drain;
mod drift;
mod error;
mod facts;
mod filter;
mod for_all;
mod layout;
mod observe;
mod peer;
mod recover;
mod start;
mod switches;
mod table;
mod take_over;

use std::{
    collections::BTreeMap,
    net::{IpAddr, SocketAddr},
    path::PathBuf,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
};

use spanwire_engine::{
    DeviceName, GatewayName, PublicKey,
    port::{Devices, Written},
    worker::{Host, HostStep, PeerConfig},
};

pub use drift::Drift;
pub use error::Error;
pub use recover::secret_of;

use crate::{
    Sent, control,
    key::SecretKey,
    netlink::Netlink,
    nft::Filter,
    sysctl::{self, Sysctl},
    traffic::Traffic,
    wireguard::Wireguard,
};

/// What [`LocalDevices::open`] has to know.
pub struct Options {
    /// The gateway whose worker this is: part of every device name.
    pub gateway: GatewayName,
    /// Its private key, set on every device.
    pub secret: SecretKey,
    /// The control socket of the dataplane process.
    pub control_socket: PathBuf,
    /// The directory of the devices' configuration sockets.
    pub uapi_dir: PathBuf,
    /// A directory that is emptied by a reboot, for what has to be undone later.
    pub run_dir: PathBuf,
    /// Where the kernel's switches of this network namespace are writable: /proc/sys/net, or where that is mounted.
    pub sysctl_dir: PathBuf,
    /// The protocol number of all our routes and rules.
    pub protocol: u8,
    /// The priority of our `iif` rules. Rules for the host's own traffic stand 1,000 and more behind it, the rules that
    /// let IPv6 probes leave by their device one before it.
    pub rule_base: u32,
    /// The table for IPv6 probes.
    pub probe_table: u32,
}

impl Options {
    /// With all numbers at their defaults: protocol 83, rules from 10000, table 5179 for IPv6 probes.
    pub fn new(
        gateway: GatewayName,
        secret: SecretKey,
        control_socket: impl Into<PathBuf>,
        run_dir: impl Into<PathBuf>,
    ) -> Self {
        Self {
            gateway,
            secret,
            control_socket: control_socket.into(),
            uapi_dir: PathBuf::from("/var/run/wireguard"),
            run_dir: run_dir.into(),
            sysctl_dir: PathBuf::from(sysctl::USUAL),
            protocol: 83,
            rule_base: 10_000,
            probe_table: 5179,
        }
    }
}

/// How many times a host was written to. Clones show the same count.
#[derive(Debug, Clone, Default)]
pub struct Writes(Arc<AtomicU64>);

impl Writes {
    /// The count so far.
    pub fn count(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

/// This host, in the network namespace of the thread that opened it.
pub struct LocalDevices {
    options: Options,
    public: PublicKey,
    netlink: Netlink,
    control: control::Client,
    wireguard: Wireguard,
    filter: Filter,
    sysctl: Sysctl,
    writes: Writes,
    drain: drain::Drain,
    /// Endpoints last seen on devices: a hint for peers that have to be made again.
    endpoints: Mutex<BTreeMap<(DeviceName, PublicKey), SocketAddr>>,
}

impl LocalDevices {
    /// Checks what is needed at start: switches of the kernel, `nft`, netlink, and any WireGuard.
    ///
    /// # Errors
    /// A folder without switches; a missing or old `nft`; neither a TUN device node nor a WireGuard in the kernel.
    pub async fn open(options: Options) -> Result<Self, Error> {
        start::open(options).await
    }

    /// Whether the kernel has WireGuard; the error says why not.
    ///
    /// # Errors
    /// It has none, or could not be asked.
    pub async fn kernel_wireguard(&self) -> std::io::Result<()> {
        self.wireguard.kernel_is_present().await
    }

    /// What was sent so far to change devices of the kernel.
    pub fn sent_to_kernel(&self) -> Sent {
        self.wireguard.sent()
    }

    /// Changes of the host that a pass should look at.
    ///
    /// # Errors
    /// No netlink socket.
    pub fn changes(&self) -> Result<Drift, Error> {
        Drift::open(self.options.protocol, self.options.uapi_dir.clone())
    }

    /// The address that others may dial if nobody says otherwise: the source of the default route, else the first global
    /// address of an interface that is up and not ours. `None` also if the host could not be read.
    pub async fn default_endpoint(&self) -> Option<IpAddr> {
        match facts::default_endpoint(&self.netlink, self.options.protocol).await {
            Ok(found) => found,
            Err(error) => {
                tracing::warn!(%error, "could not look for an address of this host");
                None
            }
        }
    }

    /// How many times the host was written to since this was opened: netlink changes, configuration changes of devices
    /// and packet filter transactions.
    pub fn writes(&self) -> u64 {
        self.writes.count()
    }

    /// The count of writes, for whoever looks while this is in use elsewhere.
    pub fn counted_writes(&self) -> Writes {
        self.writes.clone()
    }

    /// The way to what devices show of their traffic, for whoever looks while this is in use elsewhere.
    ///
    /// # Errors
    /// No netlink socket.
    pub fn traffic(&self) -> Result<Traffic, Error> {
        Traffic::open(self.options.uapi_dir.clone()).map_err(Error::Configuration)
    }

    /// Puts back the switches of all interfaces that were moved for our devices, for an uninstall. Returns what was
    /// changed, for people.
    ///
    /// # Errors
    /// A switch that cannot be written, or a record that cannot be read.
    pub fn undo_sysctls(&self) -> Result<Vec<String>, Error> {
        for_all::undo(&self.sysctl, &self.options.run_dir)
    }

    fn wrote(&self) {
        self.writes.0.fetch_add(1, Ordering::Relaxed);
    }

    fn endpoints(&self) -> std::sync::MutexGuard<'_, BTreeMap<(DeviceName, PublicKey), SocketAddr>> {
        self.endpoints.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Devices for LocalDevices {
    type Error = Error;

    async fn observe(&self) -> Result<Host, Error> {
        self.observe_host().await
    }

    async fn apply(&self, step: &HostStep) -> Result<Written, Error> {
        let before = self.writes();
        if matches!(step, HostStep::RemovePeer { .. } | HostStep::RemoveDevice(_)) {
            self.drain.wait().await;
        }
        match step {
            HostStep::Firewall(firewall) => self.apply_firewall(firewall).await,
            HostStep::Table(table) => self.apply_table(table).await,
            HostStep::Device(device) => self.apply_device(device).await,
            HostStep::AddRule { table, device } => self.add_rule(*table, device).await,
            HostStep::Peer(peer) => self.apply_peer(peer).await,
            HostStep::TakeOver { from, to, port } => self.take_over(from, to, *port).await,
            HostStep::Route { table, kind, prefix, device, source } => {
                self.put_route(*table, *kind, *prefix, device, *source).await
            }
            HostStep::RemoveRoute { table, kind, prefix } => self.remove_route(*table, *kind, *prefix).await,
            HostStep::RemovePeer { device, public_key } => self.remove_peer(device, public_key).await,
            HostStep::RemoveRule { table, device } => self.remove_rule(*table, device).await,
            HostStep::RemoveDevice(device) => self.remove_device(device).await,
            HostStep::RemoveTable(table) => self.remove_table(*table).await,
        }?;
        if self.writes() == before {
            return Ok(Written::Same);
        }
        if matches!(step, HostStep::Route { .. } | HostStep::RemoveRoute { .. }) {
            self.drain.moved();
        }
        Ok(Written::Changed)
    }

    /// Of one device together; if that fails as a whole, one by one, so that each peer has its own answer.
    async fn apply_peers(&self, peers: &[PeerConfig]) -> Vec<Result<Written, Error>> {
        let mut answers = Vec::with_capacity(peers.len());
        for group in peers.chunk_by(|one, other| one.device == other.device) {
            let configs: Vec<&PeerConfig> = group.iter().collect();
            let Some(first) = group.first() else { continue };
            match self.apply_together(&first.device, &configs).await {
                Ok(together) => answers.extend(together),
                Err(error) if group.len() == 1 => answers.push(Err(error)),
                Err(error) => {
                    tracing::debug!(%error, device = %first.device, "peers are changed one by one");
                    for peer in group {
                        answers.push(self.apply(&HostStep::Peer(peer.clone())).await);
                    }
                }
            }
        }
        answers
    }
}
