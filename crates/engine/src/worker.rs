//! The worker's decisions for one host: what is wanted, what is recorded, what is there, and the steps between them.
//! It refuses to remove anything whose replacement does not stand, and to conclude anything from a failed read.
//!
//! [`desire()`] resolves the intents of a host with the facts of the gateways, [`plan()`] compares that with records and
//! host, [`report()`] says what the links are worth. All three are pure.

pub mod desired;
pub mod links;
pub mod observed;
pub mod peers;
pub mod plan;
pub mod recorded;
pub mod report;
pub mod routes;
pub mod step;

pub use desired::{Desired, DesiredNetwork, Settings, Situation, desire, older_intents};
pub use observed::{Evidence, Host, ObservedDevice, ObservedPeer, ObservedRoute, ObservedTable};
pub use peers::{PeerNote, WantedLink};
pub use plan::{Plan, Report, plan};
pub use recorded::{AppliedIntent, LinkStatus, Recorded, RecordedLink};
pub use report::{Statuses, report};
pub use step::{DeviceConfig, HostStep, PeerConfig, RecordStep, RouteKind, Step, TableConfig};
