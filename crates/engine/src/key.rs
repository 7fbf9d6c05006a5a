//! WireGuard public keys. It refuses secrets: private and preshared keys have their own types in the dataplane.

use std::{fmt, str::FromStr};

use base64::{Engine as _, engine::general_purpose::STANDARD};

/// A Curve25519 public key, written as 44 characters of base64 like `wg pubkey` does.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct PublicKey(pub [u8; 32]);

impl PublicKey {
    /// Its bytes as numbers, which are compared much faster than a list of bytes and in the same order.
    fn halves(&self) -> (u128, u128) {
        let half = |bytes: Option<&[u8; 16]>| u128::from_be_bytes(bytes.copied().unwrap_or_default());
        (half(self.0.first_chunk()), half(self.0.last_chunk()))
    }
}

impl Ord for PublicKey {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        self.halves().cmp(&other.halves())
    }
}

impl PartialOrd for PublicKey {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

/// Why a string is no public key.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("not a WireGuard public key: expected 44 characters of base64 for 32 bytes that are not all zero")]
pub struct KeyError;

impl FromStr for PublicKey {
    type Err = KeyError;
    fn from_str(text: &str) -> Result<Self, KeyError> {
        let bytes = STANDARD.decode(text).map_err(|_| KeyError)?;
        let key: [u8; 32] = bytes.try_into().map_err(|_| KeyError)?;
        if key == [0; 32] { Err(KeyError) } else { Ok(Self(key)) }
    }
}

impl fmt::Display for PublicKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&STANDARD.encode(self.0))
    }
}

impl fmt::Debug for PublicKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_order_is_that_of_the_bytes() {
        let key = |at: usize, byte: u8| {
            let mut bytes = [5; 32];
            bytes[at] = byte;
            PublicKey(bytes)
        };
        for at in 0..32 {
            assert!(key(at, 4) < key(31, 5) && key(31, 5) < key(at, 0x86), "{at}");
            assert_eq!(key(at, 9).cmp(&key(31, 9)), key(at, 9).0.cmp(&key(31, 9).0), "{at}");
        }
    }

    #[test]
    fn round_trip_and_refusals() {
        let key = PublicKey([7; 32]);
        assert_eq!(key.to_string().parse(), Ok(key));
        for bad in ["", "AAAA", "not base64 at all", &STANDARD.encode([0u8; 32]), &STANDARD.encode([1u8; 31])]
        {
            assert_eq!(bad.parse::<PublicKey>(), Err(KeyError), "{bad}");
        }
    }
}
