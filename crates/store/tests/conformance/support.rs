//! What the tests of every store share: the place under test, and what people do there. It refuses to know files.

#[cfg(feature = "cluster")]
pub(crate) mod cluster;
pub(crate) mod dir;
pub(crate) mod values;

use std::{future::Future, time::Duration};

use spanwire_engine::port::{Changes, ControllerStore, Fault, LocalStore, WorkerStore};

/// A control store and a local store, made for one test.
pub(crate) trait Place: 'static {
    type Controller: ControllerStore + Clone + 'static;
    type Worker: WorkerStore;
    type Local: LocalStore;
    type Watch: Changes;

    fn controller(&self) -> Self::Controller;
    fn worker(&self) -> Self::Worker;
    fn local(&self) -> Self::Local;
    /// A watch of the control store, as a worker has it.
    fn watch(&self, worker: &Self::Worker) -> Self::Watch;

    /// What a person does with `kubectl apply`.
    fn apply(&self, yaml: &str) -> impl Future<Output = ()>;
    /// What a person does with `kubectl delete`.
    fn delete(&self, plural: &str, name: &str) -> impl Future<Output = ()>;

    fn is_conflict(error: &dyn Fault) -> bool;
}

/// Waits for a condition, with a deadline.
pub(crate) async fn eventually<T, F: Future<Output = Option<T>>>(
    what: &str,
    mut look: impl FnMut() -> F,
) -> T {
    let looked = async {
        loop {
            if let Some(found) = look().await {
                return found;
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    match tokio::time::timeout(Duration::from_secs(60), looked).await {
        Ok(found) => found,
        Err(_) => panic!("not within a minute: {what}"),
    }
}
