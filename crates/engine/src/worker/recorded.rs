//! What this worker has taken on, as its local store holds it. It refuses to be the truth about devices: the host is.

use std::{collections::BTreeMap, time::Duration};

use ipnet::IpNet;

use crate::{
    BootTime, DeviceName, Endpoint, GatewayName, Intent, LinkId, LinkRole, LinkState, NetworkName, PublicKey,
    Reason, Uid,
};

/// All records of one local store.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Recorded {
    /// Intents last applied, by network.
    pub intents: BTreeMap<NetworkName, AppliedIntent>,
    /// Links taken on.
    pub links: BTreeMap<LinkId, RecordedLink>,
    /// Records that are there and could not be read. While there are any, nothing of their network is removed.
    pub unreadable: Vec<crate::Unreadable>,
}

/// `AppliedIntent`: written before the first step of a new intent.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct AppliedIntent {
    /// The content.
    pub intent: Intent,
    /// UID of the object it came from.
    pub uid: Uid,
    /// Generation of the object it came from.
    pub generation: i64,
    /// The own gateway's subnets when it was applied.
    pub own_subnets: Vec<IpNet>,
    /// The host that others dialled when it was applied.
    pub own_host: Option<String>,
    /// Since when each peer and role is wanted, also where the link can't be made.
    pub wanted_since: BTreeMap<(GatewayName, LinkRole), BootTime>,
}

/// `TunnelLink`: spec and status.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RecordedLink {
    /// Which link.
    pub id: LinkId,
    /// UID of the peer's Gateway when its facts were taken.
    pub peer_uid: Uid,
    /// The device that carries it.
    pub device: DeviceName,
    /// The port of the device.
    pub listen_port: u16,
    /// The peer's key.
    pub public_key: PublicKey,
    /// The generation of that key.
    pub key_generation: i64,
    /// What the peer may send and is sent.
    pub allowed_ips: Vec<IpNet>,
    /// The peer's own prefixes: tunnel address and subnets.
    pub prefixes: Vec<IpNet>,
    /// The tunnel address that is probed.
    pub probe: Option<std::net::IpAddr>,
    /// Where it is dialled.
    pub endpoint: Option<Endpoint>,
    /// Persistent keepalive; zero: off.
    pub keepalive: Duration,
    /// Generation of the intent that created it; never rewritten.
    pub intent_generation: i64,
    /// Status.
    pub status: LinkStatus,
}

/// `TunnelLink.status`.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct LinkStatus {
    /// The state last reported.
    pub state: LinkState,
    /// Why.
    pub reason: Reason,
    /// Words for people.
    pub message: String,
    /// When state or reason last changed, RFC 3339.
    pub last_transition: String,
    /// Whether it was ever connected.
    pub connected_once: bool,
    /// Since when no intent wants it.
    pub unwanted_since: Option<BootTime>,
}
