//! Pieces cut and joined again. It refuses to look at anything that the kernel would not see.

use gotatun::packet::{Ip, Packet};
use proptest::prelude::*;

use super::{
    join::{Run, runs},
    offload::{CONGESTION, LENGTH, NEEDS_CHECKSUM, Offload, Sum, TCP_V4, TCP_V6, UDP},
    split::split,
};

const ACK: u8 = 0x10;
const PUSH: u8 = 0x08;

/// One direction of a connection.
#[derive(Debug, Clone, Copy)]
struct Flow {
    v6: bool,
    tcp: bool,
    port: u16,
}

const FLOW: Flow = Flow { v6: false, tcp: true, port: 1000 };

impl Flow {
    fn ip(self) -> usize {
        if self.v6 { 40 } else { 20 }
    }

    fn headers(self) -> usize {
        self.ip() + if self.tcp { 32 } else { 8 }
    }

    fn addresses(self) -> std::ops::Range<usize> {
        if self.v6 { 8..40 } else { 12..20 }
    }

    /// A whole packet with right checksums.
    fn packet(self, sequence: u32, flags: u8, payload: &[u8]) -> Vec<u8> {
        let mut packet = vec![0; self.headers()];
        let length = u16::try_from(self.headers() + payload.len()).unwrap();
        let transport_length = length - u16::try_from(self.ip()).unwrap();
        packet.extend_from_slice(payload);
        let protocol = if self.tcp { 6 } else { 17 };
        packet[self.addresses()].fill(10);
        let (ip, transport) = packet.split_at_mut(self.ip());
        if self.v6 {
            ip[0] = 0x60;
            ip[4..6].copy_from_slice(&transport_length.to_be_bytes());
            ip[6..8].copy_from_slice(&[protocol, 64]);
        } else {
            ip[0] = 0x45;
            ip[2..4].copy_from_slice(&length.to_be_bytes());
            ip[8..10].copy_from_slice(&[64, protocol]);
            let sum = Sum::default().with(ip).complete();
            ip[10..12].copy_from_slice(&sum);
        }
        transport[..2].copy_from_slice(&self.port.to_be_bytes());
        transport[2..4].copy_from_slice(&443u16.to_be_bytes());
        if self.tcp {
            transport[4..8].copy_from_slice(&sequence.to_be_bytes());
            transport[12..14].copy_from_slice(&[0x80, flags]);
        } else {
            transport[4..6].copy_from_slice(&transport_length.to_be_bytes());
        }
        let pseudo_header =
            Sum::default().with_pseudo_header(&ip[self.addresses()], protocol, transport_length);
        let at = if self.tcp { 16 } else { 6 };
        let sum = match pseudo_header.with(transport).complete() {
            // RFC 768: no checksum is written as zero, so a sum of zero is written as its other form.
            [0, 0] if !self.tcp => [0xff, 0xff],
            sum => sum,
        };
        transport[at..at + 2].copy_from_slice(&sum);
        packet
    }

    /// What the kernel hands over for a payload that is longer than a segment.
    fn piece(self, sequence: u32, flags: u8, payload: &[u8], segment: u16) -> Vec<u8> {
        let mut packet = self.packet(sequence, flags, payload);
        let at = if self.tcp { 16 } else { 6 };
        let transport_length = u16::try_from(packet.len() - self.ip()).unwrap();
        let protocol = if self.tcp { 6 } else { 17 };
        let sum = Sum::default().with_pseudo_header(&packet[self.addresses()], protocol, transport_length);
        packet[self.ip() + at..self.ip() + at + 2].copy_from_slice(&sum.partial());
        let header = Offload {
            flags: NEEDS_CHECKSUM,
            kind: match (self.tcp, self.v6) {
                (true, false) => TCP_V4,
                (true, true) => TCP_V6,
                (false, _) => UDP,
            },
            headers: u16::try_from(self.headers()).unwrap(),
            segment,
            checksum_from: u16::try_from(self.ip()).unwrap(),
            checksum_at: u16::try_from(at).unwrap(),
        };
        [&header.encode()[..], &packet].concat()
    }
}

fn cut(mut piece: Vec<u8>) -> Vec<Packet> {
    let mut packets: Vec<Packet<Ip>> = Vec::new();
    split(&mut piece, &mut packets).unwrap();
    packets.into_iter().map(Packet::into_bytes).collect()
}

fn batch(packets: &[Vec<u8>]) -> Vec<Packet> {
    packets.iter().map(|bytes| Packet::from_bytes(bytes[..].into())).collect()
}

fn written(run: &Run, batch: &mut [Packet]) -> Vec<u8> {
    let header = run.lead(batch).encode();
    let parts: Vec<&[u8]> = run.parts(batch).collect();
    [&header[..], &parts.concat()].concat()
}

/// What a batch is written as: the payloads' lengths of each write.
fn lengths(packets: &[Vec<u8>]) -> Vec<usize> {
    let mut batch = batch(packets);
    let runs = runs(&batch, true);
    runs.iter().map(|run| written(run, &mut batch).len() - LENGTH).collect()
}

