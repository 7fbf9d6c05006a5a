//! The pure decisions of Spanwire: from a declared topology to intents, from an intent to the steps of one host. It
//! refuses to touch the world: time, facts and records come in as values, steps go out as values.
//!
//! Two functions carry the product. [`controller::plan()`] turns one network into its status and one [`Intent`] per
//! gateway, in four phases when a hub moves. [`worker::plan()`] turns one intent into the steps that make a host match
//! it, always adding before it removes.
//!
//! ```
//! use spanwire_engine::{GatewayName, LinkRole, topology};
//!
//! let hub: GatewayName = "hub-a".parse().unwrap();
//! let spoke: GatewayName = "spoke-1".parse().unwrap();
//! let roles = topology::roles(&spoke, &hub, &[hub.clone()], false);
//! assert_eq!(roles, [LinkRole::Uplink]);
//! ```
#![warn(missing_docs)]

pub mod backend;
pub mod check;
pub mod controller;
pub mod fault;
pub mod firewall;
pub mod gateway;
pub mod intent;
pub mod key;
pub mod link;
pub mod name;
pub mod network;
pub mod port;
pub mod status;
pub mod time;
pub mod topology;
pub mod worker;

pub use backend::Backend;
pub use fault::{Class, Unreadable};
pub use gateway::{Gateway, GatewayFacts, KERNEL_WIREGUARD, Listener};
pub use intent::{HubChange, Intent, OnTimeout, Stored, Transit, Tunnel, TunnelMode};
pub use key::PublicKey;
pub use link::{DeviceId, DeviceName, Endpoint, LinkId, LinkRole};
pub use name::{GatewayName, Meta, NetworkName, Uid};
pub use network::{Change, MemberStatus, NetworkSpec, NetworkStatus, Phase, Published};
pub use status::{Condition, LinkState, PeerStatus, Reason, RouteState, WorkerStatus};
pub use time::{BootTime, Now};
pub use topology::{Role, Topology};
