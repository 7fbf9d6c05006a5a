//! What waits to be handed to the host, and how it goes there: what belongs together in one write. It refuses to wait for
//! more than is there.

use std::{
    io::IoSlice,
    os::fd::AsFd,
    sync::{Arc, Mutex, PoisonError},
};

use gotatun::packet::Packet;
use nix::sys::uio::writev;
use tokio::sync::mpsc;
use tun_rs::AsyncDevice;

use super::join::runs;

/// Packets that are written without waiting for the task that does it otherwise.
const BATCH: usize = 128;

/// The way in.
#[derive(Clone)]
pub(super) struct Outbox {
    waiting: Arc<Waiting>,
    /// A value in it tells the writing task to look.
    look: mpsc::Sender<()>,
}

struct Waiting {
    device: Arc<AsyncDevice>,
    packets: Mutex<Vec<Packet>>,
}

impl Outbox {
    /// With the task that writes; it ends when the last clone of this is gone.
    pub(super) fn open(device: Arc<AsyncDevice>) -> Self {
        let waiting = Arc::new(Waiting { device, packets: Mutex::default() });
        let (look, mut looks) = mpsc::channel(1);
        let task = Arc::clone(&waiting);
        tokio::spawn(async move {
            while looks.recv().await.is_some() {
                task.wait_while_more_comes().await;
                task.write();
            }
        });
        Self { waiting, look }
    }

    /// Takes a packet to be written soon.
    pub(super) fn add(&self, packet: Packet) {
        let mut packets = self.waiting.packets.lock().unwrap_or_else(PoisonError::into_inner);
        packets.push(packet);
        let count = packets.len();
        drop(packets);
        if count == 1 {
            // Full: it looks anyway.
            let _ = self.look.try_send(());
        } else if count >= BATCH {
            self.waiting.write();
        }
    }
}

impl Waiting {
    /// Lets the tasks that have packets at hand go first: what comes together is written together.
    async fn wait_while_more_comes(&self) {
        let mut before = 0;
        loop {
            let count = self.packets.lock().unwrap_or_else(PoisonError::into_inner).len();
            if count <= before {
                return;
            }
            before = count;
            tokio::task::yield_now().await;
        }
    }

    /// Writes all; under the lock, so that packets keep their order.
    fn write(&self) {
        let mut packets = self.packets.lock().unwrap_or_else(PoisonError::into_inner);
        for run in runs(&packets, self.device.udp_gso()) {
            let header = run.lead(&mut packets).encode();
            let parts = [&header[..]].into_iter().chain(run.parts(&packets));
            let parts: Vec<IoSlice<'_>> = parts.map(IoSlice::new).collect();
            if let Err(error) = writev(self.device.as_fd(), &parts) {
                tracing::debug!(%error, "packets were not handed to the host");
            }
        }
        packets.clear();
    }
}
