//! What a pass came to. It refuses to be an error: "not yet" and "failed in part" are values.

use std::time::Duration;

use crate::{fault::Noted, ledger::Ledger};

/// What a pass came to.
#[must_use]
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Outcome {
    /// What was written.
    pub ledger: Ledger,
    /// What it waits for: nothing that this process could do now.
    pub waits: Vec<String>,
    /// What failed.
    pub faults: Vec<Noted>,
    /// When the next pass is due even if nothing happens; `None`: at the resync.
    pub due: Option<Duration>,
}

impl Outcome {
    /// A pass that could not even begin.
    pub fn failed(fault: Noted) -> Self {
        Self { faults: vec![fault], ..Self::default() }
    }

    /// A pass that has nothing to do before something changes.
    pub fn waiting(reason: String) -> Self {
        Self { waits: vec![reason], ..Self::default() }
    }
}
