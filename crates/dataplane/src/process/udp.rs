//! The UDP transport of tunnels: runs of datagrams to one peer leave as one message that the kernel cuts up. It refuses to
//! let an unreachable peer or an odd datagram hold up the others.

use std::{
    io::{self, IoSlice},
    net::SocketAddr,
    os::fd::{AsFd, AsRawFd},
    sync::{Arc, Weak},
    time::Duration,
};

use gotatun::{
    packet::{Packet, PacketBufPool},
    udp::{
        UdpRecv, UdpSend, UdpTransportFactory, UdpTransportFactoryParams,
        socket::{UdpSocket, UdpSocketFactory},
    },
};
use nix::sys::socket::{ControlMessage, MsgFlags, SockaddrStorage, sendmsg, setsockopt, sockopt};
use tokio::io::Interest;

/// Bytes of each socket buffer.
const BUFFER: usize = 4 << 20;
/// Datagrams in one message: 44 of a full-size packet still fit into one.
const RUN: usize = 44;
/// Bytes of one message, below the largest UDP payload.
const MESSAGE: usize = 65_000;
/// Datagrams handed over at once.
const BATCH: usize = 128;

/// How long the socket of before may take to close.
const CLOSING: Duration = Duration::from_secs(2);

/// Binds the sockets of a tunnel, one after the other.
#[derive(Default)]
pub(super) struct Transport {
    /// Held by both halves of the socket that was bound last.
    open: Weak<()>,
    /// Its port.
    port: u16,
}

/// The sending half.
#[derive(Clone)]
pub(super) struct Sender {
    socket: UdpSocket,
    _open: Arc<()>,
}

/// The receiving half.
pub(super) struct Receiver {
    socket: UdpSocket,
    _open: Arc<()>,
}

impl Transport {
    /// The library ends the tasks that hold the socket of before, but does not wait for them: until they have ended the
    /// port is still taken.
    async fn wait_until_closed(&self) {
        let closed = async {
            while self.open.strong_count() > 0 {
                tokio::task::yield_now().await;
            }
        };
        if tokio::time::timeout(CLOSING, closed).await.is_err() {
            tracing::warn!("the socket of before is still open");
        }
    }

    /// The port of before may be held for a moment by a child of this process that has not become its program yet.
    async fn bind_again(
        &self,
        factory: &mut UdpSocketFactory,
        params: &UdpTransportFactoryParams,
    ) -> io::Result<(UdpSocket, UdpSocket)> {
        let deadline = tokio::time::Instant::now() + CLOSING;
        loop {
            match factory.bind(params).await {
                Err(error)
                    if error.kind() == io::ErrorKind::AddrInUse
                        && params.port == self.port
                        && tokio::time::Instant::now() < deadline =>
                {
                    tokio::time::sleep(Duration::from_millis(5)).await;
                }
                other => return other,
            }
        }
    }
}

impl UdpTransportFactory for Transport {
    type Send = Sender;
    type Recv = Receiver;

    async fn bind(&mut self, params: &UdpTransportFactoryParams) -> io::Result<(Sender, Receiver)> {
        self.wait_until_closed().await;
        let mut factory = UdpSocketFactory { recv_buffer_size: Some(BUFFER), send_buffer_size: Some(BUFFER) };
        let (send, receive) = self.bind_again(&mut factory, params).await?;
        // Beyond the system's limit where this process may; within it otherwise.
        let _ = setsockopt(&send.as_fd(), sockopt::RcvBufForce, &BUFFER);
        let _ = setsockopt(&send.as_fd(), sockopt::SndBufForce, &BUFFER);
        let open = Arc::new(());
        self.open = Arc::downgrade(&open);
        self.port = send.local_addr()?.port();
        let sender = Sender { socket: send, _open: Arc::clone(&open) };
        Ok((sender, Receiver { socket: receive, _open: open }))
    }
}

impl UdpSend for Sender {
    type SendManyBuf = ();

    async fn send_to(&self, packet: Packet, destination: SocketAddr) -> io::Result<()> {
        self.socket.send_to(packet, destination).await
    }

    fn max_number_of_packets_to_send(&self) -> usize {
        BATCH
    }

    async fn send_many_to(
        &self,
        _buffer: &mut (),
        packets: &mut Vec<(Packet, SocketAddr)>,
    ) -> io::Result<()> {
        let mut rest = &packets[..];
        let mut first_fault = None;
        while let Some(length) = run_length(rest) {
            let (run, others) = rest.split_at(length);
            if let Err(error) = self.send_run(run).await {
                first_fault.get_or_insert(error);
            }
            rest = others;
        }
        packets.clear();
        first_fault.map_or(Ok(()), Err)
    }

