//! The demo and the end-to-end scenarios: the product's own programs on hosts of the lab, with every packet counted. It
//! refuses to look into the product: it writes the files that a person would write and reads the statuses that a person
//! would read.
//!
//! ```
//! use e2e::{Scenario, Setup};
//!
//! let setup = Setup { firewall: true, ..Setup::for_scenario(Scenario::HubChange) };
//! assert!(setup.check().is_ok());
//! ```
#![warn(missing_docs)]

pub mod fleet;
mod hasty;
pub mod interrupt;
pub mod measure;
pub mod outcome;
pub mod publish;
pub mod say;
pub mod scenario;
pub mod setup;
pub mod throughput;

pub use fleet::Fleet;
pub use outcome::Outcome;
pub use say::Say;
pub use setup::{Laggard, Mode, Provider, Scenario, Setup, Topology, Transit};
