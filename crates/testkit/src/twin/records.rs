//! A local store in memory. It refuses nothing: a record is what was written last.

use spanwire_engine::worker::{RecordStep, Recorded};

/// Applies one step to records.
pub fn apply_to_records(recorded: &mut Recorded, step: &RecordStep) {
    match step {
        RecordStep::Intent(applied) => {
            recorded.intents.insert(applied.intent.network.clone(), (**applied).clone());
        }
        RecordStep::Link(link) => {
            recorded.links.insert(link.id.clone(), (**link).clone());
        }
        RecordStep::ForgetLink(id) => {
            recorded.links.remove(id);
        }
        RecordStep::ForgetIntent(network) => {
            recorded.intents.remove(network);
        }
    }
}
