//! Verb 2, validate: what could not be read is named. It refuses to judge networks: the engine does, each on its own.

use spanwire_engine::{Class, Unreadable};

use super::observe::Fetched;
use crate::fault::Noted;

/// What was read, and what of it is unknown.
#[derive(Debug)]
pub struct Validated {
    /// What was read.
    pub fetched: Fetched,
    /// Objects that are there and could not be read.
    pub faults: Vec<Noted>,
}

/// Names what is unknown.
pub fn validate(fetched: Fetched) -> Validated {
    let faults = fetched.view.unreadable.iter().map(noted).collect();
    Validated { fetched, faults }
}

fn noted(object: &Unreadable) -> Noted {
    let Unreadable { kind, name, cause } = object;
    let message = format!("{kind} {name} can't be read: {cause}");
    Noted { class: Class::WaitForChange, message, late: false }
}
