//! When an object that was there counts as deleted. It refuses to believe the moment in which an editor has moved the
//! old file away and not yet written the new one.

use std::{
    collections::BTreeMap,
    sync::{Mutex, MutexGuard, PoisonError},
    time::{Duration, Instant, SystemTime},
};

use tokio::sync::Notify;

/// How long a file has to stay away.
pub(crate) const GRACE: Duration = Duration::from_secs(1);

/// Objects that are missing and were known.
#[derive(Debug, Default)]
pub(crate) struct Absences {
    missing: Mutex<BTreeMap<(&'static str, String), Missing>>,
    noted: Notify,
}

#[derive(Debug, Clone, Copy)]
struct Missing {
    since: Instant,
    /// Whether it was said that it is time to look again.
    said: bool,
}

impl Absences {
    /// Whether the object counts as deleted. `moved`: when an entry of its folder last came or went.
    pub(crate) fn is_settled(&self, kind: &'static str, name: &str, moved: Option<SystemTime>) -> bool {
        let quiet = moved.and_then(|moved| moved.elapsed().ok()).is_some_and(|quiet| quiet >= GRACE);
        let new = Missing { since: Instant::now(), said: false };
        let missing = *self.missing().entry((kind, name.to_owned())).or_insert(new);
        self.noted.notify_one();
        quiet || missing.since.elapsed() >= GRACE
    }

    /// The object is there (again), or was cleaned up.
    pub(crate) fn forget(&self, kind: &'static str, name: &str) {
        self.missing().remove(&(kind, name.to_owned()));
    }

    /// Resolves when an absence has become old enough to be looked at again, once for each.
    pub(crate) async fn next(&self) {
        loop {
            let first =
                self.missing().values().filter(|missing| !missing.said).map(|missing| missing.since).min();
            let Some(since) = first else {
                self.noted.notified().await;
                continue;
            };
            tokio::time::sleep_until((since + GRACE).into()).await;
            for missing in self.missing().values_mut().filter(|missing| missing.since <= since) {
                missing.said = true;
            }
            return;
        }
    }

    fn missing(&self) -> MutexGuard<'_, BTreeMap<(&'static str, String), Missing>> {
        self.missing.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
