//! The ports: what the decisions need from the world. Each has an adapter in `store` or `dataplane` and a twin in
//! `testkit`. It refuses to grow: one small trait a file.

pub mod controller_store;
pub mod devices;
pub mod local_store;
pub mod worker_store;

pub use controller_store::{ControlView, ControllerStore, IntentView, NetworkView};
pub use devices::Devices;
pub use local_store::LocalStore;
pub use worker_store::{WorkerStore, WorkerView};

use std::future::Future;

use crate::Class;

/// An error of an adapter: it knows what it asks for.
pub trait Fault: std::error::Error + Send + Sync + 'static {
    /// What the fault asks for.
    fn class(&self) -> Class;
}

/// Whether a write was needed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Written {
    /// The store was changed.
    Changed,
    /// It held the same content already; nothing was written.
    Same,
}

/// Anything that can wait for the next change of what a port reads.
pub trait Changes {
    /// Resolves when something may have changed since the last call returned; a change in between is not lost.
    fn changed(&mut self) -> impl Future<Output = ()> + Send;
}
