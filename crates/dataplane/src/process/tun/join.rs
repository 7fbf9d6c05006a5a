//! Joins packets of one flow that follow on one another into one large packet for the host. It refuses to join a packet
//! whose checksum is wrong, which would come out right.

use gotatun::packet::Packet;

use super::offload::{NEEDS_CHECKSUM, Offload, Sum, TCP_V4, TCP_V6, UDP as UDP_SEGMENTS};

const TCP: u8 = 6;
const UDP: u8 = 17;
const ACK: u8 = 0x10;
const PUSH: u8 = 0x08;
/// Packets of one run.
const LONGEST: usize = 64;
/// The largest length that an IP header can give.
const LARGEST: usize = u16::MAX as usize;

/// What a header says that matters here.
#[derive(Debug, Clone, Copy)]
struct Shape {
    tcp: bool,
    v6: bool,
    /// Bytes before the transport header.
    ip: usize,
    /// Bytes before the payload.
    headers: usize,
    payload: usize,
    sequence: u32,
    push: bool,
    /// Whether it may be joined with others at all.
    plain: bool,
}

/// Packets that go to the host as one.
#[derive(Debug)]
pub(super) struct Run {
    /// Their places in the batch, in order.
    packets: Vec<usize>,
    shape: Option<Shape>,
    /// Bytes of all their payloads.
    payload: usize,
    open: bool,
}

impl Run {
    /// The bytes of the large packet: the first one whole, of the others what follows the headers.
    pub(super) fn parts<'a>(&'a self, batch: &'a [Packet]) -> impl Iterator<Item = &'a [u8]> {
        let headers = self.shape.map_or(0, |shape| shape.headers);
        let from = std::iter::once(0).chain(std::iter::repeat(headers));
        self.packets.iter().zip(from).map(|(place, from)| &batch[*place][from..])
    }
}

/// The runs of a batch, in the order of their first packets. Packets of one flow keep their order.
pub(super) fn runs(batch: &[Packet], datagrams: bool) -> Vec<Run> {
    let mut runs: Vec<Run> = Vec::new();
    for (place, packet) in batch.iter().enumerate() {
        let shape = Shape::of(packet, datagrams);
        let same_flow = shape.and_then(|shape| {
            let of_flow = |run: &Run| run.open && run.is_of_flow(batch, packet, &shape);
            runs.iter().rposition(of_flow).map(|at| (at, shape))
        });
        if let Some((at, shape)) = same_flow {
            if runs[at].takes(batch, packet, &shape) {
                runs[at].packets.push(place);
                runs[at].payload += shape.payload;
                runs[at].open = shape.payload == runs[at].segment() && !shape.push;
                continue;
            }
            runs[at].open = false;
        }
        let open = shape.is_some_and(|shape| shape.plain && !shape.push);
        let payload = shape.map_or(0, |shape| shape.payload);
        runs.push(Run { packets: vec![place], shape, payload, open });
    }
    runs
}

impl Run {
    fn segment(&self) -> usize {
        self.shape.map_or(0, |shape| shape.payload)
    }

    /// Same addresses, protocol and ports.
    fn is_of_flow(&self, batch: &[Packet], packet: &[u8], shape: &Shape) -> bool {
        let Some(own) = self.shape.filter(|own| own.v6 == shape.v6 && own.tcp == shape.tcp) else {
            return false;
        };
        let first = &batch[self.packets[0]];
        let addresses = if shape.v6 { 8..40 } else { 12..20 };
        first[addresses.clone()] == packet[addresses]
            && first[own.ip..own.ip + 4] == packet[shape.ip..shape.ip + 4]
    }

    /// Whether a packet of the flow continues the run.
    fn takes(&self, batch: &[Packet], packet: &[u8], shape: &Shape) -> bool {
        let Some(own) = self.shape else { return false };
        let first = &batch[self.packets[0]];
        let follows = !shape.tcp || shape.sequence == next_sequence(&own, self.payload);
        shape.plain
            && shape.headers == own.headers
            && shape.payload <= own.payload
            && self.packets.len() < LONGEST
            && own.headers + self.payload + shape.payload <= LARGEST
            && follows
            && same_headers(first, packet, &own)
            && shape.is_right(packet)
            && (self.packets.len() > 1 || own.is_right(first))
    }
}

fn next_sequence(first: &Shape, payload: usize) -> u32 {
    first.sequence.wrapping_add(u32::try_from(payload).unwrap_or(u32::MAX))
}

