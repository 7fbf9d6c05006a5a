//! The configuration protocol of userspace WireGuard (wireguard.com/xplatform): its text, and a client. It refuses
//! requests that it understands only in part: nothing of them is applied.

mod client;
mod get;
mod set;

pub(crate) use client::{Client, Error};
pub(crate) use get::{parse_filter, parse_get, render_get};
pub(crate) use set::{parse_set, render_set};

/// A line that is not understood.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("line {line}: {key} is not known or its value is not valid")]
pub struct SyntaxError {
    /// Number of the line, from 1.
    pub line: usize,
    /// The key of the line; never its value, which may be secret.
    pub key: String,
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn unhex(text: &str) -> Option<[u8; 32]> {
    if text.len() != 64 || !text.is_ascii() {
        return None;
    }
    let mut bytes = [0u8; 32];
    for (index, byte) in bytes.iter_mut().enumerate() {
        *byte = u8::from_str_radix(text.get(2 * index..2 * index + 2)?, 16).ok()?;
    }
    Some(bytes)
}
