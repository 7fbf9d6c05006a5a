//! One device takes the place of another: its peers get sessions with it beside those of the other, routes move, and when
//! nobody uses the other any more it listens where that one did. It refuses to close the old door while somebody who was
//! there a moment ago still uses it, for as long as a handshake may take.
//!
//! A packet is lost where it meets no device with its session. So both devices stand at one port until every session that
//! lives has a successor (see [`Handover`]). It may be begun again at any point.

use std::{net::IpAddr, time::Duration};

use spanwire_engine::{DeviceName, PublicKey};
use tokio::time::{Instant, sleep};

use crate::{
    configuration::{DeviceInfo, PeerInfo, SetDevice, SetPeer},
    netlink::{route::Target, rule::Family},
    nft::{self, Handover},
    probe::{self, socket::ProbeSocket},
};

use super::{Error, LocalDevices};

/// How long sessions may take to be made anew; a lost first message is sent again after 5 s.
const HANDSHAKES: Duration = Duration::from_secs(6);
/// How long the old device has to hear nothing.
const QUIET: Duration = Duration::from_millis(200);
/// From one look at both devices to the next.
const LOOK: Duration = Duration::from_millis(20);
/// A session older than this is dead: <https://www.wireguard.com/protocol/>, Reject-After-Time.
const SESSION: Duration = Duration::from_secs(180);

impl LocalDevices {
    pub(super) async fn take_over(&self, from: &DeviceName, to: &DeviceName, port: u16) -> Result<(), Error> {
        let (leaving, coming) = (self.own_link(from).await?, self.own_link(to).await?);
        let (old, new) = (self.configuration(from).await?, self.configuration(to).await?);
        let handover = Handover { port, beside: new.listen_port, coming: to.backend() };
        if old.listen_port == port {
            self.helped(self.filter.share_port(handover).await, from);
            self.set_device(from, &SetDevice { peers: silenced(&old), ..SetDevice::default() }).await?;
        }
        let peers = followers(&old, &new);
        if !peers.is_empty() {
            self.set_device(to, &SetDevice { peers, ..SetDevice::default() }).await?;
        }
        self.move_routes(leaving.index, coming.index).await?;
        self.nudge(to, coming.index, &new).await?;
        self.wait_for_sessions(from, to).await?;
        self.move_port(from, to, handover).await?;
        // The old device and the rules go when what is under way to either port has arrived.
        self.drain.moved();
        if self.configuration(to).await?.listen_port != port {
            return Err(Error::ReadBack { device: to.clone(), what: "the port" });
        }
        Ok(())
    }

    /// Without the packet filter's help the port moves all the same.
    fn helped(&self, ruled: Result<(), nft::Error>, from: &DeviceName) {
        match ruled {
            Ok(()) => self.wrote(),
            Err(error) => {
                tracing::warn!(%error, %from, "the port moves without help: what arrives meanwhile is lost");
            }
        }
    }

    /// In one step each: a packet finds the one device or the other.
    async fn move_routes(&self, from: u32, to: u32) -> Result<(), Error> {
        for mut route in self.netlink.routes().await.map_err(Error::Netlink)? {
            if route.protocol == self.options.protocol && route.target == Target::Device(from) {
                route.target = Target::Device(to);
                self.netlink.put_route(&route).await.map_err(Error::Netlink)?;
                self.wrote();
                self.drain.moved();
            }
        }
        Ok(())
    }

    /// Until everybody who has a session with the old device has one with the new, and the old one hears nothing; not for
    /// ever.
    async fn wait_for_sessions(&self, from: &DeviceName, to: &DeviceName) -> Result<(), Error> {
        let end = Instant::now() + HANDSHAKES;
        let mut heard = (0, Instant::now());
        while Instant::now() < end {
            let (old, new) = (self.configuration(from).await?, self.configuration(to).await?);
            let received = old.peers.values().map(|peer| peer.received).sum();
            if received != heard.0 {
                heard = (received, Instant::now());
            }
            if waits_for(&old, &new).next().is_none() && heard.1.elapsed() >= QUIET {
                return Ok(());
            }
            sleep(LOOK).await;
        }
        tracing::warn!(%from, %to, "the device takes over before every peer has a session with it");
        Ok(())
    }

    async fn move_port(&self, from: &DeviceName, to: &DeviceName, handover: Handover) -> Result<(), Error> {
        let Handover { port, beside, coming: _ } = handover;
        if self.configuration(from).await?.listen_port == port {
            self.set_device(from, &SetDevice { listen_port: Some(0), ..SetDevice::default() }).await?;
        }
        if beside != port {
            self.helped(self.filter.settle_port(handover).await, from);
            self.set_device(to, &SetDevice { listen_port: Some(port), ..SetDevice::default() }).await?;
        }
        Ok(())
    }

    /// Sends every peer an empty datagram: it makes a session where there is none, and the peer use it.
    async fn nudge(&self, device: &DeviceName, index: u32, info: &DeviceInfo) -> Result<(), Error> {
        let own = self.netlink.addresses().await.map_err(Error::Netlink)?;
        let own = own.into_iter().find(|address| address.index == index && address.global);
        let Some(source) = own.map(|address| address.address) else { return Ok(()) };
        let family = if source.is_ipv4() { Family::V4 } else { Family::V6 };
        // What can't be sent here is sent by the next packet of somebody else.
        let Ok(socket) = ProbeSocket::open(device.as_str(), family, 0) else { return Ok(()) };
        for address in info.peers.values().filter_map(inside) {
            let _ = socket.send(&[], (address, probe::PORT).into(), source);
        }
        Ok(())
    }
}

/// Peers without the keepalive with which they would call their other ends back.
fn silenced(old: &DeviceInfo) -> Vec<SetPeer> {
    let keeps = old.peers.iter().filter(|(_, peer)| peer.keepalive != 0);
    keeps.map(|(key, _)| SetPeer { update_only: true, keepalive: Some(0), ..SetPeer::new(*key) }).collect()
}

/// The peers of the new device that are elsewhere than on the old one.
fn followers(old: &DeviceInfo, new: &DeviceInfo) -> Vec<SetPeer> {
    let follow = |key: &PublicKey| {
        let endpoint = old.peers.get(key)?.endpoint?;
        let there = new.peers.get(key)?;
        let peer = SetPeer { update_only: true, endpoint: Some(endpoint), ..SetPeer::new(*key) };
        // One that has a session is where it was heard last.
        (there.handshake.is_none() && there.endpoint != Some(endpoint)).then_some(peer)
    };
    new.peers.keys().filter_map(follow).collect()
}

/// The peers with a session on the old device and none on the new.
fn waits_for<'a>(old: &'a DeviceInfo, new: &'a DeviceInfo) -> impl Iterator<Item = &'a PublicKey> {
    let lives = |peer: &PeerInfo| peer.handshake.is_some_and(|age| age < SESSION);
    let has_session = move |key: &PublicKey| new.peers.get(key).is_none_or(lives);
    old.peers.iter().filter(move |(key, peer)| lives(peer) && !has_session(key)).map(|(key, _)| key)
}

/// The peer's own address in the tunnel.
fn inside(peer: &PeerInfo) -> Option<IpAddr> {
    let single = peer.allowed_ips.iter().find(|prefix| prefix.prefix_len() == prefix.max_prefix_len());
    single.map(|prefix| prefix.addr())
}
