//! The one retry policy of the program: exponential from 2 s, never more than 30 s, with jitter, for ever. It refuses to
//! count passes that events started: those neither postpone nor lengthen a retry.

use std::time::Duration;

use backon::{BackoffBuilder as _, ExponentialBackoff, ExponentialBuilder};
use spanwire_engine::Class;
use tokio::time::Instant;

use super::Outcome;

/// The shortest pause.
pub const SHORTEST: Duration = Duration::from_secs(2);
/// The longest pause.
pub const LONGEST: Duration = Duration::from_secs(30);

/// Decides when a pass with faults is repeated.
#[derive(Debug)]
pub struct Retry {
    pauses: ExponentialBackoff,
    pending: Option<Instant>,
}

/// The pauses between attempts, without an end. The jitter of the builder adds up to the pause itself, so its cap is
/// half of ours.
pub fn pauses() -> ExponentialBackoff {
    ExponentialBuilder::new()
        .with_min_delay(SHORTEST)
        .with_max_delay(LONGEST / 2)
        .with_jitter()
        .without_max_times()
        .build()
}

impl Retry {
    /// No fault so far.
    pub fn new() -> Self {
        Self { pauses: pauses(), pending: None }
    }

    /// When to repeat the pass that ended at `now` with `outcome`; `None`: no need. `retried`: it was a retry itself.
    pub fn after(&mut self, outcome: &Outcome, retried: bool, now: Instant) -> Option<Instant> {
        if !outcome.faults.iter().any(|fault| worth_a_retry(fault.class)) {
            *self = Self::new();
        } else if retried || self.pending.is_none() {
            self.pending = Some(now + self.pauses.next().unwrap_or(LONGEST).min(LONGEST));
        }
        self.pending
    }
}

impl Default for Retry {
    fn default() -> Self {
        Self::new()
    }
}

fn worth_a_retry(class: Class) -> bool {
    match class {
        Class::Retry | Class::NeedsHuman => true,
        Class::WaitForChange => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fault::Noted;

    fn failed(class: Class) -> Outcome {
        Outcome::failed(Noted { class, message: "no".into(), late: false })
    }

    #[tokio::test(start_paused = true)]
    async fn pauses_grow_from_2_to_30_seconds_with_jitter_and_never_end() {
        let mut seen = Vec::new();
        let (mut retry, now) = (Retry::new(), Instant::now());
        for _ in 0..200 {
            seen.push(retry.after(&failed(Class::Retry), true, now).unwrap() - now);
        }
        assert!(seen.iter().all(|pause| (SHORTEST..=LONGEST).contains(pause)), "{seen:?}");
        assert!(seen[0] <= SHORTEST * 2);
        assert!(seen[5..].iter().all(|pause| *pause >= LONGEST / 2));
        assert!(seen[5..].iter().any(|pause| *pause != seen[5]), "no jitter");
    }

    #[tokio::test(start_paused = true)]
    async fn events_neither_postpone_nor_lengthen_a_retry() {
        let (mut retry, now) = (Retry::new(), Instant::now());
        let first = retry.after(&failed(Class::NeedsHuman), false, now);
        for milliseconds in 1..100 {
            let later = now + Duration::from_millis(milliseconds);
            assert_eq!(retry.after(&failed(Class::Retry), false, later), first);
        }
        assert_eq!(retry.after(&Outcome::default(), false, now), None);
        assert_eq!(retry.after(&failed(Class::WaitForChange), false, now), None);
    }
}
