//! `WorkerSliceConfig`: what one worker should be connected to. It refuses a mode flag: the list `peers` alone decides
//! which peers, and absent, null and empty keep their meanings.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{Condition, HubChange, Kind, LinkRole, LinkState, Role, RouteState, Transit, Tunnel};

/// The intent for one worker in one network.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[cfg_attr(
    feature = "kube",
    derive(kube::CustomResource),
    kube(
        group = "spanwire.dev",
        version = "v1alpha1",
        kind = "WorkerSliceConfig",
        plural = "workersliceconfigs",
        shortname = "wsc",
        namespaced,
        derive = "PartialEq",
        status = "WorkerSliceConfigStatus",
        category = "spanwire",
        doc = "What one worker should be connected to in one network, named <network>.<gateway>",
        printcolumn(name = "Topology", type_ = "string", json_path = ".spec.topology"),
        printcolumn(
            name = "Role",
            type_ = "string",
            json_path = ".status.role",
            description = "The role that is applied"
        ),
        printcolumn(name = "Ready", type_ = "integer", json_path = ".status.summary.readyPeers"),
        printcolumn(name = "Desired", type_ = "integer", json_path = ".status.summary.desiredPeers"),
        printcolumn(
            name = "Reason",
            type_ = "string",
            json_path = ".status.conditions[?(@.type==\"Ready\")].reason",
            description = "Why it is ready or not"
        ),
        printcolumn(name = "Peers", type_ = "string", json_path = ".spec.peers", priority = 1),
        printcolumn(name = "Age", type_ = "date", json_path = ".metadata.creationTimestamp")
    )
)]
#[serde(rename_all = "camelCase")]
pub struct WorkerSliceConfigSpec {
    /// The network.
    #[schemars(length(min = 1, max = 63), regex(pattern = r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?$"))]
    pub slice_name: String,
    /// The gateway whose worker this is for.
    #[schemars(length(min = 1, max = 63), regex(pattern = r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?$"))]
    pub gateway: String,
    /// Exactly these peers. Absent or null: every other member. Empty: every other member, or nobody if `topology` is
    /// set.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 1024), inner(length(max = 253)), extend("x-kubernetes-list-type" = "atomic"))]
    pub peers: Option<Vec<String>>,
    /// `mesh` or `hub-spoke`, where the writer knows it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 63))]
    pub topology: Option<String>,
    /// The role that the worker plays. Absent: hub if it is in `hubs`, else spoke.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "crate::rules::optional_role")]
    pub role: Option<Role>,
    /// Hubs, the active one first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(
        length(max = 64),
        inner(length(min = 1, max = 63), regex(pattern = r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?$")),
        extend("x-kubernetes-list-type" = "atomic")
    )]
    pub hubs: Vec<String>,
    /// Mesh links to every peer besides those that `hubs` gives; set only during a change of topology.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub mesh_links: bool,
    /// All members. Empty: all gateways.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(
        length(max = 1024),
        inner(length(min = 1, max = 63), regex(pattern = r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?$")),
        extend("x-kubernetes-list-type" = "atomic")
    )]
    pub members: Vec<String>,
    /// The worker's own address in the network.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 39), transform = crate::rules::address)]
    pub tunnel_address: Option<String>,
    /// The network's cidr and the subnets of all its members.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    // No rule a prefix: a controller writes thousands in one object, and each rule costs the server some 15 µs a prefix.
    #[schemars(length(max = 65536), inner(length(max = 43)), extend("x-kubernetes-list-type" = "atomic"))]
    pub wide_cidrs: Vec<String>,
    /// Whether spokes reach each other through the hub.
    #[serde(default)]
    pub transit: Transit,
    /// Time-outs of make-before-break.
    #[serde(default)]
    pub hub_change: HubChange,
    /// Settings of the devices.
    #[serde(default)]
    pub tunnel: Tunnel,
}

/// What the worker reports of its links.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct WorkerSliceConfigStatus {
    /// The generation of the intent that is applied.
    pub observed_generation: i64,
    /// The role that is applied.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "crate::rules::optional_role")]
    pub role: Option<Role>,
    /// One row a link, and one a peer that could not become one. One writer replaces them all: such a peer has no role,
    /// so no set of fields could be the key of a row.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 4096), extend("x-kubernetes-list-type" = "atomic"))]
    pub peer_statuses: Vec<PeerStatus>,
    /// Counts over the wanted links.
    pub summary: Summary,
    /// Conditions of this network on this host.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schemars(
        length(max = 32),
        extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["type"])
    )]
    pub conditions: Vec<Condition>,
}

/// One link or refused peer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PeerStatus {
    /// The peer as the intent names it.
    pub peer: String,
    /// The role of the link; absent: the peer could not become a link.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "crate::rules::optional_link_role")]
    pub role: Option<LinkRole>,
    /// Whether it works.
    pub state: LinkState,
    /// What is routed over it.
    pub route: RouteState,
    /// Why, in one word with a fixed meaning.
    pub reason: String,
    /// Why, in words for people.
    #[serde(default)]
    pub message: String,
    /// When state or reason last changed, RFC 3339.
    pub last_transition_time: String,
}

/// Counts over the wanted links.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct Summary {
    /// Wanted links.
    pub desired_peers: u32,
    /// Wanted links that are connected.
    pub ready_peers: u32,
    /// Wanted links that are not.
    pub failing_peers: u32,
}

impl Kind for WorkerSliceConfigSpec {
    type Status = WorkerSliceConfigStatus;
    const KIND: &'static str = "WorkerSliceConfig";
    const PLURAL: &'static str = "workersliceconfigs";
    const NAME_RULE: &'static str = "self.metadata.name == self.spec.sliceName + '.' + self.spec.gateway";
    const NAME_RULE_MESSAGE: &'static str = "the name of a WorkerSliceConfig is <sliceName>.<gateway>";
}
