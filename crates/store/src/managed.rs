//! The marks of intents that a controller of ours wrote: the label by which it knows them, and the finalizer by which it
//! holds them until their links are gone. It refuses to guess: without the label an intent is somebody else's.

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

/// Whether the controller holds the object: where somebody deletes it, it stays until its worker has torn it down.
#[cfg(feature = "cluster")]
pub(crate) fn is_held(metadata: &Metadata) -> bool {
    metadata.finalizers.iter().any(|finalizer| finalizer == spanwire_api::FINALIZER)
}

/// Holds an object.
#[cfg(feature = "cluster")]
pub(crate) fn hold(metadata: &mut Metadata) {
    metadata.finalizers.push(spanwire_api::FINALIZER.to_owned());
}
