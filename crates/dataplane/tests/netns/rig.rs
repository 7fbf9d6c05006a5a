//! Gateways on one machine: each a thread in a namespace of its own with a dataplane process and the host's adapter. It
//! refuses to share anything between two tests.

use std::{
    future::Future,
    io::{BufRead, BufReader, Write},
    net::{IpAddr, SocketAddr},
    os::unix::net::UnixStream,
    path::PathBuf,
    pin::Pin,
    sync::{Arc, mpsc},
    thread::{self, JoinHandle},
    time::{Duration, Instant},
};

use ipnet::IpNet;
use spanwire_dataplane::{
    LocalDevices, Options,
    key::SecretKey,
    probe::{Prober, ProberConfig, Target, Timing},
    process::{ProcessConfig, serve},
};
use spanwire_engine::{
    Backend, DeviceId, DeviceName, GatewayName, LinkId, LinkRole, PublicKey, Transit,
    firewall::{Firewall, NetworkFirewall},
    port::{Devices, Written},
    worker::{DeviceConfig, Host as Observed, HostStep, ObservedPeer, PeerConfig, RouteKind, TableConfig},
};
use spanwire_testkit::lab::Host;
use tokio::sync::oneshot;

pub(crate) type Job =
    Box<dyn for<'a> FnOnce(&'a LocalDevices) -> Pin<Box<dyn Future<Output = ()> + 'a>> + Send>;

/// One gateway.
pub(crate) struct Gateway {
    pub(crate) host: Host,
    pub(crate) name: GatewayName,
    pub(crate) secret: SecretKey,
    pub(crate) tunnel: IpAddr,
    jobs: tokio::sync::mpsc::UnboundedSender<Job>,
    thread: Option<JoinHandle<()>>,
    pub(crate) dir: tempfile::TempDir,
}

pub(crate) const TABLE: u32 = 7000;

/// The backend that this run is about: `cargo xtask test-kernel` names the kernel's.
pub(crate) fn backend() -> Backend {
    match std::env::var("SPANWIRE_TEST_BACKEND") {
        Ok(word) if word == Backend::Kernel.as_str() => Backend::Kernel,
        Ok(word) => panic!("SPANWIRE_TEST_BACKEND is {word:?}: leave it out or say kernel"),
        Err(_) => Backend::Userspace,
    }
}

