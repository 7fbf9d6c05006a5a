//! Settings and words that several kinds share by meaning: tunnels, time-outs, roles and states. It refuses open words:
//! every enum here is closed.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::Duration;

/// Whether spokes reach each other through the hub.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
pub enum Transit {
    /// They do.
    Routed,
    /// They reach hubs only.
    #[default]
    Isolated,
}

/// Time-outs of make-before-break.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct HubChange {
    /// How long a new link may take to connect before `onTimeout` applies.
    pub connect_timeout: Duration,
    /// What then.
    pub on_timeout: OnTimeout,
}

impl Default for HubChange {
    fn default() -> Self {
        let connect_timeout = Duration(std::time::Duration::from_secs(60));
        Self { connect_timeout, on_timeout: OnTimeout::default() }
    }
}

/// What happens when the other side does not connect in time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
pub enum OnTimeout {
    /// Go on without it.
    #[default]
    Proceed,
    /// Keep what is there.
    Hold,
}

/// Settings of the WireGuard devices of a network.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct Tunnel {
    /// Which implementation to use.
    pub mode: TunnelMode,
    /// MTU in bytes; absent: what the underlay leaves.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 576, max = 65535))]
    pub mtu: Option<u32>,
    /// Persistent keepalive in whole seconds; `0s`: off.
    pub keepalive: Duration,
}

impl Default for Tunnel {
    fn default() -> Self {
        let keepalive = Duration(std::time::Duration::from_secs(25));
        Self { mode: TunnelMode::default(), mtu: None, keepalive }
    }
}

/// Which WireGuard implementation to use.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum TunnelMode {
    /// The kernel's where it has one, else userspace.
    #[default]
    Auto,
    /// The kernel's or none.
    Kernel,
    /// Userspace.
    Userspace,
}

/// The part that a gateway plays in a network.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Role {
    /// Forwards between its downlinks.
    Hub,
    /// Sends everything through a hub, or over mesh links.
    Spoke,
}

/// The part that one end of a link plays.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum LinkRole {
    /// Towards a hub.
    Uplink,
    /// From a hub to a member.
    Downlink,
    /// Between two hubs.
    Trunk,
    /// Between two members without a hub.
    Mesh,
}

/// The state of a link.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum LinkState {
    /// There is evidence that it works.
    Connected,
    /// There is none.
    NotConnected,
    /// Not made yet, or made and not judged yet.
    Pending,
}

/// What is routed over a link.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum RouteState {
    /// It carries routes.
    Active,
    /// It could.
    Standby,
    /// Nothing.
    None,
}
