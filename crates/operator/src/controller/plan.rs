//! Verb 3, plan: the engine's writes for what was validated. It refuses to add or drop one.

use spanwire_engine::controller::{self, Plans};

use super::validate::Validated;

/// The writes of one pass.
#[derive(Debug)]
pub struct Plan {
    /// What they follow from.
    pub validated: Validated,
    /// The writes, by network.
    pub plans: Plans,
}

/// Asks the engine.
pub fn plan(validated: Validated) -> Plan {
    let plans = controller::plan(&validated.fetched.view, &validated.fetched.now);
    Plan { validated, plans }
}