impl Gateway {
    pub(crate) fn start(host: Host, tunnel: &str) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let name: GatewayName = host.name().parse().unwrap();
        let secret = SecretKey::generate().unwrap();
        let (jobs, queue) = tokio::sync::mpsc::unbounded_channel();
        let (ready, is_ready) = mpsc::channel();
        let namespace = host.namespace().clone();
        let (root, gateway, key) = (dir.path().to_owned(), name.clone(), secret.clone());
        let thread = thread::spawn(move || {
            namespace.enter(&root).unwrap();
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
            runtime.block_on(live(root, gateway, key, queue, ready));
        });
        is_ready.recv().expect("the gateway starts");
        Self { host, name, secret, tunnel: tunnel.parse().unwrap(), jobs, thread: Some(thread), dir }
    }

    pub(crate) fn key(&self) -> PublicKey {
        self.secret.public()
    }

    /// Runs a piece of work on the gateway's own thread and waits for it.
    pub(crate) fn run<T: Send + 'static>(
        &self,
        work: impl for<'a> FnOnce(&'a LocalDevices) -> Pin<Box<dyn Future<Output = T> + 'a>> + Send + 'static,
    ) -> T {
        let (answer, answered) = mpsc::channel();
        let job: Job = Box::new(move |devices| {
            let work = work(devices);
            Box::pin(async move { drop(answer.send(work.await)) })
        });
        assert!(self.jobs.send(job).is_ok(), "the gateway lives");
        answered.recv().expect("the work ends without a panic")
    }

    pub(crate) fn apply(&self, step: HostStep) -> Written {
        self.try_apply(step).unwrap()
    }

    /// Several peers of one device in one call; each has to be written.
    pub(crate) fn apply_peers(&self, peers: Vec<PeerConfig>) {
        let answers = self.run(move |devices| Box::pin(async move { devices.apply_peers(&peers).await }));
        assert!(answers.into_iter().all(|answer| answer.unwrap() == Written::Changed));
    }

    pub(crate) fn try_apply(&self, step: HostStep) -> Result<Written, spanwire_dataplane::local::Error> {
        self.run(move |devices| Box::pin(async move { devices.apply(&step).await }))
    }

    pub(crate) fn observe(&self) -> Observed {
        self.run(|devices| Box::pin(async { devices.observe().await.unwrap() }))
    }

    /// Probes links from this gateway; `lost`: they worked once and did not when last judged.
    pub(crate) fn probe(&self, targets: Vec<Target>) -> Arc<Prober> {
        let control_socket = self.dir.path().join("control.sock");
        let config =
            ProberConfig { control_socket, uapi_dir: "/run/wireguard".into(), timing: Timing::default() };
        self.run(|_| {
            Box::pin(async move {
                let prober = Prober::start(config);
                prober.set_targets(targets);
                Arc::new(prober)
            })
        })
    }

    pub(crate) fn target(&self, role: LinkRole, peer: &Gateway) -> Target {
        let link = LinkId { network: "demo".parse().unwrap(), peer: peer.name.clone(), role };
        let device = link.device().name(&self.name, backend());
        let addresses = Some((self.tunnel, peer.tunnel));
        Target { link, device, public_key: peer.key(), addresses, connected_once: false, lost: false }
    }

    /// How many requests changed something: as the dataplane process counts them, or as they were sent to the kernel.
    pub(crate) fn changes(&self) -> u64 {
        if backend() == Backend::Kernel {
            return self.run(|devices| Box::pin(async { devices.sent_to_kernel().messages }));
        }
        let mut stream = UnixStream::connect(self.dir.path().join("control.sock")).unwrap();
        writeln!(stream, r#"{{"op":"stats"}}"#).unwrap();
        let mut line = String::new();
        BufReader::new(stream).read_line(&mut line).unwrap();
        let answer: serde_json::Value = serde_json::from_str(&line).unwrap();
        answer["total"].as_u64().unwrap()
    }

    /// Takes a program of the gateway's namespace.
    pub(crate) fn output(&self, program: &str, words: &[&str]) -> String {
        self.host.output(program, words, "").unwrap()
    }

    /// What one device shows of one peer.
    pub(crate) fn peer(
        &self,
        role: LinkRole,
        other: Option<&Gateway>,
        key: PublicKey,
    ) -> Option<ObservedPeer> {
        self.observe().devices.get(&self.id(role, other))?.peers.get(&key).cloned()
    }

    pub(crate) fn writes(&self) -> u64 {
        self.run(|devices| Box::pin(async { devices.writes() }))
    }

    pub(crate) fn id(&self, role: LinkRole, peer: Option<&Gateway>) -> DeviceId {
        DeviceId { network: "demo".parse().unwrap(), role, peer: peer.map(|peer| peer.name.clone()) }
    }

    pub(crate) fn device(&self, role: LinkRole, peer: Option<&Gateway>) -> DeviceName {
        self.id(role, peer).name(&self.name, backend())
    }

    /// Makes a device with the rule that leads to the table.
    pub(crate) fn make_device(&self, role: LinkRole, peer: Option<&Gateway>, port: u16) -> DeviceName {
        let (id, name) = (self.id(role, peer), self.device(role, peer));
        let config = DeviceConfig { id, name: name.clone(), port, address: Some(self.tunnel), mtu: 1420 };
        self.apply(HostStep::Device(config));
        self.apply(HostStep::AddRule { table: TABLE, device: name.clone() });
        name
    }

    /// Makes or changes a peer; `port`: where it listens.
    pub(crate) fn make_peer(
        &self,
        device: &DeviceName,
        peer: &Gateway,
        allowed: &[&str],
        port: Option<u16>,
    ) -> Written {
        self.apply(HostStep::Peer(PeerConfig {
            device: device.clone(),
            public_key: peer.key(),
            allowed_ips: allowed.iter().map(|text| net(text)).collect(),
            endpoint: port.map(|port| SocketAddr::new(peer.host.address(), port)),
            keepalive: Duration::from_secs(25),
        }))
    }

    pub(crate) fn make_table(&self, wide: &[&str], own: &[&str]) {
        self.apply(HostStep::Table(TableConfig {
            table: TABLE,
            order: 0,
            unreachable: wide.iter().map(|text| net(text)).collect(),
            throw: own.iter().map(|text| net(text)).collect(),
        }));
    }

    pub(crate) fn route(&self, kind: RouteKind, prefix: &str, device: &DeviceName) -> Written {
        let (prefix, device, source) = (net(prefix), device.clone(), Some(self.tunnel));
        let source = source.filter(|source| source.is_ipv4() == prefix.addr().is_ipv4());
        self.apply(HostStep::Route { table: TABLE, kind, prefix, device, source })
    }

    pub(crate) fn firewall(
        &self,
        parts: &[(LinkRole, &DeviceName)],
        own: &[&str],
        wide: &[&str],
        hubs: Option<&[&str]>,
    ) -> Written {
        self.apply(HostStep::Firewall(Firewall {
            networks: vec![NetworkFirewall {
                network: "demo".parse().unwrap(),
                devices: parts.iter().map(|(role, name)| (*role, (*name).clone())).collect(),
                own: own.iter().map(|text| net(text)).collect(),
                wide: wide.iter().map(|text| net(text)).collect(),
                tunnel_address: Some(self.tunnel),
                transit: if hubs.is_some() { Transit::Isolated } else { Transit::Routed },
                hub_prefixes: hubs.unwrap_or_default().iter().map(|text| net(text)).collect(),
            }],
        }))
    }
}

impl Drop for Gateway {
    fn drop(&mut self) {
        let (jobs, _) = tokio::sync::mpsc::unbounded_channel();
        drop(std::mem::replace(&mut self.jobs, jobs));
        if let Some(thread) = self.thread.take() {
            let ended = thread.join();
            assert!(thread::panicking() || ended.is_ok(), "the gateway ends without a panic");
        }
    }
}