proptest! {
    #[test]
    fn what_is_cut_is_joined_to_what_it_was(
        (v6, tcp, push) in any::<(bool, bool, bool)>(),
        sequence in any::<u32>(),
        segment in 8u16..1400,
        payload in proptest::collection::vec(any::<u8>(), 1500..20_000),
    ) {
        let flow = Flow { v6, tcp, port: 7 };
        let payload = &payload[..payload.len().min(usize::from(segment) * 64)];
        let flags = if push { ACK | PUSH } else { ACK };
        let piece = flow.piece(sequence, flags, payload, segment);
        let packets = cut(piece.clone());
        prop_assert_eq!(packets.len(), payload.len().div_ceil(usize::from(segment)));
        for (number, packet) in packets.iter().enumerate() {
            let from = number * usize::from(segment);
            let payload = &payload[from..(from + usize::from(segment)).min(payload.len())];
            let flags = if number + 1 == packets.len() { flags } else { ACK };
            let mut expected = flow.packet(sequence.wrapping_add(from as u32), flags, payload);
            if !v6 {
                expected[4..6].copy_from_slice(&u16::try_from(number).unwrap().to_be_bytes());
                expected[10..12].fill(0);
                let sum = Sum::default().with(&expected[..20]).complete();
                expected[10..12].copy_from_slice(&sum);
            }
            prop_assert_eq!(&packet[..], &expected[..], "packet {}", number);
        }
        let mut packets = packets;
        let runs = runs(&packets, true);
        prop_assert_eq!(runs.len(), 1);
        prop_assert_eq!(written(&runs[0], &mut packets), piece);
    }

    #[test]
    fn no_piece_is_too_odd(
        (v6, tcp) in any::<(bool, bool)>(),
        odd in proptest::collection::vec((0usize..50, 0u8..64), 1..8),
        length in 0usize..500,
    ) {
        let mut piece = Flow { v6, tcp, port: 7 }.piece(0, ACK, &[1; 400], 100);
        for (at, byte) in odd {
            piece[at] = byte;
        }
        piece.truncate(length);
        let mut packets = Vec::new();
        let _ = split(&mut piece, &mut packets);
        let mut batch: Vec<Packet> = packets.into_iter().map(Packet::into_bytes).collect();
        batch.push(Packet::from_bytes(piece[..].into()));
        for run in runs(&batch, true) {
            let _ = written(&run, &mut batch);
        }
    }
}

#[test]
fn one_packet_goes_as_it_is() {
    for flow in [FLOW, Flow { v6: true, ..FLOW }, Flow { tcp: false, ..FLOW }] {
        let packet = flow.packet(5, ACK, b"hello");
        let mut batch = batch(std::slice::from_ref(&packet));
        let runs = runs(&batch, true);
        assert_eq!(written(&runs[0], &mut batch), [&[0; LENGTH][..], &packet].concat());
    }
}

#[test]
fn a_checksum_that_is_left_to_us_is_made() {
    let mut piece = FLOW.piece(5, ACK, b"hello", 0);
    piece[1] = 0;
    let packets = cut(piece);
    assert_eq!(&packets[0][..], FLOW.packet(5, ACK, b"hello"));
}

#[test]
fn the_mark_of_slowing_down_goes_with_the_first_packet_alone() {
    let mut piece = FLOW.piece(0, ACK | 0x80, &[1; 300], 100);
    piece[1] |= CONGESTION;
    let flags: Vec<u8> = cut(piece).iter().map(|packet| packet[33]).collect();
    assert_eq!(flags, [ACK | 0x80, ACK, ACK]);
}

#[test]
fn what_does_not_follow_is_not_joined() {
    let [a, b, c] = [0, 100, 200].map(|sequence| FLOW.packet(sequence, ACK, &[1; 100]));
    let whole = a.len();
    let joined = whole + 100;
    assert_eq!(lengths(&[a.clone(), b.clone(), c.clone()]), [joined + 100]);
    assert_eq!(lengths(&[a.clone(), c.clone()]), [whole, whole], "a gap");
    assert_eq!(lengths(&[b.clone(), a.clone(), b.clone()]), [whole, joined], "the wrong order");
    let short = FLOW.packet(100, ACK, &[1; 50]);
    let after = FLOW.packet(150, ACK, &[1; 50]);
    assert_eq!(lengths(&[a.clone(), short, after]), [whole + 50, whole - 50], "after a shorter one");
    let pushed = FLOW.packet(100, ACK | PUSH, &[1; 100]);
    assert_eq!(lengths(&[a.clone(), pushed, c.clone()]), [joined, whole], "after a pushed one");
    let last = FLOW.packet(100, ACK | 1, &[1; 100]);
    assert_eq!(lengths(&[a.clone(), last, b.clone()]), [whole, whole, whole], "after the end");
    let mut slower = b.clone();
    slower[8] = 63;
    assert_eq!(lengths(&[a.clone(), slower]), [whole, whole], "another way");
    let mut wrong = b.clone();
    wrong[60] ^= 1;
    assert_eq!(lengths(&[a.clone(), wrong.clone()]), [whole, whole], "a wrong checksum");
    assert_eq!(lengths(&[wrong, c]), [whole, whole], "a wrong checksum first");
    assert_eq!(lengths(&[a, b]), [joined]);
}

#[test]
fn flows_are_kept_apart_and_in_order() {
    let other = Flow { port: 2000, ..FLOW };
    let of = |flow: Flow, sequence| flow.packet(sequence, ACK, &[1; 100]);
    let packets = [of(FLOW, 0), of(other, 50), of(FLOW, 100), of(other, 150), of(FLOW, 300), of(FLOW, 400)];
    let whole = packets[0].len();
    assert_eq!(lengths(&packets), [whole + 100, whole + 100, whole + 100]);
    let datagram = Flow { tcp: false, ..FLOW }.packet(0, 0, &[1; 100]);
    let pair = batch(&[datagram.clone(), datagram]);
    assert_eq!(runs(&pair, true).len(), 1);
    assert_eq!(runs(&pair, false).len(), 2, "the host takes no joined datagrams");
}
