//! `AppliedIntent`: the intent that a worker applied last, so that a reboot without the control cluster rebuilds links
//! and routes. It refuses to be edited into effect: the control cluster's intent replaces it.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{Duration, Kind, LinkRole, NoStatus, WorkerSliceConfigSpec};

/// The intent with its origin.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[cfg_attr(
    feature = "kube",
    derive(kube::CustomResource),
    kube(
        group = "spanwire.dev",
        version = "v1alpha1",
        kind = "AppliedIntent",
        plural = "appliedintents",
        shortname = "ai",
        namespaced,
        derive = "PartialEq",
        status = "NoStatus",
        category = "spanwire",
        doc = "The intent that this worker applied last, named like its network",
        printcolumn(name = "Gateway", type_ = "string", json_path = ".spec.intent.gateway"),
        printcolumn(name = "Generation", type_ = "integer", json_path = ".spec.generation"),
        printcolumn(name = "Age", type_ = "date", json_path = ".metadata.creationTimestamp")
    )
)]
#[serde(rename_all = "camelCase")]
pub struct AppliedIntentSpec {
    /// UID of the WorkerSliceConfig that it came from.
    #[serde(default)]
    #[schemars(length(max = 253))]
    pub uid: String,
    /// Generation of that object.
    pub generation: i64,
    /// The content.
    pub intent: WorkerSliceConfigSpec,
    /// The own gateway's subnets when the intent was applied.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 64), inner(length(max = 43)), extend("x-kubernetes-list-type" = "atomic"))]
    pub own_subnets: Vec<String>,
    /// The host that others dialled when the intent was applied.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 253))]
    pub own_host: Option<String>,
    /// Since when each peer and role is wanted, also where the link cannot be made.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 4096), extend("x-kubernetes-list-type" = "atomic"))]
    pub wanted_since: Vec<WantedSince>,
}

/// Since when a peer is wanted in a role.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct WantedSince {
    /// The peer.
    pub peer: String,
    /// The role of the link.
    pub role: LinkRole,
    /// The boot.
    #[serde(rename = "bootID")]
    pub boot_id: String,
    /// Time since that boot.
    pub boot_time: Duration,
}

/// An AppliedIntent has no status; the status of its links is in TunnelLinks.
pub type AppliedIntentStatus = NoStatus;

impl Kind for AppliedIntentSpec {
    type Status = NoStatus;
    const KIND: &'static str = "AppliedIntent";
    const PLURAL: &'static str = "appliedintents";
    const NAME_RULE: &'static str = "self.metadata.name == self.spec.intent.sliceName";
    const NAME_RULE_MESSAGE: &'static str = "the name of an AppliedIntent is that of its network";
}
