//! Verb 3, plan: the engine's steps for what was validated. It refuses to add or drop one.

use spanwire_engine::worker::{self, Report, Step};

use super::validate::Validated;

/// The steps of one pass.
#[derive(Debug)]
pub struct Plan {
    /// What they follow from.
    pub validated: Validated,
    /// The steps, in order.
    pub steps: Vec<Step>,
    /// What was left undone, and why.
    pub report: Report,
}

/// Asks the engine.
pub fn plan(validated: Validated) -> Plan {
    let Validated { fetched, standing: _, desired } = &validated;
    let worker::Plan { steps, report } =
        worker::plan(desired, &fetched.recorded, &fetched.host, &fetched.now);
    Plan { validated, steps, report }
}
