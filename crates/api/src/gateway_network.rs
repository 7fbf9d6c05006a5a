//! `GatewayNetwork`: gateways that share a topology. It refuses to close the list of topologies: the reconciler
//! answers an unknown one, with or without admission.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{BootMoment, Condition, Duration, HubChange, Kind, Transit, Tunnel};

/// What is declared of a network.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[cfg_attr(
    feature = "kube",
    derive(kube::CustomResource),
    kube(
        group = "spanwire.dev",
        version = "v1alpha1",
        kind = "GatewayNetwork",
        plural = "gatewaynetworks",
        shortname = "gwn",
        namespaced,
        derive = "PartialEq",
        status = "GatewayNetworkStatus",
        category = "spanwire",
        doc = "A set of gateways that share a topology",
        printcolumn(name = "Topology", type_ = "string", json_path = ".spec.topology"),
        printcolumn(
            name = "Hub",
            type_ = "string",
            json_path = ".status.activeHub",
            description = "First of the published hubs; the declared one is `.spec.hub`"
        ),
        printcolumn(name = "State", type_ = "string", json_path = ".status.state"),
        printcolumn(
            name = "Ready",
            type_ = "integer",
            json_path = ".status.edges.ready",
            description = "Links that are connected at both ends"
        ),
        printcolumn(
            name = "Desired",
            type_ = "integer",
            json_path = ".status.edges.desired",
            description = "Links that should be there"
        ),
        printcolumn(
            name = "Phase",
            type_ = "string",
            json_path = ".status.change.phase",
            priority = 1,
            description = "Where a running change is"
        ),
        printcolumn(name = "CIDR", type_ = "string", json_path = ".spec.cidr", priority = 1),
        printcolumn(name = "Age", type_ = "date", json_path = ".metadata.creationTimestamp")
    )
)]
#[serde(rename_all = "camelCase", default)]
pub struct GatewayNetworkSpec {
    /// `mesh` or `hub-spoke`.
    #[schemars(length(max = 63))]
    pub topology: String,
    /// The active hub; required for hub-spoke.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 63))]
    pub hub: Option<String>,
    /// Hubs that are kept connected and take over by themselves, in order.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 16), inner(length(max = 63)), extend("x-kubernetes-list-type" = "atomic"))]
    pub standby_hubs: Vec<String>,
    /// Names of the member gateways. A set: with server-side apply several people may add one each.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 1024), inner(length(max = 63)), extend("x-kubernetes-list-type" = "set"))]
    pub members: Vec<String>,
    /// Tunnel addresses are taken from this prefix. It cannot be changed.
    #[schemars(length(max = 43), transform = crate::rules::lasting_cidr)]
    pub cidr: String,
    /// Whether spokes reach each other through the hub.
    pub transit: Transit,
    /// Time-outs of make-before-break.
    pub hub_change: HubChange,
    /// Settings of the devices.
    pub tunnel: Tunnel,
}

/// What the controller reports of a network.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct GatewayNetworkStatus {
    /// Generation that this status speaks of.
    pub observed_generation: i64,
    /// `Valid`, or `Invalid: ` and why.
    #[schemars(length(max = 32768))]
    pub state: String,
    /// First of the published hubs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub active_hub: Option<String>,
    /// What the last finished change left; absent: nothing yet.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub published: Option<PublishedTopology>,
    /// The change that is running.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub change: Option<Change>,
    /// Counts of links, both ends joined.
    pub edges: Edges,
    /// One entry a member, then leavers whose address is still reserved.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schemars(
        length(max = 2048),
        extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["gateway"])
    )]
    pub members: Vec<Member>,
    /// `Valid`, `TopologyConverged`, `Ready`.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schemars(
        length(max = 32),
        extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["type"])
    )]
    pub conditions: Vec<Condition>,
}

/// A topology with its hubs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PublishedTopology {
    /// `mesh` or `hub-spoke`.
    pub topology: String,
    /// Hubs, the active one first; empty for a mesh.
    #[serde(default)]
    #[schemars(length(max = 1024), extend("x-kubernetes-list-type" = "atomic"))]
    pub hubs: Vec<String>,
}

/// A change between two published states.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Change {
    /// What was published when it began.
    pub from: PublishedTopology,
    /// What it ends with.
    pub to: PublishedTopology,
    /// Where it is.
    pub phase: Phase,
    /// When the phase began, RFC 3339, for people.
    pub started_at: String,
    /// The boot in which the phase began.
    #[serde(rename = "bootID")]
    pub boot_id: String,
    /// Time since that boot when the phase began.
    pub boot_time: Duration,
}

/// The phases of a change.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum Phase {
    /// Links to what is new, beside the old ones.
    Adding,
    /// Traffic moves to what is new.
    Switching,
    /// Old hubs send through the new one and still accept.
    Demoting,
    /// Old links go.
    Removing,
}

/// Counts of links.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct Edges {
    /// Links that should be there.
    pub desired: u32,
    /// Connected at both ends.
    pub ready: u32,
    /// Reported not connected by a worker.
    pub failing: u32,
}

/// One member.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Member {
    /// The gateway.
    pub gateway: String,
    /// Its address in the network.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tunnel_address: Option<String>,
    /// Whether it takes part.
    #[serde(default)]
    pub accepted: bool,
    /// Has not yet reported its routes since it joined.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub joining: bool,
    /// No longer a member; its links are being removed.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub leaving: bool,
    /// When it began to leave.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub leaving_since: Option<BootMoment>,
    /// UID of its Gateway when it was accepted.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub uid: String,
    /// Why it is left out, or what is wrong with it, in one word.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// The same in words for people.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
}

impl Kind for GatewayNetworkSpec {
    type Status = GatewayNetworkStatus;
    const KIND: &'static str = "GatewayNetwork";
    const PLURAL: &'static str = "gatewaynetworks";
    const NAME_RULE: &'static str = "self.metadata.name.size() <= 63 && !self.metadata.name.contains('.')";
    const NAME_RULE_MESSAGE: &'static str =
        "the name of a GatewayNetwork is one label: at most 63 characters and no dot";
}
