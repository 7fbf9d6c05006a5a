//! Cuts what the host hands over in one piece into packets of the link's size. It refuses a piece that contradicts itself.

use std::io;

use bytes::BytesMut;
use gotatun::packet::{Ip, Packet};

use super::offload::{CONGESTION, LENGTH, NEEDS_CHECKSUM, ONE, Offload, Sum, TCP_V4, TCP_V6, UDP};

/// The library pads packets to a multiple of this; with room for it behind each it need not move them.
const PADDING: usize = 16;

const FIN_AND_PUSH: u8 = 0x09;
const REDUCED: u8 = 0x80;

/// Appends the packets of `piece`, which begins with the header of the offload.
pub(super) fn split(piece: &mut [u8], packets: &mut Vec<Packet<Ip>>) -> io::Result<()> {
    let (header, piece) = piece.split_first_chunk_mut::<LENGTH>().ok_or(WRONG)?;
    let header = Offload::decode(*header);
    if header.kind == ONE {
        return whole(&header, piece, packets);
    }
    let piece = Piece::read(&header, piece)?;
    let room = (piece.headers.len() + piece.segment).next_multiple_of(PADDING);
    let count = piece.payload.len().div_ceil(piece.segment);
    let mut block = BytesMut::with_capacity(count * room);
    for (number, payload) in piece.payload.chunks(piece.segment).enumerate() {
        let from = block.len();
        block.extend_from_slice(piece.headers);
        block.extend_from_slice(payload);
        piece.finish(&mut block[from..], number, number + 1 == count);
        let length = block.len() - from;
        block.resize(from + room, 0);
        let mut packet = block.split_to(room);
        packet.truncate(length);
        packets.extend(Packet::from_bytes(packet).try_into_ip());
    }
    Ok(())
}

const WRONG: io::ErrorKind = io::ErrorKind::InvalidData;

/// One packet; its checksum may be left to us.
fn whole(header: &Offload, piece: &mut [u8], packets: &mut Vec<Packet<Ip>>) -> io::Result<()> {
    if header.flags & NEEDS_CHECKSUM != 0 {
        let from = usize::from(header.checksum_from);
        let rest = piece.get_mut(from..).ok_or(WRONG)?;
        let sum = Sum::default().with(rest).complete();
        let at = usize::from(header.checksum_at);
        rest.get_mut(at..at + 2).ok_or(WRONG)?.copy_from_slice(&sum);
    }
    let mut packet = BytesMut::with_capacity(piece.len().next_multiple_of(PADDING));
    packet.extend_from_slice(piece);
    packets.extend(Packet::from_bytes(packet).try_into_ip());
    Ok(())
}

/// Many packets as one.
struct Piece<'a> {
    headers: &'a [u8],
    payload: &'a [u8],
    /// Bytes of payload in each packet but the last.
    segment: usize,
    /// Bytes of the IP header.
    ip: usize,
    tcp: bool,
    v6: bool,
}

impl<'a> Piece<'a> {
    fn read(header: &Offload, bytes: &'a [u8]) -> io::Result<Self> {
        let v6 = bytes.first().ok_or(WRONG)? >> 4 == 6;
        let tcp = match header.kind & !CONGESTION {
            TCP_V4 if !v6 => true,
            TCP_V6 if v6 => true,
            UDP => false,
            _ => return Err(WRONG.into()),
        };
        let (ip, segment) = (usize::from(header.checksum_from), usize::from(header.segment));
        // The length that the kernel gives can be that of a whole packet where it forwards: the headers say it.
        let transport = if tcp { usize::from(bytes.get(ip + 12).ok_or(WRONG)? >> 4) * 4 } else { 8 };
        let least = (if v6 { 40 } else { 20 }, if tcp { 20 } else { 8 });
        let (headers, payload) = bytes.split_at_checked(ip + transport).ok_or(WRONG)?;
        let whole_headers = ip >= least.0 && transport >= least.1;
        if segment == 0 || !whole_headers || headers.len() + segment > usize::from(u16::MAX) {
            return Err(WRONG.into());
        }
        Ok(Self { headers, payload, segment, ip, tcp, v6 })
    }

    /// Makes headers and payload packet `number` of the piece.
    fn finish(&self, packet: &mut [u8], number: usize, last: bool) {
        let length = packet.len();
        let (ip, transport) = packet.split_at_mut(self.ip);
        if self.v6 {
            ip[4..6].copy_from_slice(&be(length - 40));
        } else {
            ip[2..4].copy_from_slice(&be(length));
            let identity = u16::from_be_bytes([ip[4], ip[5]]).wrapping_add(number as u16);
            ip[4..6].copy_from_slice(&identity.to_be_bytes());
            ip[10..12].fill(0);
            let sum = Sum::default().with(ip).complete();
            ip[10..12].copy_from_slice(&sum);
        }
        let at = if self.tcp {
            let sequence = u32::from_be_bytes([transport[4], transport[5], transport[6], transport[7]]);
            let sequence = sequence.wrapping_add((number * self.segment) as u32);
            transport[4..8].copy_from_slice(&sequence.to_be_bytes());
            if !last {
                transport[13] &= !FIN_AND_PUSH;
            }
            if number > 0 {
                transport[13] &= !REDUCED;
            }
            16
        } else {
            let length = be(transport.len());
            transport[4..6].copy_from_slice(&length);
            6
        };
        transport[at..at + 2].fill(0);
        let addresses = if self.v6 { &ip[8..40] } else { &ip[12..20] };
        let protocol = if self.tcp { 6 } else { 17 };
        let length = u16::from_be_bytes(be(transport.len()));
        let sum = Sum::default().with_pseudo_header(addresses, protocol, length).with(transport);
        let sum = match sum.complete() {
            // No checksum, to UDP.
            [0, 0] if !self.tcp => [0xff, 0xff],
            sum => sum,
        };
        transport[at..at + 2].copy_from_slice(&sum);
    }
}

/// Never more than the largest packet.
fn be(length: usize) -> [u8; 2] {
    u16::try_from(length).unwrap_or(u16::MAX).to_be_bytes()
}
