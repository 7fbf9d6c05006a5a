//! The worker's decisions for one host: what is wanted, what is recorded, what is there, and the steps between them.
//! It refuses to remove anything whose replacement does not stand, and to conclude anything from a failed read.
//!
//! `desire` resolves an intent with the facts of the gateways, [`plan`] compares it with records and host, [`report`]
//! says what the links are worth. All three are pure.

pub mod observed;
pub mod recorded;
pub mod step;

pub use observed::{Evidence, Host, ObservedDevice, ObservedPeer, ObservedRoute, ObservedTable};
pub use recorded::{AppliedIntent, LinkStatus, Recorded, RecordedLink};
pub use step::{DeviceConfig, HostStep, PeerConfig, RecordStep, RouteKind, Step, TableConfig};
