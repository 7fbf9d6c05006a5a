//! The UDP transport of tunnels: runs of datagrams to one peer leave as one message that the kernel cuts up. It refuses to
//! let an unreachable peer or an odd datagram hold up the others.

use std::{
    io::{self, IoSlice, IoSliceMut},
    net::{SocketAddr, SocketAddrV4, SocketAddrV6},
    os::fd::AsRawFd,
};

use bytes::BytesMut;
use gotatun::{
    packet::{Packet, PacketBufPool},
    udp::{UdpRecv, UdpSend, UdpTransportFactory, UdpTransportFactoryParams},
};
use nix::{
    cmsg_space,
    sys::socket::{ControlMessage, ControlMessageOwned, MsgFlags, SockaddrStorage, recvmsg, sendmsg},
};
use tokio::{
    io::Interest,
    net::UdpSocket as Socket,
    sync::watch,
    time::{Duration, Instant, timeout_at},
};

use super::place::{Bound, Place};

/// How long the socket of before is read beside the one that counts.
const BOTH: Duration = Duration::from_millis(100);
/// Datagrams in one message: 44 of a full-size packet still fit into one.
const RUN: usize = 44;
/// Bytes of one message, below the largest UDP payload.
const MESSAGE: usize = 65_000;
/// Datagrams handed over at once.
const BATCH: usize = 128;
/// Bytes that one message can bring, joined by the kernel or not.
const LARGEST: usize = 65_536;
/// Below this a message is copied out of the block that it came in.
const KEPT: usize = 8_192;

/// Opens the halves of a tunnel's place, one pair after the other: the socket stays.
#[derive(Default)]
pub(super) struct Transport(pub(super) Place);

/// The sending half.
#[derive(Clone)]
pub(super) struct Sender(Place);

/// The receiving half.
pub(super) struct Receiver {
    moves: watch::Receiver<Option<Bound>>,
    bound: Bound,
    /// Whether anything came to that socket yet.
    heard: bool,
    /// The socket of before, and until when it is read.
    before: Option<(Bound, Instant)>,
}

impl UdpTransportFactory for Transport {
    type Send = Sender;
    type Recv = Receiver;

    /// The port is the place's own, whatever the library remembers.
    async fn bind(&mut self, params: &UdpTransportFactoryParams) -> io::Result<(Sender, Receiver)> {
        let Self(place) = self;
        place.open().await?;
        let mut moves = place.moves();
        let bound = moves.borrow_and_update().clone().ok_or(io::ErrorKind::NotConnected)?;
        if let Some(mark) = params.fwmark {
            place.set_mark(mark)?;
        }
        Ok((Sender(place.clone()), Receiver { moves, bound, heard: false, before: None }))
    }
}

impl UdpSend for Sender {
    type SendManyBuf = ();

    async fn send_to(&self, packet: Packet, destination: SocketAddr) -> io::Result<()> {
        self.0.current()?.socket.send_to(packet, destination).await
    }

    fn max_number_of_packets_to_send(&self) -> usize {
        BATCH
    }

    async fn send_many_to(
        &self,
        _buffer: &mut (),
        packets: &mut Vec<(Packet, SocketAddr)>,
    ) -> io::Result<()> {
        let bound = self.0.current()?;
        let socket = bound.socket.socket();
        let mut rest = &packets[..];
        let mut first_fault = None;
        while let Some(length) = run_length(rest) {
            let (run, others) = rest.split_at(length);
            if let Err(error) = send_run(socket, run).await {
                first_fault.get_or_insert(error);
            }
            rest = others;
        }
        packets.clear();
        first_fault.map_or(Ok(()), Err)
    }

    fn local_addr(&self) -> io::Result<Option<SocketAddr>> {
        UdpSend::local_addr(&self.0.current()?.socket)
    }

