//! The mark of intents that a controller of ours wrote. It refuses to guess: without the mark an intent is somebody
//! else's.

use spanwire_api::Metadata;

const LABEL: &str = "app.kubernetes.io/managed-by";
const VALUE: &str = "spanwire-controller";

/// Whether a controller of ours wrote the object.
pub(crate) fn is_managed(metadata: &Metadata) -> bool {
    metadata.labels.get(LABEL).is_some_and(|value| value == VALUE)
}

/// Marks an object as written by a controller of ours.
pub(crate) fn mark_managed(metadata: &mut Metadata) {
    metadata.labels.insert(LABEL.to_owned(), VALUE.to_owned());
}
