//! One device takes the place of another: its peers get sessions with it beside those of the other, then routes move, and
//! when nobody uses the other any more it listens where that one did. It refuses to close the old door while somebody who was
//! there a moment ago still uses it, for as long as a handshake may take.
//!
//! A packet is lost where it meets no device with its session. So both devices stand at one port until every session that
//! lives has a successor (see [`Handover`]). It may be begun again at any point.

use std::time::Duration;

use spanwire_engine::{DeviceName, PublicKey};
use tokio::time::{Instant, sleep};

use crate::{
    configuration::{DeviceInfo, PeerInfo, SetDevice, SetPeer},
    netlink::route::Target,
    nft::{self, Handover},
};

use super::{Error, LocalDevices};

/// How long sessions may take to be made anew, and the old ones to fall silent; a lost first message is sent again after 5 s.
const HANDSHAKES: Duration = Duration::from_secs(7);
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
        let handover = Handover { port, beside: new.listen_port };
        if old.listen_port == port {
            self.helped(self.filter.share_port(handover).await, from);
            self.set_device(from, &SetDevice { peers: silenced(&old), ..SetDevice::default() }).await?;
        }
        tracing::debug!(%from, %to, port, "two devices share the port");
        self.set_device(to, &SetDevice { peers: followers(&old, &new), ..SetDevice::default() }).await?;
        let end = Instant::now() + HANDSHAKES;
        self.wait_for_sessions(from, to, end).await?;
        self.move_routes(leaving.index, coming.index).await?;
        self.wait_for_silence(from, end).await?;
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

    /// Until everybody who has a session with the old device has one with the new; not for ever. Two first messages that
    /// cross undo each other, and the next ones leave after five seconds: until then traffic stays where it is.
    async fn wait_for_sessions(&self, from: &DeviceName, to: &DeviceName, end: Instant) -> Result<(), Error> {
        while Instant::now() < end {
            let (old, new) = (self.configuration(from).await?, self.configuration(to).await?);
            if waits_for(&old, &new).next().is_none() {
                return Ok(());
            }
            sleep(LOOK).await;
        }
        tracing::warn!(%from, %to, "the device takes over before every peer has a session with it");
        Ok(())
    }

    /// Until the old device hears nothing any more; not for ever.
    async fn wait_for_silence(&self, from: &DeviceName, end: Instant) -> Result<(), Error> {
        let mut heard = (0, Instant::now());
        while Instant::now() < end {
            let received = self.configuration(from).await?.peers.values().map(|peer| peer.received).sum();
            if received != heard.0 {
                heard = (received, Instant::now());
            }
            if heard.1.elapsed() >= QUIET {
                return Ok(());
            }
            sleep(LOOK).await;
        }
        tracing::warn!(%from, "the device leaves its port while it is still used");
        Ok(())
    }

    async fn move_port(&self, from: &DeviceName, to: &DeviceName, handover: Handover) -> Result<(), Error> {
        let Handover { port, beside } = handover;
        let old = self.configuration(from).await?;
        if old.listen_port == port || !old.peers.is_empty() {
            let set = SetDevice { listen_port: Some(0), peers: forgotten(&old), ..SetDevice::default() };
            self.set_device(from, &set).await?;
        }
        if beside != port {
            self.helped(self.filter.settle_port(handover).await, from);
            self.set_device(to, &SetDevice { listen_port: Some(port), ..SetDevice::default() }).await?;
        }
        Ok(())
    }
}

/// Peers without the keepalive with which they would call their other ends back.
fn silenced(old: &DeviceInfo) -> Vec<SetPeer> {
    let keeps = old.peers.iter().filter(|(_, peer)| peer.keepalive != 0);
    keeps.map(|(key, _)| SetPeer { update_only: true, keepalive: Some(0), ..SetPeer::new(*key) }).collect()
}

/// No peers: whatever still left by the device, from its own port, would draw its peer there.
fn forgotten(old: &DeviceInfo) -> Vec<SetPeer> {
    old.peers.keys().map(|key| SetPeer { remove: true, ..SetPeer::new(*key) }).collect()
}

/// The peers of the new device, where the old one has them, each with a keepalive that is due at once: it makes a session
/// where there is none, and has the peer use it. The next pass makes it the usual one.
fn followers(old: &DeviceInfo, new: &DeviceInfo) -> Vec<SetPeer> {
    let follow = |(key, there): (&PublicKey, &PeerInfo)| {
        // One that has a session is where it was heard last.
        let endpoint =
            old.peers.get(key).and_then(|peer| peer.endpoint).filter(|_| there.handshake.is_none());
        SetPeer { update_only: true, endpoint, keepalive: Some(1), ..SetPeer::new(*key) }
    };
    new.peers.iter().map(follow).collect()
}

/// The peers with a session on the old device and none on the new.
fn waits_for<'a>(old: &'a DeviceInfo, new: &'a DeviceInfo) -> impl Iterator<Item = &'a PublicKey> {
    let lives = |peer: &PeerInfo| peer.handshake.is_some_and(|age| age < SESSION);
    let has_session = move |key: &PublicKey| new.peers.get(key).is_none_or(lives);
    old.peers.iter().filter(move |(key, peer)| lives(peer) && !has_session(key)).map(|(key, _)| key)
}
