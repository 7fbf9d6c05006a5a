//! Time for packets that are already inside a device, or on their way to it, when their route or port moves away. It refuses to hold up a
//! removal for longer than that.

use std::{
    sync::{Mutex, PoisonError},
    time::Duration,
};

use tokio::time::Instant;

/// How long a packet may be under way inside this host: a busy userspace device empties its queue well within it.
const UNDER_WAY: Duration = Duration::from_millis(300);

/// When a route or a port was last changed here.
#[derive(Default)]
pub(super) struct Drain(Mutex<Option<Instant>>);

impl Drain {
    /// A route or a port was changed.
    pub(super) fn moved(&self) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(Instant::now());
    }

    /// Returns when what was sent before the last change has left.
    pub(super) async fn wait(&self) {
        let moved = *self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(moved) = moved {
            tokio::time::sleep_until(moved + UNDER_WAY).await;
        }
    }
}
