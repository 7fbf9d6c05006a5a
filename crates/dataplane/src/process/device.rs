//! One userspace device: reads it and changes it with the least that a request needs. It refuses to drop a session, a
//! learned endpoint or another peer's prefixes on the way.

use std::{
    io,
    sync::atomic::{AtomicU64, Ordering},
    time::Duration,
};

use gotatun::device::{self, DeviceBuilder, Peer};
use ipnet::IpNet;
use ipnetwork::IpNetwork;
use spanwire_engine::PublicKey;
use tokio::sync::Mutex;

use crate::{
    configuration::{DeviceInfo, PeerInfo, SetDevice},
    key::{PresharedKey, SecretKey},
};

use super::{
    place::Place,
    plan::{Allowed, Modification, Operation, PeerState, Peers, operations, target},
    tun::{TunReceive, TunSend},
    udp::Transport,
};

type Transports = (Transport, TunSend, TunReceive);
type Writer<'a> = device::configure::DeviceWrite<'a, Transports>;

/// A tunnel with its configuration lock and its count of changes.
pub(super) struct UserDevice {
    tunnel: device::Device<Transports>,
    place: Place,
    /// Whether a key was set; until then the tunnel runs on one that nobody knows, because the library needs one.
    keyed: Mutex<bool>,
    changes: AtomicU64,
}

impl UserDevice {
    pub(super) async fn start(send: TunSend, receive: TunReceive) -> io::Result<Self> {
        let placeholder = SecretKey::generate().map_err(io::Error::other)?;
        let place = Place::default();
        let builder = DeviceBuilder::new().with_udp(Transport(place.clone())).with_ip_pair(send, receive);
        let built = builder.with_private_key(placeholder.to_x25519()).build().await;
        let tunnel = built.map_err(io::Error::other)?;
        // A tunnel that is built without peers opens no socket before its first reconfiguration.
        tunnel.clear_peers().await.map_err(io::Error::other)?;
        Ok(Self { tunnel, place, keyed: Mutex::new(false), changes: AtomicU64::new(0) })
    }

    pub(super) async fn stop(self) {
        self.tunnel.stop().await;
    }

    /// How many requests changed something.
    pub(super) fn changes(&self) -> u64 {
        self.changes.load(Ordering::Relaxed)
    }

    /// The device with all its peers, or with those named.
    pub(super) async fn info(&self, peers: Option<&[PublicKey]>) -> DeviceInfo {
        let keyed = self.keyed.lock().await;
        let mut info = self.read(*keyed).await;
        if let Some(named) = peers {
            info.peers.retain(|key, _| named.contains(key));
        }
        info
    }

    async fn read(&self, keyed: bool) -> DeviceInfo {
        let read = async |device: &device::configure::DeviceRead<'_, Transports>| DeviceInfo {
            private_key: device
                .private_key()
                .filter(|_| keyed)
                .map(|key| SecretKey::from_bytes(zeroize::Zeroizing::new(key.to_bytes()))),
            listen_port: self.place.port(),
            mark: device.fwmark().unwrap_or(0),
            peers: device.peers().await.into_iter().map(peer_info).collect(),
        };
        self.tunnel.read(read).await
    }

    /// Applies a request. Returns whether anything changed; an error is an errno, and nothing was applied but what the
    /// kernel would have applied too.
    pub(super) async fn set(&self, request: &SetDevice) -> Result<bool, i32> {
        let mut keyed = self.keyed.lock().await;
        let there = self.read(*keyed).await;
        let public = there.private_key.as_ref().map(SecretKey::public);
        let wanted_public = request.private_key.as_ref().map(SecretKey::public);
        let key = request.private_key.as_ref().filter(|_| wanted_public != public);
        let port = request.listen_port.filter(|port| *port != there.listen_port);
        let mark = request.mark.filter(|mark| *mark != there.mark);
        let current: Peers = there.peers.iter().map(|(key, info)| (*key, PeerState::from(info))).collect();
        let steps = operations(&current, &target(&current, request, wanted_public.or(public)));
        if key.is_none() && port.is_none() && mark.is_none() && steps.is_empty() {
            return Ok(false);
        }
        if let Some(port) = port {
            self.place.listen(port).await.map_err(|error| errno(&device::Error::IoError(error)))?;
        }
        let write = async |device: &mut Writer<'_>| {
            if let Some(key) = key {
                device.set_private_key(key.to_x25519()).await;
            }
            for step in steps {
                apply(device, step).await;
            }
            mark.map_or(Ok(()), |mark| device.set_fwmark(mark))
        };
        let written = self.tunnel.write(write).await;
        *keyed |= key.is_some();
        self.changes.fetch_add(1, Ordering::Relaxed);
        written.and_then(|marked| marked).map_err(|error| errno(&error)).map(|()| true)
    }
}

