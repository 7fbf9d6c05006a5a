//! Peers of a device, one at a time. It refuses the host's own key, prefixes with host bits, and to trust a write that was
//! not read back.

use spanwire_engine::{
    DeviceName, PublicKey,
    worker::{ObservedDevice, ObservedPeer, PeerConfig},
};

use crate::{
    diff::{self, PeerChange},
    uapi::{AllowedIp, DeviceInfo, PeerInfo, SetDevice, SetPeer},
};

use super::{Error, LocalDevices};

impl LocalDevices {
    pub(super) async fn apply_peer(&self, config: &PeerConfig) -> Result<(), Error> {
        let PeerConfig { device, public_key, allowed_ips, endpoint: _, keepalive: _ } = config;
        if let Some(prefix) = allowed_ips.iter().find(|prefix| prefix.trunc() != **prefix) {
            return Err(Error::HostBits { prefix: *prefix, public_key: *public_key });
        }
        let info = self.configuration_of(device, public_key).await?;
        let own = info.private_key.as_ref().map(|key| key.public());
        if *public_key == self.public || own == Some(*public_key) {
            return Err(Error::OwnKey { device: device.clone(), public_key: *public_key });
        }
        let there = observed(&info);
        let remembered = self.endpoints().get(&(device.clone(), *public_key)).copied();
        let Some(change) = diff::peer(there.peers.get(public_key), config, remembered) else { return Ok(()) };
        self.configure(device, peer_message(&change)).await?;
        let now = observed(&self.configuration_of(device, public_key).await?);
        match diff::mismatch(now.peers.get(public_key), config) {
            Some(what) => Err(Error::ReadBack { device: device.clone(), what }),
            None => Ok(()),
        }
    }

    pub(super) async fn remove_peer(&self, device: &DeviceName, public_key: &PublicKey) -> Result<(), Error> {
        if !self.configuration_of(device, public_key).await?.peers.contains_key(public_key) {
            return Ok(());
        }
        let removal = SetPeer { remove: true, ..SetPeer::new(*public_key) };
        self.configure(device, removal).await?;
        self.endpoints().remove(&(device.clone(), *public_key));
        if self.configuration_of(device, public_key).await?.peers.contains_key(public_key) {
            return Err(Error::ReadBack { device: device.clone(), what: "a removed peer" });
        }
        Ok(())
    }

    pub(super) async fn configuration(&self, device: &DeviceName) -> Result<DeviceInfo, Error> {
        self.uapi.get(device).await.map_err(Error::Configuration)
    }

    async fn configuration_of(&self, device: &DeviceName, peer: &PublicKey) -> Result<DeviceInfo, Error> {
        self.uapi.get_peer(device, peer).await.map_err(Error::Configuration)
    }

    async fn configure(&self, device: &DeviceName, peer: SetPeer) -> Result<(), Error> {
        self.set_device(device, &SetDevice { peers: vec![peer], ..SetDevice::default() }).await
    }

    pub(super) async fn set_device(&self, device: &DeviceName, set: &SetDevice) -> Result<(), Error> {
        self.uapi.set(device, set).await.map_err(Error::Configuration)?;
        self.wrote();
        Ok(())
    }
}

/// A change in the words of the configuration protocol: one message, so that a new peer has its endpoint and keepalive
/// from its first instant.
fn peer_message(change: &PeerChange) -> SetPeer {
    let PeerChange { public_key, create, endpoint, keepalive, add, remove } = change;
    let adding = add.iter().map(|prefix| AllowedIp { remove: false, prefix: *prefix });
    let removing = remove.iter().map(|prefix| AllowedIp { remove: true, prefix: *prefix });
    SetPeer {
        update_only: !create,
        endpoint: *endpoint,
        keepalive: keepalive.map(|time| u16::try_from(time.as_secs()).unwrap_or(u16::MAX)),
        allowed_ips: adding.chain(removing).collect(),
        ..SetPeer::new(*public_key)
    }
}

/// The peers and the port of a device as a plan sees them.
pub(super) fn observed(info: &DeviceInfo) -> ObservedDevice {
    let DeviceInfo { private_key, listen_port, mark: _, peers } = info;
    ObservedDevice {
        port: *listen_port,
        public_key: private_key.as_ref().map(|key| key.public()),
        peers: peers.iter().map(|(key, peer)| (*key, observed_peer(peer))).collect(),
        ..ObservedDevice::default()
    }
}

fn observed_peer(peer: &PeerInfo) -> ObservedPeer {
    ObservedPeer {
        allowed_ips: peer.allowed_ips.clone(),
        endpoint: peer.endpoint,
        keepalive: std::time::Duration::from_secs(peer.keepalive.into()),
    }
}
