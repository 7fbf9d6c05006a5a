//! Conditions in the form that Kubernetes gives them. It refuses reasons of its own: each writer documents its own.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// One aspect of an object's state.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Condition {
    /// The aspect, as in `Ready`.
    #[serde(rename = "type")]
    #[schemars(length(min = 1, max = 316))]
    pub type_: String,
    /// Whether it holds.
    pub status: ConditionStatus,
    /// The generation that the condition speaks of.
    #[serde(default)]
    pub observed_generation: i64,
    /// When `status` last changed, RFC 3339.
    pub last_transition_time: String,
    /// Why, in one word with a fixed meaning.
    #[schemars(length(max = 1024))]
    pub reason: String,
    /// Why, in words for people.
    #[schemars(length(max = 32768))]
    pub message: String,
}

/// Whether a condition holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum ConditionStatus {
    /// It holds.
    True,
    /// It does not.
    False,
    /// Not known.
    Unknown,
}