async fn live(
    root: PathBuf,
    gateway: GatewayName,
    secret: SecretKey,
    mut jobs: tokio::sync::mpsc::UnboundedReceiver<Job>,
    ready: mpsc::Sender<()>,
) {
    let control = root.join("control.sock");
    let config = ProcessConfig { control_socket: control.clone(), uapi_dir: "/run/wireguard".into() };
    let (stop, stopped) = oneshot::channel::<()>();
    let process = tokio::spawn(serve(config, |_| {}, async move { drop(stopped.await) }));
    let options = Options {
        uapi_dir: "/run/wireguard".into(),
        ..Options::new(gateway, secret, control, root.join("run"))
    };
    let devices = LocalDevices::open(options).await.unwrap();
    ready.send(()).unwrap();
    while let Some(job) = jobs.recv().await {
        job(&devices).await;
    }
    drop(stop);
    process.await.unwrap().unwrap();
}

/// One of many peers that no host stands behind, with a prefix and an endpoint of its own.
pub(crate) fn far_peer(device: &DeviceName, number: u16) -> PeerConfig {
    PeerConfig {
        device: device.clone(),
        public_key: far_key(number),
        allowed_ips: vec![net(&format!("10.{}.{}.0/24", 100 + number / 250, number % 250))],
        endpoint: Some(SocketAddr::new([192, 0, 2, 99].into(), 1000 + number)),
        keepalive: Duration::ZERO,
    }
}

/// The first of them.
pub(crate) fn far_peers(device: &DeviceName, count: u16) -> Vec<PeerConfig> {
    (0..count).map(|number| far_peer(device, number)).collect()
}

/// The key of one of many peers.
pub(crate) fn far_key(number: u16) -> PublicKey {
    let mut bytes = [9; 32];
    bytes[..2].copy_from_slice(&number.to_be_bytes());
    PublicKey(bytes)
}

pub(crate) fn net(text: &str) -> IpNet {
    text.parse().unwrap()
}

/// Waits until `done` gives something, or fails.
pub(crate) fn wait_for<T>(what: &str, mut done: impl FnMut() -> Option<T>) -> T {
    let deadline = Instant::now() + Duration::from_secs(20);
    loop {
        if let Some(value) = done() {
            return value;
        }
        assert!(Instant::now() < deadline, "timed out: {what}");
        thread::park_timeout(Duration::from_millis(5));
    }
}

/// A spoke with an uplink to a hub, on both ends without routes over it. Returns the two devices.
pub(crate) fn link_up(spoke: &Gateway, hub: &Gateway, wide: &str) -> (DeviceName, DeviceName) {
    let own = |gateway: &Gateway| IpNet::from(gateway.tunnel).to_string();
    let (up, down) = (spoke.device(LinkRole::Uplink, Some(hub)), hub.device(LinkRole::Downlink, None));
    spoke.firewall(&[(LinkRole::Uplink, &up)], &[&own(spoke)], &[wide], None);
    hub.firewall(&[(LinkRole::Downlink, &down)], &[&own(hub)], &[wide], None);
    spoke.make_table(&[wide], &[&own(spoke)]);
    hub.make_table(&[wide], &[&own(hub)]);
    spoke.make_device(LinkRole::Uplink, Some(hub), 51821);
    hub.make_device(LinkRole::Downlink, None, 51820);
    spoke.make_peer(&up, hub, &[wide], Some(51820));
    hub.make_peer(&down, spoke, &[&own(spoke)], None);
    (up, down)
}

/// The same, with routes both ways.
pub(crate) fn connect(spoke: &Gateway, hub: &Gateway, wide: &str) -> (DeviceName, DeviceName) {
    let (up, down) = link_up(spoke, hub, wide);
    spoke.route(RouteKind::Wide, wide, &up);
    hub.route(RouteKind::Exact, &IpNet::from(spoke.tunnel).to_string(), &down);
    (up, down)
}

/// Whether a datagram from `from` is answered at `to` within the time that an echo may take.
pub(crate) fn echo(from: (&Host, IpAddr), to: (&Host, IpAddr), limit: Duration) -> bool {
    let server = to.0.udp_socket(SocketAddr::new(to.1, 0)).unwrap();
    let client = from.0.udp_socket(SocketAddr::new(from.1, 0)).unwrap();
    let address = server.local_addr().unwrap();
    server.set_read_timeout(Some(Duration::from_millis(20))).unwrap();
    client.set_read_timeout(Some(Duration::from_millis(20))).unwrap();
    let deadline = Instant::now() + limit;
    let mut buffer = [0u8; 64];
    while Instant::now() < deadline {
        // An unreachable route answers the send itself.
        let _ = client.send_to(b"ping", address);
        if let Ok((count, back)) = server.recv_from(&mut buffer) {
            let _ = server.send_to(&buffer[..count], back);
        }
        if client.recv_from(&mut buffer).is_ok() {
            return true;
        }
    }
    false
}
