//! Private and preshared keys. They refuse Debug, Display and serialisation, and are wiped when dropped; base64 is handed
//! out on request only, in a buffer that is wiped too.

use base64::{Engine as _, engine::general_purpose::STANDARD};
use spanwire_engine::PublicKey;
use x25519_dalek::StaticSecret;
use zeroize::Zeroizing;

/// Why a key could not be made.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The text is no key.
    #[error("not a WireGuard key: expected 44 characters of base64 for 32 bytes")]
    Parse,
    /// The system gave no random bytes.
    #[error("the system gave no random bytes")]
    Random(#[source] std::io::Error),
}

impl Error {
    /// What the fault asks for.
    pub fn class(&self) -> spanwire_engine::Class {
        match self {
            Error::Parse => spanwire_engine::Class::NeedsHuman,
            Error::Random(_) => spanwire_engine::Class::Retry,
        }
    }
}

/// A Curve25519 private key.
#[derive(Clone)]
pub struct SecretKey(Zeroizing<[u8; 32]>);

/// A preshared key of one pair of peers.
#[derive(Clone)]
pub struct PresharedKey(Zeroizing<[u8; 32]>);

impl SecretKey {
    /// A new key from the system's random source.
    pub fn generate() -> Result<Self, Error> {
        let mut bytes = Zeroizing::new([0u8; 32]);
        getrandom::fill(&mut bytes[..]).map_err(|error| Error::Random(error.into()))?;
        Ok(Self::from_bytes(bytes))
    }

    /// Reads base64 as `wg genkey` writes it; white space around it is ignored.
    pub fn from_base64(text: &str) -> Result<Self, Error> {
        decode(text).map(Self::from_bytes)
    }

    /// The bits that Curve25519 fixes are fixed, so that the written form equals what a device shows.
    pub(crate) fn from_bytes(mut bytes: Zeroizing<[u8; 32]>) -> Self {
        bytes[0] &= 248;
        bytes[31] = (bytes[31] & 127) | 64;
        Self(bytes)
    }

    /// The public half.
    pub fn public(&self) -> PublicKey {
        PublicKey(x25519_dalek::PublicKey::from(&self.to_x25519()).to_bytes())
    }

    /// The secret as base64, for the file that keeps it and nothing else.
    pub fn to_base64(&self) -> Zeroizing<String> {
        Zeroizing::new(STANDARD.encode(&self.0[..]))
    }

    pub(crate) fn to_x25519(&self) -> StaticSecret {
        StaticSecret::from(*self.0)
    }

    pub(crate) fn bytes(&self) -> &[u8; 32] {
        &self.0
    }
}

impl PresharedKey {
    /// Reads base64 as `wg genpsk` writes it; white space around it is ignored.
    pub fn from_base64(text: &str) -> Result<Self, Error> {
        decode(text).map(Self)
    }

    /// `None` for all zeroes, which means "no preshared key".
    pub(crate) fn from_bytes(bytes: Zeroizing<[u8; 32]>) -> Option<Self> {
        (*bytes != [0; 32]).then_some(Self(bytes))
    }

    pub(crate) fn bytes(&self) -> &[u8; 32] {
        &self.0
    }
}

impl PartialEq for PresharedKey {
    fn eq(&self, other: &Self) -> bool {
        self.0 == other.0
    }
}

impl Eq for PresharedKey {}

fn decode(text: &str) -> Result<Zeroizing<[u8; 32]>, Error> {
    let bytes = Zeroizing::new(STANDARD.decode(text.trim()).map_err(|_| Error::Parse)?);
    let mut key = Zeroizing::new([0u8; 32]);
    if bytes.len() != key.len() {
        return Err(Error::Parse);
    }
    key.copy_from_slice(&bytes);
    Ok(key)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn base64_round_trip_and_public_half() {
        let key = SecretKey::generate().unwrap();
        let again = SecretKey::from_base64(&key.to_base64()).unwrap();
        assert_eq!(key.public(), again.public());
        assert_ne!(key.public(), SecretKey::generate().unwrap().public());
    }

    #[test]
    fn known_pair() {
        // RFC 7748, section 6.1: Alice's keys.
        let secret = SecretKey::from_base64("dwdtCnMYpX08FsFyUbJmRd9ML4frwJkqsXf7pR25LCo=").unwrap();
        assert_eq!(secret.public().to_string(), "hSDwCYkwp1R0i33ctD73Wg2/Og0mOBr066SpjqqbTmo=");
    }

    #[test]
    fn refuses_what_is_no_key() {
        for bad in ["", "AAAA", "!", &STANDARD.encode([1u8; 33])] {
            assert!(SecretKey::from_base64(bad).is_err(), "{bad}");
            assert!(PresharedKey::from_base64(bad).is_err(), "{bad}");
        }
    }
}
