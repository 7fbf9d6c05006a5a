//! `TunnelLink`: one link that a worker has taken on. It refuses secrets: the peer's public key is all it holds.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{BootMoment, Duration, Kind, LinkRole, LinkState};

/// What the worker has taken on.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[cfg_attr(
    feature = "kube",
    derive(kube::CustomResource),
    kube(
        group = "spanwire.dev",
        version = "v1alpha1",
        kind = "TunnelLink",
        plural = "tunnellinks",
        shortname = "tl",
        namespaced,
        derive = "PartialEq",
        status = "TunnelLinkStatus",
        category = "spanwire",
        doc = "A link that this worker has taken on, named <network>.<peer>.<role>",
        printcolumn(name = "Network", type_ = "string", json_path = ".spec.network"),
        printcolumn(name = "Peer", type_ = "string", json_path = ".spec.peer"),
        printcolumn(name = "Role", type_ = "string", json_path = ".spec.role"),
        printcolumn(name = "State", type_ = "string", json_path = ".status.state"),
        printcolumn(name = "Reason", type_ = "string", json_path = ".status.reason"),
        printcolumn(name = "Device", type_ = "string", json_path = ".spec.device"),
        printcolumn(name = "Endpoint", type_ = "string", json_path = ".spec.endpoint", priority = 1),
        printcolumn(name = "Age", type_ = "date", json_path = ".metadata.creationTimestamp")
    )
)]
#[serde(rename_all = "camelCase")]
pub struct TunnelLinkSpec {
    /// The network.
    #[schemars(length(min = 1, max = 63), regex(pattern = r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?$"))]
    pub network: String,
    /// The gateway at the other end.
    #[schemars(length(min = 1, max = 63), regex(pattern = r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?$"))]
    pub peer: String,
    /// UID of the peer's Gateway when its facts were taken.
    #[serde(rename = "peerUID", default, skip_serializing_if = "String::is_empty")]
    #[schemars(length(max = 253))]
    pub peer_uid: String,
    /// The part that this end plays.
    pub role: LinkRole,
    /// The device that carries the link.
    #[schemars(length(min = 1, max = 15))]
    pub device: String,
    /// UDP port of that device.
    pub listen_port: u16,
    /// The peer's public key.
    #[schemars(length(min = 44, max = 44))]
    pub public_key: String,
    /// The generation of that key.
    pub key_generation: i64,
    /// What the peer may send and is sent.
    #[serde(rename = "allowedIPs", default)]
    #[schemars(length(max = 65536), inner(length(max = 43)), extend("x-kubernetes-list-type" = "atomic"))]
    pub allowed_ips: Vec<String>,
    /// The peer's own prefixes.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 128), inner(length(max = 43)), extend("x-kubernetes-list-type" = "atomic"))]
    pub prefixes: Vec<String>,
    /// The tunnel address that is probed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 39))]
    pub probe: Option<String>,
    /// Where the peer is dialled, host:port.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 261))]
    pub endpoint: Option<String>,
    /// Persistent keepalive; `0s`: off.
    pub keepalive: Duration,
    /// Generation of the intent that created the link; never rewritten.
    pub intent_generation: i64,
}

/// What the worker last said of the link.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct TunnelLinkStatus {
    /// The generation of this object that the status speaks of.
    pub observed_generation: i64,
    /// Whether it works.
    pub state: LinkState,
    /// Why, in one word with a fixed meaning.
    pub reason: String,
    /// Why, in words for people.
    pub message: String,
    /// When state or reason last changed, RFC 3339.
    pub last_transition_time: String,
    /// Whether it was ever connected.
    pub connected_once: bool,
    /// Since when no intent wants it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub unwanted_since: Option<BootMoment>,
}

impl Default for TunnelLinkStatus {
    /// A link that was just recorded.
    fn default() -> Self {
        Self {
            observed_generation: 0,
            state: LinkState::Pending,
            reason: "Connecting".to_owned(),
            message: String::new(),
            last_transition_time: String::new(),
            connected_once: false,
            unwanted_since: None,
        }
    }
}

impl Kind for TunnelLinkSpec {
    type Status = TunnelLinkStatus;
    const KIND: &'static str = "TunnelLink";
    const PLURAL: &'static str = "tunnellinks";
    const NAME_RULE: &'static str =
        "self.metadata.name == self.spec.network + '.' + self.spec.peer + '.' + self.spec.role";
    const NAME_RULE_MESSAGE: &'static str = "the name of a TunnelLink is <network>.<peer>.<role>";
}
