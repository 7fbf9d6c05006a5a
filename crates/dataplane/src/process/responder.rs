//! Answers the probes of peers on the device they arrive on, and remembers when each was last heard. It refuses to answer
//! anything that is not a probe.

use std::{
    collections::BTreeMap,
    net::IpAddr,
    sync::{Arc, Mutex, PoisonError},
    time::{Duration, Instant},
};

use tokio::task::JoinHandle;

use crate::{
    control::HeardEntry,
    netlink::rule::Family,
    probe::{
        PORT,
        socket::ProbeSocket,
        wire::{Datagram, Kind},
    },
};

type Table = BTreeMap<(String, IpAddr), Last>;

/// The last request of a peer.
#[derive(Clone, Copy)]
struct Last {
    at: Instant,
    /// How long before it the peer had heard an answer of ours.
    answered: Option<Duration>,
}

/// The last request of each peer, by device and address.
#[derive(Default, Clone)]
pub(super) struct Heard(Arc<Mutex<Table>>);

impl Heard {
    /// Starts to answer on `device`, for both families where the host has both.
    pub(super) fn answer(&self, device: &str) -> Vec<JoinHandle<()>> {
        let mut tasks = Vec::new();
        for &family in Family::present() {
            match ProbeSocket::open(device, family, PORT) {
                Ok(socket) => tasks.push(tokio::spawn(self.clone().run(device.to_owned(), socket))),
                Err(error) => tracing::warn!(%error, device, ?family, "probes of peers are not answered"),
            }
        }
        tasks
    }

    async fn run(self, device: String, socket: ProbeSocket) {
        loop {
            let (bytes, remote, local) = match socket.receive().await {
                Ok(received) => received,
                Err(error) => {
                    tracing::debug!(%error, device, "a probe was not received");
                    tokio::task::yield_now().await;
                    continue;
                }
            };
            let Some(request) = Datagram::parse(&bytes).filter(|probe| probe.kind == Kind::Request) else {
                continue;
            };
            let now = Instant::now();
            let last = Last { at: now, answered: request.heard };
            let before = self.table().insert((device.clone(), remote.ip()), last);
            let heard = before.map(|before| now.duration_since(before.at));
            let answer = Datagram { kind: Kind::Answer, sequence: request.sequence, heard };
            if let Err(error) = socket.send(&answer.render(), remote, local) {
                tracing::debug!(%error, device, "a probe was not answered");
            }
        }
    }

    pub(super) fn list(&self) -> Vec<HeardEntry> {
        let millis = |time: Duration| u64::try_from(time.as_millis()).unwrap_or(u64::MAX);
        let entry = |((device, remote), last): (&(String, IpAddr), &Last)| HeardEntry {
            device: device.clone(),
            remote: *remote,
            age: millis(last.at.elapsed()),
            answered: last.answered.map(millis),
        };
        self.table().iter().map(entry).collect()
    }

    pub(super) fn forget(&self, device: &str) {
        self.table().retain(|(name, _), _| name != device);
    }

    fn table(&self) -> std::sync::MutexGuard<'_, Table> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
