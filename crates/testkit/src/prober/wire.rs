//! What a numbered datagram holds. It refuses datagrams of other runs.

/// Bytes of the numbers and the time stamp.
pub(crate) const LENGTH: usize = 28;
const MAGIC: [u8; 4] = *b"swpr";

/// One datagram.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Numbered {
    /// Which run.
    pub(crate) run: u32,
    /// Which pair.
    pub(crate) pair: u32,
    /// Its number within the pair, from 0.
    pub(crate) number: u64,
    /// When it was sent, in nanoseconds of the run.
    pub(crate) sent: u64,
}

impl Numbered {
    /// Writes it to the front of a buffer.
    pub(crate) fn write(self, buffer: &mut [u8]) {
        let parts: [&[u8]; 5] = [
            &MAGIC,
            &self.run.to_be_bytes(),
            &self.pair.to_be_bytes(),
            &self.number.to_be_bytes(),
            &self.sent.to_be_bytes(),
        ];
        for (place, byte) in buffer.iter_mut().zip(parts.into_iter().flatten()) {
            *place = *byte;
        }
    }

    /// Reads it; `None`: it is something else.
    pub(crate) fn read(bytes: &[u8]) -> Option<Self> {
        let (magic, rest) = bytes.split_first_chunk::<4>()?;
        let (run, rest) = rest.split_first_chunk::<4>()?;
        let (pair, rest) = rest.split_first_chunk::<4>()?;
        let (number, rest) = rest.split_first_chunk::<8>()?;
        let (sent, _) = rest.split_first_chunk::<8>()?;
        (*magic == MAGIC).then_some(Self {
            run: u32::from_be_bytes(*run),
            pair: u32::from_be_bytes(*pair),
            number: u64::from_be_bytes(*number),
            sent: u64::from_be_bytes(*sent),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn round_trip_and_refusals() {
        let datagram = Numbered { run: 1, pair: 2, number: u64::MAX - 3, sent: 4 };
        let mut buffer = [0; LENGTH];
        datagram.write(&mut buffer);
        assert_eq!(Numbered::read(&buffer), Some(datagram));
        assert_eq!(Numbered::read(&buffer[..LENGTH - 1]), None);
        assert_eq!(Numbered::read(&[0; LENGTH]), None);
    }
}
