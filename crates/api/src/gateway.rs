//! `Gateway`: the attachment point of one worker cluster or host. It refuses to judge keys, and subnets beyond their
//! form: a bad one is answered by name, for this gateway alone.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{Condition, Kind, LinkRole};

/// What is declared of a gateway.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[cfg_attr(
    feature = "kube",
    derive(kube::CustomResource),
    kube(
        group = "spanwire.dev",
        version = "v1alpha1",
        kind = "Gateway",
        plural = "gateways",
        shortname = "sgw",
        namespaced,
        derive = "PartialEq",
        status = "GatewayStatus",
        category = "spanwire",
        doc = "The attachment point of one worker cluster or host, named like it",
        printcolumn(
            name = "Subnets",
            type_ = "string",
            json_path = ".spec.subnets",
            description = "Prefixes behind it"
        ),
        printcolumn(
            name = "Endpoint",
            type_ = "string",
            json_path = ".status.endpoint",
            description = "The host that others dial"
        ),
        printcolumn(
            name = "Backend",
            type_ = "string",
            json_path = ".status.backend",
            description = "WireGuard implementation in use"
        ),
        printcolumn(
            name = "Ready",
            type_ = "string",
            json_path = ".status.conditions[?(@.type==\"Ready\")].status",
            description = "Whether its worker could do everything that was asked"
        ),
        printcolumn(
            name = "Networks",
            type_ = "string",
            json_path = ".status.networks[*].name",
            priority = 1,
            description = "Networks that it is in"
        ),
        printcolumn(
            name = "Maintenance",
            type_ = "boolean",
            json_path = ".spec.maintenance",
            priority = 1,
            description = "Whether it is drained"
        ),
        printcolumn(name = "Age", type_ = "date", json_path = ".metadata.creationTimestamp")
    )
)]
#[serde(rename_all = "camelCase")]
pub struct GatewaySpec {
    /// Prefixes reachable behind the gateway, IPv4 and IPv6, without host bits.
    #[schemars(
        length(min = 1, max = 64),
        inner(length(max = 43)),
        extend("x-kubernetes-list-type" = "atomic"),
        transform = crate::rules::each_cidr
    )]
    pub subnets: Vec<String>,
    /// What others dial. Absent: what the worker finds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub advertise: Option<Advertise>,
    /// Drain: the gateway is moved to the end of the target list of hubs.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub maintenance: bool,
}

/// What others dial.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct Advertise {
    /// The gateway is behind NAT and nobody can dial it.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub dial_only: bool,
    /// DNS name or address instead of the one the worker finds.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 253), transform = crate::rules::host)]
    pub host: Option<String>,
    /// Ports instead of the worker's own, as a port forwarding in front of it gives them.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 1024), extend("x-kubernetes-list-type" = "atomic"))]
    pub ports: Vec<ListenerPort>,
}

/// One UDP port that others dial.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ListenerPort {
    /// The network.
    #[schemars(length(min = 1, max = 63), regex(pattern = r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?$"))]
    pub network: String,
    /// The role that this end plays: downlink, mesh or trunk.
    #[schemars(schema_with = "crate::rules::listener_role")]
    pub role: LinkRole,
    /// The peer, for a trunk.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 63), regex(pattern = r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?$"))]
    pub peer: Option<String>,
    /// The UDP port.
    #[schemars(range(min = 1, max = 65535))]
    pub port: u16,
}

/// What is reported of a gateway. `networks` is the controller's, everything else the worker's.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct GatewayStatus {
    /// Public key, as `wg pubkey` prints it.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 64))]
    pub public_key: Option<String>,
    /// Counts the keys of this gateway; peers follow only a higher one.
    #[serde(skip_serializing_if = "is_zero")]
    pub key_generation: i64,
    /// The host that others dial.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 253))]
    pub endpoint: Option<String>,
    /// Ports on which the worker listens. One writer replaces them all: `peer` stands in trunks alone, so no set of
    /// fields could be the key of an entry.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 4096), extend("x-kubernetes-list-type" = "atomic"))]
    pub listeners: Vec<ListenerPort>,
    /// `kernel` or `userspace`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 63))]
    pub backend: Option<String>,
    /// Conditions of the worker.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schemars(
        length(max = 32),
        extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["type"])
    )]
    pub conditions: Vec<Condition>,
    /// Networks that the gateway is in, with its address in each.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schemars(
        length(max = 1024),
        extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["name"])
    )]
    pub networks: Vec<NetworkAddress>,
}

/// The gateway's place in one network.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct NetworkAddress {
    /// The network.
    #[schemars(length(min = 1, max = 63), regex(pattern = r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?$"))]
    pub name: String,
    /// The gateway's address in it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 39))]
    pub tunnel_address: Option<String>,
}

impl Kind for GatewaySpec {
    type Status = GatewayStatus;
    const KIND: &'static str = "Gateway";
    const PLURAL: &'static str = "gateways";
    const NAME_RULE: &'static str = "self.metadata.name.size() <= 63 && !self.metadata.name.contains('.')";
    const NAME_RULE_MESSAGE: &'static str =
        "the name of a Gateway is one label: at most 63 characters and no dot";
}

#[allow(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
fn is_zero(number: &i64) -> bool {
    *number == 0
}
