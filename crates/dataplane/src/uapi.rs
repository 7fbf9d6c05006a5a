//! The configuration protocol of userspace WireGuard (wireguard.com/xplatform): its types, and a client. It refuses
//! requests that it understands only in part: nothing of them is applied.

mod client;
mod get;
mod set;

pub(crate) use client::{Client, Error};
pub(crate) use get::{parse_filter, parse_get, render_get};
pub(crate) use set::{parse_set, render_set};

use std::{
    collections::{BTreeMap, BTreeSet},
    net::SocketAddr,
    time::Duration,
};

use ipnet::IpNet;
use spanwire_engine::PublicKey;

use crate::key::{PresharedKey, SecretKey};

/// A configuration change (`set=1`).
#[derive(Default)]
pub(crate) struct SetDevice {
    pub(crate) private_key: Option<SecretKey>,
    pub(crate) listen_port: Option<u16>,
    pub(crate) mark: Option<u32>,
    pub(crate) replace_peers: bool,
    pub(crate) peers: Vec<SetPeer>,
}

/// The part of a change that concerns one peer.
#[derive(Clone)]
pub(crate) struct SetPeer {
    pub(crate) public_key: PublicKey,
    pub(crate) remove: bool,
    pub(crate) update_only: bool,
    /// `Some(None)`: take it away.
    pub(crate) preshared_key: Option<Option<PresharedKey>>,
    pub(crate) endpoint: Option<SocketAddr>,
    pub(crate) keepalive: Option<u16>,
    pub(crate) replace_allowed_ips: bool,
    pub(crate) allowed_ips: Vec<AllowedIp>,
}

impl SetPeer {
    pub(crate) fn new(public_key: PublicKey) -> Self {
        Self {
            public_key,
            remove: false,
            update_only: false,
            preshared_key: None,
            endpoint: None,
            keepalive: None,
            replace_allowed_ips: false,
            allowed_ips: Vec::new(),
        }
    }
}

/// An allowed IP to add or, written with a minus sign, to take away.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct AllowedIp {
    pub(crate) remove: bool,
    pub(crate) prefix: IpNet,
}

/// A device as `get=1` shows it.
#[derive(Default)]
pub(crate) struct DeviceInfo {
    pub(crate) private_key: Option<SecretKey>,
    pub(crate) listen_port: u16,
    pub(crate) mark: u32,
    pub(crate) peers: BTreeMap<PublicKey, PeerInfo>,
}

/// A peer as `get=1` shows it.
#[derive(Default, Clone)]
pub(crate) struct PeerInfo {
    pub(crate) preshared_key: Option<PresharedKey>,
    pub(crate) endpoint: Option<SocketAddr>,
    pub(crate) keepalive: u16,
    pub(crate) allowed_ips: BTreeSet<IpNet>,
    /// Age of the last handshake.
    pub(crate) handshake: Option<Duration>,
    pub(crate) received: u64,
    pub(crate) sent: u64,
}

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