    fn set_fwmark(&self, mark: u32) -> io::Result<()> {
        self.0.set_mark(mark)
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

async fn send_run(socket: &Socket, run: &[(Packet, SocketAddr)]) -> io::Result<()> {
    if let ([_, _, ..], Err(error)) = (run, send_joined(socket, run).await) {
        // No checksum offload on the way out, or a path that is narrower than the datagrams.
        tracing::trace!(%error, "sending datagrams one by one");
        for one in run.chunks(1) {
            send_joined(socket, one).await?;
        }
    }
    Ok(())
}

async fn send_joined(socket: &Socket, run: &[(Packet, SocketAddr)]) -> io::Result<()> {
    let Some((first, destination)) = run.first() else { return Ok(()) };
    let address = SockaddrStorage::from(*destination);
    let segment = u16::try_from(first.len()).map_err(io::Error::other)?;
    let send = || {
        let parts: [IoSlice<'_>; RUN] =
            std::array::from_fn(|index| IoSlice::new(run.get(index).map_or(&[], |(packet, _)| &packet[..])));
        let control = [ControlMessage::UdpGsoSegments(&segment)];
        let control = if run.len() > 1 { &control[..] } else { &[] };
        let parts = &parts[..run.len().min(RUN)];
        sendmsg(socket.as_raw_fd(), parts, control, MsgFlags::MSG_DONTWAIT, Some(&address))?;
        Ok(())
    };
    socket.async_io(Interest::WRITABLE, send).await
}

/// Memory that the kernel writes datagrams to.
#[derive(Default)]
pub(super) struct Block(BytesMut);

/// What one call has brought; nothing waiting is an error.
fn receive_joined(
    socket: &Socket,
    block: &mut Block,
    packets: &mut Vec<(Packet, SocketAddr)>,
) -> io::Result<()> {
    let Block(block) = block;
    if block.len() < LARGEST {
        *block = BytesMut::zeroed(LARGEST);
    }
    let mut control = cmsg_space!(i32);
    let mut parts = [IoSliceMut::new(block)];
    let received = recvmsg::<SockaddrStorage>(
        socket.as_raw_fd(),
        &mut parts,
        Some(&mut control),
        MsgFlags::MSG_DONTWAIT,
    )?;
    let length = received.bytes;
    let Some(source) = received.address.as_ref().and_then(source) else { return Ok(()) };
    let joined = received.cmsgs()?.find_map(|message| match message {
        ControlMessageOwned::UdpGroSegments(size) => usize::try_from(size).ok().filter(|size| *size > 0),
        _ => None,
    });
    let size = joined.unwrap_or(length);
    if length < KEPT {
        // A few bytes must not keep the whole block.
        let datagrams = block[..length].chunks(size.max(1));
        packets.extend(datagrams.map(|bytes| (Packet::from_bytes(bytes.into()), source)));
        return Ok(());
    }
    let mut datagrams = std::mem::take(block);
    datagrams.truncate(length);
    while !datagrams.is_empty() {
        let datagram = datagrams.split_to(size.min(datagrams.len()));
        packets.push((Packet::from_bytes(datagram), source));
    }
    Ok(())
}

/// All that waits, up to a batch.
fn receive_waiting(
    socket: &Socket,
    block: &mut Block,
    packets: &mut Vec<(Packet, SocketAddr)>,
) -> io::Result<()> {
    let before = packets.len();
    while packets.len() < before + BATCH {
        match receive_joined(socket, block, packets) {
            Ok(()) => {}
            Err(error) if packets.len() == before => return Err(error),
            Err(_) => break,
        }
    }
    Ok(())
}

/// The sender; one of IPv4 arrives as a mapped address on a socket for both families.
fn source(address: &SockaddrStorage) -> Option<SocketAddr> {
    let v4 = address.as_sockaddr_in().map(|address| SocketAddr::from(SocketAddrV4::from(*address)));
    let v6 = || address.as_sockaddr_in6().map(|address| SocketAddr::from(SocketAddrV6::from(*address)));
    let mut source = v4.or_else(v6)?;
    source.set_ip(source.ip().to_canonical());
    Some(source)
}

impl Receiver {
    /// A socket that nobody sent to has nobody who could still do so.
    fn follow(&mut self) {
        if let Some(next) = self.moves.borrow_and_update().clone() {
            let left = std::mem::replace(&mut self.bound, next);
            let heard = std::mem::take(&mut self.heard);
            self.before = heard.then(|| (left, Instant::now() + BOTH));
        }
    }

    /// Waits until something may have arrived, and names the socket.
    async fn arrived(&mut self) -> io::Result<Bound> {
        loop {
            let Self { moves, bound, heard: _, before } = self;
            tokio::select! {
                biased;
                Ok(()) = moves.changed() => self.follow(),
                ready = left(before.as_ref()), if before.is_some() => match ready {
                    Some(socket) => return Ok(socket),
                    None => self.before = None,
                },
                ready = bound.socket.socket().readable() => return ready.map(|()| bound.clone()),
            }
        }
    }
}

/// The socket of before when something waits there; `None`: its time is over.
async fn left(before: Option<&(Bound, Instant)>) -> Option<Bound> {
    let (bound, until) = before?;
    timeout_at(*until, bound.socket.socket().readable()).await.ok().map(|_| bound.clone())
}

impl UdpRecv for Receiver {
    type RecvManyBuf = Block;

    async fn recv_from(&mut self, pool: &mut PacketBufPool) -> io::Result<(Packet, SocketAddr)> {
        loop {
            let mut bound = self.arrived().await?;
            match bound.socket.recv_from(pool).await {
                Err(error) if !is_closed(&error) => skip(&error).await,
                other => {
                    self.heard = true;
                    return other;
                }
            }
        }
    }

    async fn recv_many_from(
        &mut self,
        block: &mut Block,
        _pool: &mut PacketBufPool,
        packets: &mut Vec<(Packet, SocketAddr)>,
    ) -> io::Result<()> {
        loop {
            let bound = self.arrived().await?;
            let socket = bound.socket.socket();
            match socket.try_io(Interest::READABLE, || receive_waiting(socket, block, packets)) {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                Err(error) if !is_closed(&error) => skip(&error).await,
                other => {
                    self.heard = true;
                    return other;
                }
            }
        }
    }

    fn enable_udp_gro(&self) -> io::Result<()> {
        self.bound.socket.enable_udp_gro()
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

    /// A message that is kept where it came in, one that is copied out, and one alone.
    #[tokio::test]
    async fn what_is_sent_in_runs_arrives_packet_by_packet() {
        let params = UdpTransportFactoryParams { addr: None, port: 0, fwmark: None };
        let (sender, _own) = Transport::default().bind(&params).await.unwrap();
        let (back, mut receiver) = Transport::default().bind(&params).await.unwrap();
        let port = UdpSend::local_addr(&back).unwrap().unwrap().port();
        let mut block = Block::default();
        for (count, size) in [(44, 1400), (5, 300), (1, 1200)] {
            let to = SocketAddr::from(([127, 0, 0, 1], port));
            let bytes = |number: usize| vec![u8::try_from(number).unwrap(); size];
            let sent = (0..count).map(|number| (Packet::from_bytes(bytes(number)[..].into()), to));
            sender.send_many_to(&mut (), &mut sent.collect()).await.unwrap();
            let (mut packets, mut pool) = (Vec::new(), PacketBufPool::new(0));
            while packets.len() < count {
                receiver.recv_many_from(&mut block, &mut pool, &mut packets).await.unwrap();
            }
            assert_eq!(packets.len(), count);
            let own = UdpSend::local_addr(&sender).unwrap().unwrap().port();
            for (number, (packet, from)) in packets.iter().enumerate() {
                assert_eq!(packet[..], bytes(number));
                assert_eq!(*from, SocketAddr::from(([127, 0, 0, 1], own)));
            }
        }
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
