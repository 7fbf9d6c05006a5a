//! The ledger: every write that was really made, in order. It refuses to list writes that found all as asked.

use std::fmt;

use serde::Serialize;
use spanwire_engine::port::Written;

/// Where a write went.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Target {
    /// Devices, peers, routes, rules, the packet filter.
    Device,
    /// The worker's own records.
    Record,
    /// Specs that this process owns in the control store.
    Intent,
    /// Statuses in the control store.
    Status,
    /// What workers may read there.
    Rights,
}

impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Target::Device => "device",
            Target::Record => "record",
            Target::Intent => "intent",
            Target::Status => "status",
            Target::Rights => "rights",
        })
    }
}

/// One write.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Entry {
    /// Where it went.
    pub target: Target,
    /// What was written, for people.
    pub what: String,
}

/// The writes of a pass or of a run.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
#[serde(transparent)]
pub struct Ledger {
    entries: Vec<Entry>,
}

impl Ledger {
    /// Notes the outcome of a call: an entry only if something was written.
    pub fn note(&mut self, target: Target, written: Written, what: impl FnOnce() -> String) {
        match written {
            Written::Changed => self.entries.push(Entry { target, what: what() }),
            Written::Same => {}
        }
    }

    /// All writes, in order.
    pub fn entries(&self) -> &[Entry] {
        &self.entries
    }

    /// Whether nothing was written.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// How many writes went to `target`.
    pub fn count(&self, target: Target) -> usize {
        self.entries.iter().filter(|entry| entry.target == target).count()
    }

    /// Adds the writes of a later pass.
    pub fn extend(&mut self, later: Ledger) {
        self.entries.extend(later.entries);
    }
}
