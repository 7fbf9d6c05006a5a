//! The TUN device of one tunnel, with segmentation offload both ways, as gotatun's packet source and sink. It refuses to
//! let one odd packet end the device: only its deletion does.

mod join;
mod offload;
mod outbox;
mod split;

use std::{io, sync::Arc, time::Duration};

use gotatun::{
    packet::{Ip, Packet, PacketBufPool},
    tun::{IpRecv, IpSend, MtuWatcher},
};
use tokio::sync::watch;
use tun_rs::{AsyncDevice, DeviceBuilder};

use outbox::Outbox;
use split::split;

/// Bytes that the host hands over at once: the largest IP packet.
const PIECE: usize = 65_536;

/// The half that reads what the host sends.
pub(super) struct TunReceive {
    device: Arc<AsyncDevice>,
    piece: Vec<u8>,
    packets: Vec<Packet<Ip>>,
    mtu: watch::Receiver<u16>,
    gone: watch::Sender<bool>,
}

/// The half that hands packets to the host.
#[derive(Clone)]
pub(super) struct TunSend(Outbox);

/// A device and what its holder needs to know of it.
pub(super) struct Tun {
    pub(super) receive: TunReceive,
    pub(super) send: TunSend,
    /// Told by the holder when the MTU changes.
    pub(super) mtu: watch::Sender<u16>,
    /// Turns true when somebody deletes the device.
    pub(super) gone: watch::Receiver<bool>,
    /// Keeps the device's file open until [`File::close`].
    pub(super) file: File,
}

/// The file of a device.
pub(super) struct File(Arc<AsyncDevice>);

const LET_GO: Duration = Duration::from_millis(20);
const LET_GO_LOOKS: u32 = 250;

impl File {
    /// Closes it where no packet of another device waits: the kernel may hold the call up for its lock. Tasks of the device
    /// that still end let go of it first.
    pub(super) async fn close(self) {
        for _ in 0..LET_GO_LOOKS {
            if Arc::strong_count(&self.0) == 1 {
                break;
            }
            tokio::time::sleep(LET_GO).await;
        }
        // It fails only where the process ends, which closes it too.
        let _ = tokio::task::spawn_blocking(move || drop(self.0)).await;
    }
}

/// Creates the device, down and without an address.
pub(super) async fn create(name: &str, mtu: u16) -> io::Result<Tun> {
    let builder = DeviceBuilder::new().name(name).mtu(mtu).enable(false);
    let builder = builder.with(|builder| {
        builder.offload(true);
    });
    // The kernel may hold the calls up for its lock: not on a thread that moves packets.
    let built = tokio::task::spawn_blocking(move || builder.build_async()).await;
    let device = Arc::new(built.map_err(io::Error::other)??);
    let (mtu, mtu_seen) = watch::channel(mtu);
    let (gone, gone_seen) = watch::channel(false);
    let send = TunSend(Outbox::open(Arc::clone(&device)));
    let file = File(Arc::clone(&device));
    let receive = TunReceive {
        device,
        piece: vec![0; offload::LENGTH + PIECE],
        packets: Vec::new(),
        mtu: mtu_seen,
        gone,
    };
    Ok(Tun { receive, send, mtu, gone: gone_seen, file })
}

impl IpSend for TunSend {
    async fn send(&mut self, packet: Packet<Ip>) -> io::Result<()> {
        self.0.add(packet.into_bytes());
        Ok(())
    }
}

impl IpRecv for TunReceive {
    async fn recv<'a>(
        &'a mut self,
        _pool: &mut PacketBufPool,
    ) -> io::Result<impl Iterator<Item = Packet<Ip>> + Send + 'a> {
        loop {
            let read = self.device.recv(&mut self.piece).await;
            match read.and_then(|length| split(&mut self.piece[..length], &mut self.packets)) {
                Ok(()) => return Ok(self.packets.drain(..)),
                Err(error) if is_deleted(&error) => {
                    self.gone.send_replace(true);
                    return Err(error);
                }
                Err(error) => {
                    tracing::debug!(%error, "skipped a packet that could not be read");
                    tokio::task::yield_now().await;
                }
            }
        }
    }

    fn mtu(&self) -> MtuWatcher {
        self.mtu.clone().into()
    }
}

/// The netdevice is gone, as opposed to one packet being refused.
fn is_deleted(error: &io::Error) -> bool {
    use nix::libc::{EBADF, EBADFD, ENODEV};
    matches!(error.raw_os_error(), Some(EBADF | EBADFD | ENODEV))
}

#[cfg(test)]
mod tests;
