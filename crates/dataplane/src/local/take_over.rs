//! One device takes the place of another: it listens where that one did, and its peers begin where those of the other are
//! now. It refuses to leave the port to nobody longer than two calls take.

use spanwire_engine::{DeviceName, PublicKey};

use crate::configuration::{DeviceInfo, SetDevice, SetPeer};

use super::{Error, LocalDevices};

impl LocalDevices {
    pub(super) async fn take_over(&self, from: &DeviceName, to: &DeviceName, port: u16) -> Result<(), Error> {
        for device in [from, to] {
            self.own_link(device).await?;
        }
        let (old, new) = (self.configuration(from).await?, self.configuration(to).await?);
        let peers = followers(&old, &new);
        if !peers.is_empty() {
            self.set_device(to, &SetDevice { peers, ..SetDevice::default() }).await?;
        }
        if old.listen_port == port {
            self.set_device(from, &SetDevice { listen_port: Some(0), ..SetDevice::default() }).await?;
        }
        if new.listen_port != port {
            self.set_device(to, &SetDevice { listen_port: Some(port), ..SetDevice::default() }).await?;
        }
        if self.configuration(to).await?.listen_port != port {
            return Err(Error::ReadBack { device: to.clone(), what: "the port" });
        }
        Ok(())
    }
}

/// The peers of the new device that are elsewhere than on the old one.
fn followers(old: &DeviceInfo, new: &DeviceInfo) -> Vec<SetPeer> {
    let follow = |key: &PublicKey| {
        let endpoint = old.peers.get(key)?.endpoint?;
        let there = new.peers.get(key)?.endpoint;
        let peer = SetPeer { update_only: true, endpoint: Some(endpoint), ..SetPeer::new(*key) };
        (there != Some(endpoint)).then_some(peer)
    };
    new.peers.keys().filter_map(follow).collect()
}
