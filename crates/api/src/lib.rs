//! The kinds of the group `spanwire.dev`: what people declare, what the controller publishes, what workers report; and
//! the metrics by name. It refuses decisions: a value that a schema cannot judge stays text.
//!
//! Without features these are plain structs with serde and a JSON schema. The feature `kube` adds the root types of
//! the Kubernetes API and [`crds`](crate::crds()), the generated definitions.
//!
//! ```
//! use spanwire_api::{GatewayNetworkSpec, Object};
//!
//! let network: Object<GatewayNetworkSpec> = serde_json::from_str(
//!     r#"{"apiVersion": "spanwire.dev/v1alpha1", "kind": "GatewayNetwork", "metadata": {"name": "demo"},
//!         "spec": {"topology": "hub-spoke", "hub": "hub-a", "members": ["hub-a", "spoke-1"], "cidr": "10.9.0.0/24"}}"#,
//! )
//! .unwrap();
//! assert_eq!(network.spec.unwrap().hub.as_deref(), Some("hub-a"));
//! ```
#![warn(missing_docs)]
#![allow(clippy::duplicated_attributes, reason = "each printcolumn of kube's derive repeats the same keys")]

mod applied_intent;
mod condition;
#[cfg(feature = "kube")]
mod crds;
mod duration;
mod gateway;
mod gateway_network;
pub mod metrics;
mod moment;
mod object;
#[cfg(feature = "kube")]
pub mod rbac;
#[cfg(feature = "kube")]
mod reference;
mod rules;
mod settings;
mod tunnel_link;
mod worker_slice_config;

pub use applied_intent::{AppliedIntentSpec, AppliedIntentStatus, WantedSince};
pub use condition::{Condition, ConditionStatus};
#[cfg(feature = "kube")]
pub use crds::{CrdError, crds};
pub use duration::{Duration, DurationError};
pub use gateway::{Advertise, GatewaySpec, GatewayStatus, ListenerPort, NetworkAddress};
pub use gateway_network::{
    Change, Edges, GatewayNetworkSpec, GatewayNetworkStatus, Member, Phase, PublishedTopology,
};
pub use moment::BootMoment;
#[cfg(feature = "kube")]
pub use object::resource;
pub use object::{API_VERSION, FINALIZER, GROUP, Kind, Metadata, NoStatus, Object, TRACEPARENT, VERSION};
#[cfg(feature = "kube")]
pub use reference::reference;
pub use settings::{
    HubChange, LinkRole, LinkState, OnTimeout, Role, RouteState, Transit, Tunnel, TunnelMode,
};
pub use tunnel_link::{TunnelLinkSpec, TunnelLinkStatus};
pub use worker_slice_config::{PeerStatus, Summary, WorkerSliceConfigSpec, WorkerSliceConfigStatus};

#[cfg(feature = "kube")]
pub use {
    applied_intent::AppliedIntent, gateway::Gateway, gateway_network::GatewayNetwork,
    tunnel_link::TunnelLink, worker_slice_config::WorkerSliceConfig,
};
