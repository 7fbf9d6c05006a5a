//! A worker's own records. It refuses to hold secrets.

use std::future::Future;

use crate::{
    LinkId,
    worker::{RecordStep, Recorded},
};

use super::{Fault, Written};

/// Reads and writes of a worker at its local store.
pub trait LocalStore: Send + Sync {
    /// Why a call failed.
    type Error: Fault;

    /// Reads all records. An error means unknown: nothing is removed.
    fn read(&self) -> impl Future<Output = Result<Recorded, Self::Error>> + Send;

    /// The UID of the record of a link, as it was heard last, where the store gives one: what is told of the link is told on
    /// that object. No decision looks at it.
    fn uid(&self, link: &LinkId) -> Option<String> {
        let _ = link;
        None
    }

    /// Applies one step; it is durable when this returns.
    fn apply(&self, step: &RecordStep) -> impl Future<Output = Result<Written, Self::Error>> + Send;
}
