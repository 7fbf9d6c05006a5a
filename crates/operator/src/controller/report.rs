//! Verb 5, report: what a pass came to. It refuses to write: a network's status is part of the plan, because it comes
//! before the intents.

use spanwire_engine::controller::Report;

use super::apply::Applied;
use crate::driver::Outcome;

/// Joins what all networks wait for.
pub fn report(applied: Applied) -> Outcome {
    let Applied { reports, standing: _, ledger, faults } = applied;
    let mut outcome = Outcome { ledger, faults, ..Outcome::default() };
    for (network, report) in reports {
        let Report { waits, unknown, next_due, overrun: _ } = report;
        let all = waits.into_iter().chain(unknown);
        outcome.waits.extend(all.map(|what| format!("{network}: {what}")));
        outcome.due = outcome.due.into_iter().chain(next_due).min();
    }
    outcome
}
