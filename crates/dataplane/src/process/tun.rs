//! The TUN device of one tunnel, with segmentation offload both ways, as gotatun's packet source and sink. It refuses to
//! let one odd packet end the device: only its deletion does.

use std::{io, sync::Arc, time::Duration};

use bytes::BytesMut;
use gotatun::{
    packet::{Ip, Packet, PacketBufPool},
    tun::{IpRecv, IpSend, MtuWatcher},
};
use tokio::sync::{mpsc, watch};
use tun_rs::{AsyncDevice, DeviceBuilder, GROTable, VIRTIO_NET_HDR_LEN};

/// Packets read or written at once.
const BATCH: usize = 128;
/// The largest packet of one segment; the largest MTU that a device may have.
const SEGMENT: usize = 9216;
/// The largest packet before it is cut into segments, or after segments are joined.
const JOINED: usize = 65536;
/// Packets waiting to be written.
const QUEUE: usize = 1024;

/// The half that reads what the host sends.
pub(super) struct TunReceive {
    device: Arc<AsyncDevice>,
    joined: Vec<u8>,
    segments: Vec<BytesMut>,
    sizes: Vec<usize>,
    mtu: watch::Receiver<u16>,
    gone: watch::Sender<bool>,
}

/// The half that hands packets to the host.
#[derive(Clone)]
pub(super) struct TunSend(mpsc::Sender<Packet<Ip>>);

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
    let (packets, queue) = mpsc::channel(QUEUE);
    let (mtu, mtu_seen) = watch::channel(mtu);
    let (gone, gone_seen) = watch::channel(false);
    tokio::spawn(write_batches(Arc::clone(&device), queue));
    let file = File(Arc::clone(&device));
    let receive = TunReceive {
        device,
        joined: vec![0; VIRTIO_NET_HDR_LEN + JOINED],
        segments: segments(),
        sizes: vec![0; BATCH],
        mtu: mtu_seen,
        gone,
    };
    Ok(Tun { receive, send: TunSend(packets), mtu, gone: gone_seen, file })
}

impl IpSend for TunSend {
    async fn send(&mut self, packet: Packet<Ip>) -> io::Result<()> {
        self.0.send(packet).await.map_err(|_| io::ErrorKind::BrokenPipe.into())
    }
}

impl IpRecv for TunReceive {
    async fn recv<'a>(
        &'a mut self,
        pool: &mut PacketBufPool,
    ) -> io::Result<impl Iterator<Item = Packet<Ip>> + Send + 'a> {
        loop {
            let read = self.device.recv_multiple(&mut self.joined, &mut self.segments, &mut self.sizes, 0);
            match read.await {
                Ok(count) => {
                    let read = self.segments.iter().zip(&self.sizes).take(count);
                    let packets: Vec<_> =
                        read.filter_map(|(segment, size)| packet(pool, segment.get(..*size)?)).collect();
                    return Ok(packets.into_iter());
                }
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

/// Cut from one allocation, of which the system provides only the pages that are used.
fn segments() -> Vec<BytesMut> {
    let mut all = BytesMut::zeroed(BATCH * SEGMENT);
    (0..BATCH).map(|_| all.split_to(SEGMENT)).collect()
}

fn packet(pool: &PacketBufPool, bytes: &[u8]) -> Option<Packet<Ip>> {
    let mut packet = pool.get();
    packet.buf_mut().clear();
    packet.buf_mut().extend_from_slice(bytes);
    packet.try_into_ip().ok()
}

/// The netdevice is gone, as opposed to one packet being refused.
fn is_deleted(error: &io::Error) -> bool {
    use nix::libc::{EBADF, EBADFD, ENODEV};
    matches!(error.raw_os_error(), Some(EBADF | EBADFD | ENODEV))
}

async fn write_batches(device: Arc<AsyncDevice>, mut queue: mpsc::Receiver<Packet<Ip>>) {
    let mut table = GROTable::default();
    let mut batch: Vec<Packet<Ip>> = Vec::with_capacity(BATCH);
    let mut buffers: Vec<BytesMut> =
        (0..BATCH).map(|_| BytesMut::with_capacity(VIRTIO_NET_HDR_LEN + JOINED)).collect();
    while queue.recv_many(&mut batch, BATCH).await > 0 {
        let count = batch.len();
        for (buffer, packet) in buffers.iter_mut().zip(batch.drain(..)) {
            buffer.clear();
            buffer.resize(VIRTIO_NET_HDR_LEN, 0);
            buffer.extend_from_slice(&packet.into_bytes());
        }
        if let Err(error) = device.send_multiple(&mut table, &mut buffers[..count], VIRTIO_NET_HDR_LEN).await
        {
            tracing::debug!(%error, "packets were not handed to the host");
        }
    }
}