async fn apply(device: &mut Writer<'_>, step: Operation) {
    match step {
        Operation::Remove(key) => drop(device.remove_peer(&x25519(&key)).await),
        Operation::Add(key, state) => drop(device.add_peer(new_peer(key, &state))),
        Operation::Modify(key, modification) => {
            let Modification { preshared_key, endpoint, keepalive, allowed_ips } = modification;
            let change = |peer: &mut device::configure::PeerMut| {
                if let Some(key) = preshared_key {
                    peer.set_preshared_key(key.as_ref().map(|key| *PresharedKey::bytes(key)));
                }
                if endpoint.is_some() {
                    peer.set_endpoint(endpoint);
                }
                if let Some(seconds) = keepalive {
                    peer.set_keepalive((seconds != 0).then_some(seconds));
                }
                match allowed_ips {
                    None => {}
                    Some(Allowed::Add(added)) => peer.add_allowed_ips(added.into_iter().map(network)),
                    Some(Allowed::Replace(all)) => {
                        peer.clear_allowed_ips();
                        peer.add_allowed_ips(all.into_iter().map(network));
                    }
                }
            };
            device.modify_peer(&x25519(&key), change).await;
        }
    }
}

fn new_peer(key: PublicKey, state: &PeerState) -> Peer {
    let PeerState { preshared_key, endpoint, keepalive, allowed_ips } = state;
    let mut peer = Peer::new(x25519(&key)).with_allowed_ips(allowed_ips.iter().copied().map(network));
    peer.preshared_key = preshared_key.as_ref().map(|key| *key.bytes());
    peer.endpoint = *endpoint;
    peer.keepalive = (*keepalive != 0).then_some(*keepalive);
    peer
}

fn peer_info(peer: device::configure::PeerStats) -> (PublicKey, PeerInfo) {
    let (config, stats) = (peer.peer, peer.stats);
    let info = PeerInfo {
        preshared_key: config
            .preshared_key
            .and_then(|key| PresharedKey::from_bytes(zeroize::Zeroizing::new(key))),
        endpoint: config.endpoint,
        keepalive: config.keepalive.unwrap_or(0),
        allowed_ips: config.allowed_ips.into_iter().filter_map(prefix).collect(),
        handshake: stats.last_handshake.map(|age| age.max(Duration::from_nanos(1))),
        received: stats.rx_bytes as u64,
        sent: stats.tx_bytes as u64,
    };
    (PublicKey(config.public_key.to_bytes()), info)
}

fn x25519(key: &PublicKey) -> x25519_dalek::PublicKey {
    x25519_dalek::PublicKey::from(key.0)
}

fn network(prefix: IpNet) -> IpNetwork {
    match prefix {
        IpNet::V4(net) => IpNetwork::V4(
            ipnetwork::Ipv4Network::new(net.addr(), net.prefix_len()).expect("a prefix has a valid length"),
        ),
        IpNet::V6(net) => IpNetwork::V6(
            ipnetwork::Ipv6Network::new(net.addr(), net.prefix_len()).expect("a prefix has a valid length"),
        ),
    }
}

fn prefix(network: IpNetwork) -> Option<IpNet> {
    IpNet::new(network.network(), network.prefix()).ok()
}

fn errno(error: &device::Error) -> i32 {
    let number = match error {
        device::Error::Bind(source, _) | device::Error::IoError(source) => source.raw_os_error(),
        _ => None,
    };
    number.unwrap_or(nix::libc::EIO)
}
