//! Peers of a device, one at a time. It refuses the host's own key, prefixes with host bits, and to trust a write that was
//! not read back.

use spanwire_engine::{
    DeviceName, PublicKey,
    port::Written,
    worker::{ObservedDevice, ObservedPeer, PeerConfig},
};

use crate::{
    configuration::{AllowedIp, DeviceInfo, PeerInfo, SetDevice, SetPeer},
    diff::{self, PeerChange},
};

use super::{Error, LocalDevices};

impl LocalDevices {
    pub(super) async fn apply_peer(&self, config: &PeerConfig) -> Result<(), Error> {
        let answers = self.apply_together(&config.device, &[config]).await?;
        answers.into_iter().collect::<Result<Vec<Written>, Error>>().map(drop)
    }

    /// Changes several peers of one device with one reading, one change and one reading back. The answers are the peers';
    /// an error is the device's.
    pub(super) async fn apply_together(
        &self,
        device: &DeviceName,
        configs: &[&PeerConfig],
    ) -> Result<Vec<Result<Written, Error>>, Error> {
        let keys: Vec<PublicKey> = configs.iter().map(|config| config.public_key).collect();
        let info = self.wireguard.get_peers(device, &keys).await.map_err(Error::Configuration)?;
        let own = info.private_key.as_ref().map(|key| key.public());
        let there = observed(&info);
        let mut changes = Vec::new();
        let mut answers = Vec::with_capacity(configs.len());
        for config in configs {
            let answer = self.refuse(config, own).map(|()| {
                let remembered = self.endpoints().get(&(device.clone(), config.public_key)).copied();
                let change = diff::peer(there.peers.get(&config.public_key), config, remembered);
                let written = if change.is_some() { Written::Changed } else { Written::Same };
                changes.extend(change.as_ref().map(peer_message));
                written
            });
            answers.push(answer);
        }
        if changes.is_empty() {
            return Ok(answers);
        }
        self.set_device(device, &SetDevice { peers: changes, ..SetDevice::default() }).await?;
        let info = self.wireguard.get_peers(device, &keys).await.map_err(Error::Configuration)?;
        let now = observed(&info);
        for (config, answer) in configs.iter().zip(&mut answers) {
            let differs = diff::mismatch(now.peers.get(&config.public_key), config);
            if let Some(what) = differs.filter(|_| answer.is_ok()) {
                *answer = Err(Error::ReadBack { device: device.clone(), what });
            }
        }
        Ok(answers)
    }

    /// What a device would take without a word and never use.
    fn refuse(&self, config: &PeerConfig, own: Option<PublicKey>) -> Result<(), Error> {
        let PeerConfig { device, public_key, allowed_ips, endpoint: _, keepalive: _ } = config;
        if let Some(prefix) = allowed_ips.iter().find(|prefix| prefix.trunc() != **prefix) {
            return Err(Error::HostBits { prefix: *prefix, public_key: *public_key });
        }
        if *public_key == self.public || own == Some(*public_key) {
            return Err(Error::OwnKey { device: device.clone(), public_key: *public_key });
        }
        Ok(())
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
        self.wireguard.get(device).await.map_err(Error::Configuration)
    }

    async fn configuration_of(&self, device: &DeviceName, peer: &PublicKey) -> Result<DeviceInfo, Error> {
        self.wireguard.get_peers(device, &[*peer]).await.map_err(Error::Configuration)
    }

    async fn configure(&self, device: &DeviceName, peer: SetPeer) -> Result<(), Error> {
        self.set_device(device, &SetDevice { peers: vec![peer], ..SetDevice::default() }).await
    }

    pub(super) async fn set_device(&self, device: &DeviceName, set: &SetDevice) -> Result<(), Error> {
        self.wireguard.set(device, set).await.map_err(Error::Configuration)?;
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
