//! The loop of every process: when the next pass is due. Level-based, one pass at a time; it refuses to drop a change
//! that comes during a pass, and to let a healthy status hold back a resync.

pub mod once;
pub mod outcome;
pub mod retry;
mod said;
pub mod trigger;

use std::time::Duration;

use tokio::time::{Instant, sleep, sleep_until};
use tracing::Instrument as _;

pub use once::{Verdict, once};
pub use outcome::Outcome;
pub use retry::Retry;
pub use trigger::Trigger;

use crate::stop::Stop;

/// How long a burst of events may gather before the pass that answers it.
const SETTLE: Duration = Duration::from_millis(5);

/// One reconciler: a pass over everything that it owns.
pub trait Reconciler {
    /// Makes one pass. It never fails as a whole: what failed is in the outcome.
    fn pass(&mut self) -> impl Future<Output = Outcome>;
}

/// When passes are made.
#[derive(Debug, Clone, Copy)]
pub struct Cadence {
    /// The longest time without a pass.
    pub resync: Duration,
}

/// Makes a pass at once, then one for every burst of events, every due time, every retry and every resync, until the
/// end is asked for. A pass that runs then has [`crate::stop::GRACE`] to finish.
pub async fn run(reconciler: &mut impl Reconciler, trigger: &Trigger, cadence: Cadence, stop: &Stop) {
    let mut retry = Retry::new();
    let mut said = said::Said::default();
    let mut cause = Cause::Start;
    for number in 1u64.. {
        let events = trigger.take();
        let span = tracing::info_span!("pass", number, cause = cause.as_str());
        let outcome = tokio::select! {
            biased;
            outcome = reconciler.pass().instrument(span.clone()) => outcome,
            () = stop.overdue() => return tracing::warn!("the pass is cut short; the next start repairs the rest"),
        };
        span.in_scope(|| said.log(&outcome, &events));
        let ended = Instant::now();
        let retry_at = retry.after(&outcome, cause == Cause::Retry, ended);
        let wake = Wake::earliest(ended + cadence.resync, retry_at, outcome.due.map(|due| ended + due));
        cause = tokio::select! {
            biased;
            () = stop.requested() => return,
            () = trigger.fired() => Cause::Event,
            () = sleep_until(wake.at) => wake.cause,
        };
        if cause == Cause::Event {
            sleep(SETTLE).await;
        }
    }
}

/// Why a pass is made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Cause {
    Start,
    Event,
    Due,
    Retry,
    Resync,
}

impl Cause {
    fn as_str(self) -> &'static str {
        match self {
            Cause::Start => "start",
            Cause::Event => "event",
            Cause::Due => "due",
            Cause::Retry => "retry",
            Cause::Resync => "resync",
        }
    }
}

struct Wake {
    at: Instant,
    cause: Cause,
}

impl Wake {
    fn earliest(resync: Instant, retry: Option<Instant>, due: Option<Instant>) -> Self {
        let candidates = [(Some(resync), Cause::Resync), (retry, Cause::Retry), (due, Cause::Due)];
        let earliest = candidates.into_iter().filter_map(|(at, cause)| at.map(|at| Wake { at, cause }));
        earliest.min_by_key(|wake| wake.at).unwrap_or(Wake { at: resync, cause: Cause::Resync })
    }
}

#[cfg(test)]
mod tests;
