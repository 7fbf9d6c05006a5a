//! Names and identities of objects, parsed once at the edge. It refuses anything but DNS-1123 labels, so that joining
//! two names with a dot stays unambiguous.

mod label;

use std::{fmt, str::FromStr};

use label::Label;

/// Why a string is not a name.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "{0:?} is not a name: use 1 to 63 lower-case letters, digits and dashes, starting and ending with a letter or digit"
)]
pub struct NameError(pub String);

fn is_label(text: &str) -> bool {
    let edge = |c: Option<char>| c.is_some_and(|c| c.is_ascii_lowercase() || c.is_ascii_digit());
    text.len() <= 63
        && edge(text.chars().next())
        && edge(text.chars().last())
        && text.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-')
}

macro_rules! label {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $name(Label);

        impl $name {
            /// The name as written.
            pub fn as_str(&self) -> &str {
                self.0.as_str()
            }
        }

        impl FromStr for $name {
            type Err = NameError;
            fn from_str(text: &str) -> Result<Self, NameError> {
                if is_label(text) { Ok(Self(Label::new(text))) } else { Err(NameError(text.to_owned())) }
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(self.as_str())
            }
        }
    };
}

label! {
    /// The name of a gateway: the attachment point of one worker cluster or host.
    GatewayName
}
label! {
    /// The name of a network of gateways.
    NetworkName
}

/// The identity of one object over its life: a deleted and re-created object has another one. Empty: not known yet.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Uid(pub String);

impl Uid {
    /// Whether both are known and differ.
    pub fn is_another_than(&self, other: &Uid) -> bool {
        !self.0.is_empty() && !other.0.is_empty() && self != other
    }
}

impl fmt::Display for Uid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// What a store knows of an object besides its content.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Meta {
    /// Identity of the object.
    pub uid: Uid,
    /// Counts changes of the spec, from 1.
    pub generation: i64,
    /// Opaque version of spec and status together; the precondition of a write.
    pub resource_version: String,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_only() {
        for good in ["a", "hub-a", "0", &"x".repeat(63)] {
            assert_eq!(good.parse::<GatewayName>().unwrap().as_str(), good);
        }
        for bad in ["", "-a", "a-", "a.b", "A", "a_b", "ä", &"x".repeat(64)] {
            assert!(bad.parse::<NetworkName>().is_err(), "{bad}");
        }
    }
}
