//! The sockets of a session: one a device and family. It refuses to keep one whose device was made anew.

use std::{
    collections::BTreeMap,
    net::{IpAddr, SocketAddr},
    sync::Arc,
    time::Duration,
};

use spanwire_engine::DeviceName;
use tokio::{sync::mpsc, task::JoinHandle};

use crate::netlink::rule::Family;

use super::super::{
    PORT,
    prober::Target,
    socket::ProbeSocket,
    wire::{Datagram, Kind},
};

/// An answer.
pub(super) struct Heard {
    pub(super) device: DeviceName,
    pub(super) remote: IpAddr,
    pub(super) sequence: u64,
}

struct Open {
    socket: Arc<ProbeSocket>,
    reader: JoinHandle<()>,
}

impl Drop for Open {
    fn drop(&mut self) {
        self.reader.abort();
    }
}

/// See the module.
pub(super) struct Sockets {
    open: BTreeMap<(DeviceName, Family), Open>,
    heard: mpsc::Sender<Heard>,
}

impl Sockets {
    pub(super) fn new(heard: mpsc::Sender<Heard>) -> Self {
        Self { open: BTreeMap::new(), heard }
    }

    /// Closes those of other devices.
    pub(super) fn keep(&mut self, devices: &[&DeviceName]) {
        self.open.retain(|(device, _), _| devices.contains(&device));
    }

    /// Sends one question. A socket that can't send is closed: the next question opens another.
    pub(super) fn ask(&mut self, target: &Target, sequence: u64, heard: Option<Duration>) {
        let Some((local, remote)) = target.addresses else { return };
        let family = if remote.is_ipv4() { Family::V4 } else { Family::V6 };
        let key = (target.device.clone(), family);
        if !self.open.contains_key(&key) {
            match self.open(&target.device, family) {
                Ok(open) => drop(self.open.insert(key.clone(), open)),
                Err(error) => {
                    tracing::debug!(%error, device = %target.device, "could not open a socket for probes");
                    return;
                }
            }
        }
        let Some(open) = self.open.get(&key) else { return };
        let question = Datagram { kind: Kind::Request, sequence, heard }.render();
        let sent = open.socket.send(&question, SocketAddr::new(remote, PORT), local);
        if let Err(error) = sent {
            tracing::debug!(%error, device = %target.device, "a probe was not sent");
            self.open.remove(&key);
        }
    }

    fn open(&self, device: &DeviceName, family: Family) -> std::io::Result<Open> {
        let socket = Arc::new(ProbeSocket::open(device.as_str(), family, 0)?);
        let reader = tokio::spawn(read(Arc::clone(&socket), device.clone(), self.heard.clone()));
        Ok(Open { socket, reader })
    }
}

async fn read(socket: Arc<ProbeSocket>, device: DeviceName, heard: mpsc::Sender<Heard>) {
    loop {
        let (bytes, remote, _) = match socket.receive().await {
            Ok(received) => received,
            Err(error) => {
                // An ICMP error of some earlier question, or the end of the device: the sender finds out.
                tracing::debug!(%error, %device, "an answer was not received");
                tokio::task::yield_now().await;
                continue;
            }
        };
        let Some(answer) = Datagram::parse(&bytes).filter(|answer| answer.kind == Kind::Answer) else {
            continue;
        };
        let device = device.clone();
        let answer = Heard { device, remote: remote.ip(), sequence: answer.sequence };
        if heard.send(answer).await.is_err() {
            return;
        }
    }
}
