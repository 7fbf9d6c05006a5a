//! The frame around every kind: apiVersion, kind, metadata, spec, status, as a file or an API server shows it. It
//! refuses to know any kind's content.

use std::{collections::BTreeMap, fmt::Debug};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize, de::DeserializeOwned};

/// The API group.
pub const GROUP: &str = "spanwire.dev";
/// The finalizer that the controller puts on the intents that it writes, and takes off when their links are gone.
pub const FINALIZER: &str = "spanwire.dev/teardown";
/// The annotation that names a trace, as the header `traceparent` of W3C's Trace Context does: the passes that follow from
/// the object are linked to it.
pub const TRACEPARENT: &str = "spanwire.dev/traceparent";
/// The version that this crate speaks.
pub const VERSION: &str = "v1alpha1";
/// `apiVersion` of every object.
pub const API_VERSION: &str = "spanwire.dev/v1alpha1";

/// A spec knows which kind it belongs to.
pub trait Kind: Serialize + DeserializeOwned + JsonSchema + Clone + Debug + PartialEq {
    /// The status of the kind.
    type Status: Serialize + DeserializeOwned + JsonSchema + Clone + Debug + Default + PartialEq;
    /// `kind` of its objects.
    const KIND: &'static str;
    /// The plural, lower case: the resource of the API and the folder of a directory store.
    const PLURAL: &'static str;
    /// CEL rule over the whole object that its name obeys.
    const NAME_RULE: &'static str;
    /// What the rule means, for people.
    const NAME_RULE_MESSAGE: &'static str;
}

/// The resource of a kind, for clients that take its objects as they come.
#[cfg(feature = "kube")]
pub fn resource<S: Kind>() -> kube::core::ApiResource {
    kube::core::ApiResource {
        group: GROUP.to_owned(),
        version: VERSION.to_owned(),
        api_version: API_VERSION.to_owned(),
        kind: S::KIND.to_owned(),
        plural: S::PLURAL.to_owned(),
    }
}

/// One object, in the form that `kubectl apply` takes.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", bound(deserialize = "S: Kind"))]
pub struct Object<S: Kind> {
    /// Always [`API_VERSION`].
    pub api_version: String,
    /// Always [`Kind::KIND`].
    pub kind: String,
    /// Name and identity.
    pub metadata: Metadata,
    /// What is wanted. Absent in a file that holds a status alone.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub spec: Option<S>,
    /// What is reported.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub status: Option<S::Status>,
}

impl<S: Kind> Object<S> {
    /// An object with the right apiVersion and kind and nothing else.
    pub fn new(metadata: Metadata) -> Self {
        Self {
            api_version: API_VERSION.to_owned(),
            kind: S::KIND.to_owned(),
            metadata,
            spec: None,
            status: None,
        }
    }
}

/// The part of Kubernetes' ObjectMeta that means something here, and the rest so that a pasted object is read.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Metadata {
    /// Name of the object.
    pub name: String,
    /// Namespace; a directory is one namespace and does not look at it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub namespace: Option<String>,
    /// Identity of the object over its life.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub uid: Option<String>,
    /// Counts changes of the spec, from 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub generation: Option<i64>,
    /// Opaque version of the object.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub resource_version: Option<String>,
    /// Labels.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub labels: BTreeMap<String, String>,
    /// Annotations.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub annotations: BTreeMap<String, String>,
    /// Set by an API server.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub generate_name: Option<String>,
    /// Set by an API server.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub creation_timestamp: Option<String>,
    /// Set by an API server.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deletion_timestamp: Option<String>,
    /// Set by an API server.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deletion_grace_period_seconds: Option<i64>,
    /// Set by an API server.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub self_link: Option<String>,
    /// Who holds the object's deletion.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub finalizers: Vec<String>,
    /// Owners.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub owner_references: Vec<serde_json::Value>,
    /// Field owners.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub managed_fields: Vec<serde_json::Value>,
}

impl Metadata {
    /// Metadata with a name and nothing else.
    pub fn named(name: impl Into<String>) -> Self {
        Self { name: name.into(), ..Self::default() }
    }
}

/// The status of a kind that reports nothing.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct NoStatus {}
