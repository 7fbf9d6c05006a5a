//! A reconciler whose passes are counted and timed, and seen by the health of its process. It refuses to change a pass.

use tokio::time::Instant;

use super::Metrics;
use crate::{
    driver::{Outcome, Reconciler},
    health::Health,
};

/// See the module.
pub struct Measured<'a, R> {
    reconciler: &'a mut R,
    metrics: &'a Metrics,
    health: &'a Health,
}

impl<'a, R> Measured<'a, R> {
    /// Counts the passes of `reconciler`.
    pub fn new(reconciler: &'a mut R, metrics: &'a Metrics, health: &'a Health) -> Self {
        Self { reconciler, metrics, health }
    }
}

impl<R: Reconciler> Reconciler for Measured<'_, R> {
    async fn pass(&mut self) -> Outcome {
        let begun = Instant::now();
        let passing = self.health.passes();
        let outcome = self.reconciler.pass().await;
        drop(passing);
        self.metrics.note_pass(&outcome, begun.elapsed());
        outcome
    }
}
