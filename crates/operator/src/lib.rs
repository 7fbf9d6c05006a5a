//! The operator's processes: controller, worker and dataplane, as the binary `spanwire` starts them. It refuses rules
//! that an engine test cannot see: here are loops, retries, files of keys, locks and logs.
//!
//! A process is a [`driver::Reconciler`] under a [`driver::run`] loop. Each reconciler is a folder of five verbs:
//! observe, validate, plan, apply, report.
//!
//! ```
//! use spanwire::cli::Place;
//!
//! let place: Place = "dir:/var/lib/spanwire".parse().unwrap();
//! assert_eq!(place.to_string(), "dir:/var/lib/spanwire");
//! assert!("elsewhere".parse::<Place>().is_err());
//! ```

pub mod cli;
pub mod clock;
pub mod controller;
pub mod dataplane;
pub mod driver;
pub mod endpoint;
pub mod events;
pub mod fault;
pub mod folder;
pub mod health;
pub mod key_file;
pub mod key_secret;
pub mod keys;
pub mod lease;
pub mod ledger;
pub mod lock;
pub mod logging;
pub mod metrics;
pub mod resolver;
pub mod rights;
pub mod stop;
pub mod stores;
pub mod traces;
pub mod turn;
pub mod worker;