    fn local_addr(&self) -> io::Result<Option<SocketAddr>> {
        UdpSend::local_addr(&self.socket)
    }

    fn set_fwmark(&self, mark: u32) -> io::Result<()> {
        self.socket.set_fwmark(mark)
    }
}

/// How many packets from the start go to one destination with one size, but for a last shorter one.
fn run_length(packets: &[(Packet, SocketAddr)]) -> Option<usize> {
    let (first, destination) = packets.first()?;
    let mut total = 0;
    let mut length = 0;
    for (packet, to) in packets.iter().take(RUN) {
        total += packet.len();
        if to != destination || packet.len() > first.len() || total > MESSAGE {
            break;
        }
        length += 1;
        if packet.len() < first.len() {
            break;
        }
    }
    Some(length.max(1))
}

impl Sender {
    async fn send_run(&self, run: &[(Packet, SocketAddr)]) -> io::Result<()> {
        if let ([_, _, ..], Err(error)) = (run, self.send_joined(run).await) {
            // No checksum offload on the way out, or a path that is narrower than the datagrams.
            tracing::trace!(%error, "sending datagrams one by one");
            for one in run.chunks(1) {
                self.send_joined(one).await?;
            }
        }
        Ok(())
    }

    async fn send_joined(&self, run: &[(Packet, SocketAddr)]) -> io::Result<()> {
        let Some((first, destination)) = run.first() else { return Ok(()) };
        let address = SockaddrStorage::from(*destination);
        let segment = u16::try_from(first.len()).map_err(io::Error::other)?;
        let socket = self.socket.socket();
        let send = || {
            let parts: [IoSlice<'_>; RUN] = std::array::from_fn(|index| {
                IoSlice::new(run.get(index).map_or(&[], |(packet, _)| &packet[..]))
            });
            let control = [ControlMessage::UdpGsoSegments(&segment)];
            let control = if run.len() > 1 { &control[..] } else { &[] };
            let parts = &parts[..run.len().min(RUN)];
            sendmsg(socket.as_raw_fd(), parts, control, MsgFlags::MSG_DONTWAIT, Some(&address))?;
            Ok(())
        };
        socket.async_io(Interest::WRITABLE, send).await
    }
}

impl UdpRecv for Receiver {
    type RecvManyBuf = <UdpSocket as UdpRecv>::RecvManyBuf;

    async fn recv_from(&mut self, pool: &mut PacketBufPool) -> io::Result<(Packet, SocketAddr)> {
        loop {
            match self.socket.recv_from(pool).await {
                Err(error) if !is_closed(&error) => skip(&error).await,
                other => return other,
            }
        }
    }

    async fn recv_many_from(
        &mut self,
        buffer: &mut Self::RecvManyBuf,
        pool: &mut PacketBufPool,
        packets: &mut Vec<(Packet, SocketAddr)>,
    ) -> io::Result<()> {
        loop {
            match self.socket.recv_many_from(buffer, pool, packets).await {
                Err(error) if !is_closed(&error) => skip(&error).await,
                other => return other,
            }
        }
    }

    fn enable_udp_gro(&self) -> io::Result<()> {
        self.socket.enable_udp_gro()
    }
}

fn is_closed(error: &io::Error) -> bool {
    error.raw_os_error() == Some(nix::libc::EBADF)
}

/// The library ends a tunnel on any error of its socket; errors that speak of one datagram must not.
async fn skip(error: &io::Error) {
    tracing::debug!(%error, "a datagram was not received");
    tokio::task::yield_now().await;
}

#[cfg(test)]
mod tests {
    use super::*;

    fn packets(list: &[(usize, &str)]) -> Vec<(Packet, SocketAddr)> {
        let make = |(size, to): &(usize, &str)| {
            (Packet::from_bytes(bytes::BytesMut::zeroed(*size)), to.parse().unwrap())
        };
        list.iter().map(make).collect()
    }

    #[test]
    fn runs_end_at_another_destination_a_longer_packet_and_after_a_shorter_one() {
        let (a, b) = ("192.0.2.1:1", "192.0.2.2:1");
        assert_eq!(run_length(&packets(&[])), None);
        assert_eq!(run_length(&packets(&[(100, a), (100, a), (100, b)])), Some(2));
        assert_eq!(run_length(&packets(&[(100, a), (101, a)])), Some(1));
        assert_eq!(run_length(&packets(&[(100, a), (60, a), (100, a)])), Some(2));
        assert_eq!(run_length(&packets(&[(1472, a); 60])), Some(44));
        assert_eq!(run_length(&packets(&[(9000, a); 60])), Some(7));
        assert_eq!(run_length(&packets(&[(65_100, a), (10, a)])), Some(1));
    }
}
