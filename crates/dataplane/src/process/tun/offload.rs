//! The header that stands before each packet of a device with offload, and the Internet checksum (RFC 1071). It refuses
//! nothing: it only reads and writes.

/// Bytes of the header.
pub(super) const LENGTH: usize = tun_rs::VIRTIO_NET_HDR_LEN;

/// `struct virtio_net_hdr` of the kernel; its numbers are in the order of this machine.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Offload {
    pub(super) flags: u8,
    pub(super) kind: u8,
    pub(super) headers: u16,
    pub(super) segment: u16,
    pub(super) checksum_from: u16,
    pub(super) checksum_at: u16,
}

/// Flag: the checksum field holds the sum over the pseudo-header, the rest is left to the reader.
pub(super) const NEEDS_CHECKSUM: u8 = 1;
/// Kind: one packet.
pub(super) const ONE: u8 = 0;
pub(super) const TCP_V4: u8 = 1;
pub(super) const TCP_V6: u8 = 4;
pub(super) const UDP: u8 = 5;
/// Stands beside a kind of TCP: the first packet alone says that the sender has slowed down.
pub(super) const CONGESTION: u8 = 0x80;

impl Offload {
    pub(super) fn decode(bytes: [u8; LENGTH]) -> Self {
        let [flags, kind, numbers @ ..] = bytes;
        let number = |at: usize| u16::from_ne_bytes([numbers[at], numbers[at + 1]]);
        Self {
            flags,
            kind,
            headers: number(0),
            segment: number(2),
            checksum_from: number(4),
            checksum_at: number(6),
        }
    }

    pub(super) fn encode(&self) -> [u8; LENGTH] {
        let [a, b] = self.headers.to_ne_bytes();
        let [c, d] = self.segment.to_ne_bytes();
        let [e, f] = self.checksum_from.to_ne_bytes();
        let [g, h] = self.checksum_at.to_ne_bytes();
        [self.flags, self.kind, a, b, c, d, e, f, g, h]
    }
}

/// A sum in one's complement, as the bytes lie in memory: it may be written back as it is.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Sum(u64);

impl Sum {
    /// With these bytes; only the last ones may be odd in number.
    pub(super) fn with(self, bytes: &[u8]) -> Self {
        let (blocks, rest) = bytes.as_chunks::<32>();
        // Four sums that do not wait for each other.
        let mut sums = [self.0, 0, 0, 0];
        for block in blocks {
            let (words, _) = block.as_chunks::<8>();
            for (sum, word) in sums.iter_mut().zip(words) {
                *sum = add(*sum, u64::from_ne_bytes(*word));
            }
        }
        let mut sum = sums.into_iter().fold(0, add);
        let (words, rest) = rest.as_chunks::<8>();
        for word in words {
            sum = add(sum, u64::from_ne_bytes(*word));
        }
        let mut last = [0; 8];
        last[..rest.len()].copy_from_slice(rest);
        Sum(add(sum, u64::from_ne_bytes(last)))
    }

    /// With a pseudo-header: the addresses, the protocol and the length of transport header and payload.
    pub(super) fn with_pseudo_header(self, addresses: &[u8], protocol: u8, length: u16) -> Self {
        let [high, low] = length.to_be_bytes();
        self.with(addresses).with(&[0, protocol, high, low])
    }

    /// Two bytes for the checksum field of what stays to be summed up.
    pub(super) fn partial(self) -> [u8; 2] {
        self.folded().to_ne_bytes()
    }

    /// Two bytes for the checksum field of what is complete.
    pub(super) fn complete(self) -> [u8; 2] {
        (!self.folded()).to_ne_bytes()
    }

    /// Whether these bytes hold the right checksum.
    pub(super) fn is_right(self) -> bool {
        self.folded() == u16::MAX
    }

    fn folded(self) -> u16 {
        let half = (self.0 >> 32) + (self.0 & 0xffff_ffff);
        let quarter = (half >> 32) + (half & 0xffff_ffff);
        let bytes = (quarter >> 16) + (quarter & 0xffff);
        let bytes = (bytes >> 16) + (bytes & 0xffff);
        u16::try_from((bytes >> 16) + (bytes & 0xffff)).unwrap_or(u16::MAX)
    }
}

fn add(sum: u64, word: u64) -> u64 {
    let (sum, carry) = sum.overflowing_add(word);
    sum + u64::from(carry)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headers_go_there_and_back() {
        let bytes = [1, 2, 3, 4, 5, 6, 7, 8, 9, 10];
        assert_eq!(Offload::decode(bytes).encode(), bytes);
    }

    #[test]
    fn sums_as_the_standard_shows() {
        let sum = Sum::default().with(&[0x00, 0x01, 0xf2, 0x03, 0xf4, 0xf5, 0xf6, 0xf7]);
        assert_eq!(sum.partial(), [0xdd, 0xf2]);
        assert_eq!(sum.complete(), [0x22, 0x0d]);
        for length in 0..200u16 {
            let bytes: Vec<u8> = (0..length).map(|at| (at * 37 % 251) as u8 | 0x81).collect();
            let mut slow = 0u32;
            for pair in bytes.chunks(2) {
                slow += u32::from(u16::from_be_bytes([pair[0], *pair.get(1).unwrap_or(&0)]));
                slow = (slow >> 16) + (slow & 0xffff);
            }
            assert_eq!(
                u32::from(u16::from_be_bytes(Sum::default().with(&bytes).partial())),
                slow,
                "{length}"
            );
        }
    }
}
