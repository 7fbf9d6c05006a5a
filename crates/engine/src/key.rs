//! WireGuard public keys. It refuses secrets: private and preshared keys have their own types in the dataplane.

use std::{fmt, str::FromStr};

use base64::{Engine as _, engine::general_purpose::STANDARD};

/// A Curve25519 public key, written as 44 characters of base64 like `wg pubkey` does.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PublicKey(pub [u8; 32]);

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
    fn round_trip_and_refusals() {
        let key = PublicKey([7; 32]);
        assert_eq!(key.to_string().parse(), Ok(key));
        for bad in ["", "AAAA", "not base64 at all", &STANDARD.encode([0u8; 32]), &STANDARD.encode([1u8; 31])]
        {
            assert_eq!(bad.parse::<PublicKey>(), Err(KeyError), "{bad}");
        }
    }
}
