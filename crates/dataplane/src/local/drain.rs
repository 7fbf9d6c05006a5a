//! Time for packets that are already inside a device when their route moves away from it. It refuses to hold up a
//! removal for longer than that.

use std::{
    sync::{Mutex, PoisonError},
    time::Duration,
};

use tokio::time::Instant;

/// How long a packet may be under way inside this host: a busy userspace device empties its queue well within it.
const UNDER_WAY: Duration = Duration::from_millis(300);

/// When a route was last changed here.
#[derive(Default)]
pub(super) struct Drain(Mutex<Option<Instant>>);

impl Drain {
    /// A route was changed.
    pub(super) fn route_moved(&self) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(Instant::now());
    }

    /// Returns when what was sent before the last change of a route has left.
    pub(super) async fn wait(&self) {
        let moved = *self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(moved) = moved {
            tokio::time::sleep_until(moved + UNDER_WAY).await;
        }
    }
}