/// All that the host would copy into each packet again when it cuts them: everything but lengths, numbers and checksums.
fn same_headers(first: &[u8], other: &[u8], shape: &Shape) -> bool {
    let same = |range: std::ops::Range<usize>| first[range.clone()] == other[range];
    let ip = if shape.v6 { same(0..4) && same(6..8) } else { same(0..2) && same(6..10) };
    let at = shape.ip;
    let transport = !shape.tcp
        || (same(at + 8..at + 13)
            && first[at + 13] | PUSH == other[at + 13] | PUSH
            && same(at + 14..at + 16)
            && same(at + 18..shape.headers));
    ip && transport
}

impl Shape {
    /// `None`: no whole TCP or UDP packet without options and extensions of IP.
    fn of(packet: &[u8], datagrams: bool) -> Option<Self> {
        let (v6, ip, protocol, length) = match packet.first()? {
            0x45 if packet.len() >= 20 => {
                let fragment = packet[6] & 0x3f != 0 || packet[7] != 0;
                let length = usize::from(u16::from_be_bytes([packet[2], packet[3]]));
                (false, 20, (!fragment).then_some(packet[9])?, length)
            }
            0x60..=0x6f if packet.len() >= 40 => {
                (true, 40, packet[6], 40 + usize::from(u16::from_be_bytes([packet[4], packet[5]])))
            }
            _ => return None,
        };
        let transport = packet.get(ip..).filter(|_| length == packet.len())?;
        match protocol {
            TCP if transport.len() >= 20 => {
                let headers = ip + usize::from(transport[12] >> 4) * 4;
                let payload = packet.len().checked_sub(headers).filter(|_| headers >= ip + 20)?;
                let flags = transport[13];
                let sequence = u32::from_be_bytes([transport[4], transport[5], transport[6], transport[7]]);
                let plain = flags | PUSH == ACK | PUSH && payload > 0;
                let push = flags & PUSH != 0;
                Some(Shape { tcp: true, v6, ip, headers, payload, sequence, push, plain })
            }
            UDP if datagrams && transport.len() > 8 => {
                let whole = usize::from(u16::from_be_bytes([transport[4], transport[5]])) == transport.len();
                let plain = whole && transport[6..8] != [0, 0];
                let (headers, payload) = (ip + 8, transport.len() - 8);
                Some(Shape { tcp: false, v6, ip, headers, payload, sequence: 0, push: false, plain })
            }
            _ => None,
        }
    }

    /// The sum over the pseudo-header for a transport header and payload of this length.
    fn pseudo_header(&self, packet: &[u8], length: usize) -> Sum {
        let addresses = if self.v6 { &packet[8..40] } else { &packet[12..20] };
        let protocol = if self.tcp { TCP } else { UDP };
        Sum::default().with_pseudo_header(addresses, protocol, small(length))
    }

    /// Whether the transport checksum is right.
    fn is_right(&self, packet: &[u8]) -> bool {
        let transport = &packet[self.ip..];
        self.pseudo_header(packet, transport.len()).with(transport).is_right()
    }
}

impl Run {
    /// Makes the headers of the first packet those of all of the run.
    pub(super) fn lead(&self, batch: &mut [Packet]) -> Offload {
        let (Some(shape), [first, .., last]) = (self.shape, &self.packets[..]) else {
            return Offload::default();
        };
        let Shape { tcp, v6, ip, headers, payload: segment, .. } = shape;
        let pushes = tcp && batch[*last][ip + 13] & PUSH != 0;
        let packet = &mut batch[*first].buf_mut()[..];
        let length = headers + self.payload;
        if v6 {
            packet[4..6].copy_from_slice(&small(length - ip).to_be_bytes());
        } else {
            packet[2..4].copy_from_slice(&small(length).to_be_bytes());
            packet[10..12].fill(0);
            let sum = Sum::default().with(&packet[..ip]).complete();
            packet[10..12].copy_from_slice(&sum);
        }
        if pushes {
            packet[ip + 13] |= PUSH;
        }
        if !tcp {
            packet[ip + 4..ip + 6].copy_from_slice(&small(length - ip).to_be_bytes());
        }
        let at = if tcp { 16 } else { 6 };
        let sum = shape.pseudo_header(packet, length - ip).partial();
        packet[ip + at..ip + at + 2].copy_from_slice(&sum);
        Offload {
            flags: NEEDS_CHECKSUM,
            kind: match (tcp, v6) {
                (true, false) => TCP_V4,
                (true, true) => TCP_V6,
                (false, _) => UDP_SEGMENTS,
            },
            headers: small(headers),
            segment: small(segment),
            checksum_from: small(ip),
            checksum_at: small(at),
        }
    }
}

/// Never more than the largest packet.
fn small(length: usize) -> u16 {
    u16::try_from(length).unwrap_or(u16::MAX)
}
