//! What became of the steps of a plan, by their kind. It refuses to name what a step was for.

use std::collections::BTreeMap;

/// What became of a step.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Fate {
    /// It changed something.
    Changed,
    /// All stood so already.
    Same,
    /// It failed.
    Failed,
    /// It was not tried, because others failed.
    Left,
}

impl Fate {
    /// The word in metrics.
    pub fn as_str(self) -> &'static str {
        match self {
            Fate::Changed => "changed",
            Fate::Same => "same",
            Fate::Failed => "failed",
            Fate::Left => "left",
        }
    }
}

/// Steps of one plan, counted.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Taken(BTreeMap<(&'static str, Fate), u64>);

impl Taken {
    /// Counts a step of a kind.
    pub fn note(&mut self, kind: &'static str, fate: Fate) {
        *self.0.entry((kind, fate)).or_default() += 1;
    }

    /// How many there were of each kind and fate.
    pub fn counts(&self) -> &BTreeMap<(&'static str, Fate), u64> {
        &self.0
    }
}
