//! What the log says of a pass: news aloud, the rest for debugging. It refuses to repeat itself at every pass.

use std::collections::BTreeSet;

use super::Outcome;

/// What was said of the pass before.
#[derive(Debug, Default)]
pub(super) struct Said {
    faults: BTreeSet<String>,
    waits: BTreeSet<String>,
}

impl Said {
    /// Logs a pass: writes and new faults and waits aloud, an idle pass only for debugging.
    pub(super) fn log(&mut self, outcome: &Outcome, events: &BTreeSet<&'static str>) {
        let Outcome { ledger, waits, faults, due } = outcome;
        for fault in faults.iter().filter(|fault| !self.faults.contains(&fault.message)) {
            tracing::warn!(class = fault.class.as_str(), "{fault}");
        }
        for wait in waits.iter().filter(|wait| !self.waits.contains(*wait)) {
            tracing::info!("waits for {wait}");
        }
        if faults.is_empty() && !self.faults.is_empty() {
            tracing::info!("all faults are gone");
        }
        if waits.is_empty() && !self.waits.is_empty() {
            tracing::info!("nothing to wait for any more");
        }
        self.faults = faults.iter().map(|fault| fault.message.clone()).collect();
        self.waits = waits.iter().cloned().collect();
        for entry in ledger.entries() {
            tracing::debug!(target = %entry.target, "{}", entry.what);
        }
        if ledger.is_empty() {
            tracing::debug!(?events, ?due, faults = faults.len(), waits = waits.len(), "nothing to write");
        } else {
            let writes = ledger.entries().len();
            tracing::info!(?events, writes, faults = faults.len(), waits = waits.len(), "pass done");
        }
    }
}
