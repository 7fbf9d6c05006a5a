//! The datagram of a probe: 24 bytes. It refuses anything of another size or mark.

use std::time::Duration;

/// Bytes of a datagram.
pub(crate) const LENGTH: usize = 24;
const MARK: [u8; 4] = *b"SWP1";
const NEVER: u64 = u64::MAX;

/// Which way it goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    /// "Do you hear me?"
    Request,
    /// "I do", with the sequence of the request.
    Answer,
}

/// One probe.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Datagram {
    pub(crate) kind: Kind,
    /// Chosen by who asks, repeated by who answers.
    pub(crate) sequence: u64,
    /// How long ago the sender last heard the receiver; whole milliseconds.
    pub(crate) heard: Option<Duration>,
}

impl Datagram {
    pub(crate) fn render(&self) -> [u8; LENGTH] {
        let heard = self.heard.map_or(NEVER, |age| u64::try_from(age.as_millis()).unwrap_or(NEVER));
        let mut bytes = [0; LENGTH];
        bytes[..4].copy_from_slice(&MARK);
        bytes[4] = match self.kind {
            Kind::Request => 1,
            Kind::Answer => 2,
        };
        bytes[8..16].copy_from_slice(&self.sequence.to_be_bytes());
        bytes[16..].copy_from_slice(&heard.to_be_bytes());
        bytes
    }

    pub(crate) fn parse(bytes: &[u8]) -> Option<Self> {
        let bytes: &[u8; LENGTH] = bytes.try_into().ok()?;
        let (mark, rest) = bytes.split_first_chunk::<4>()?;
        let (kind, rest) = rest.split_first_chunk::<4>()?;
        let (sequence, rest) = rest.split_first_chunk::<8>()?;
        let heard = u64::from_be_bytes(rest.try_into().ok()?);
        let kind = match kind {
            [1, 0, 0, 0] => Kind::Request,
            [2, 0, 0, 0] => Kind::Answer,
            _ => return None,
        };
        (*mark == MARK).then(|| Self {
            kind,
            sequence: u64::from_be_bytes(*sequence),
            heard: (heard != NEVER).then(|| Duration::from_millis(heard)),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn round_trip_and_refusals() {
        for heard in [None, Some(Duration::from_millis(1234))] {
            for kind in [Kind::Request, Kind::Answer] {
                let probe = Datagram { kind, sequence: u64::MAX - 3, heard };
                assert_eq!(Datagram::parse(&probe.render()), Some(probe));
            }
        }
        let good = Datagram { kind: Kind::Request, sequence: 1, heard: None }.render();
        for index in [0, 4, 5] {
            let mut bad = good;
            bad[index] ^= 0x40;
            assert_eq!(Datagram::parse(&bad), None);
        }
        assert_eq!(Datagram::parse(&good[1..]), None);
    }
}
