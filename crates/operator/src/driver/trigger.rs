//! Events that start a pass. It refuses to carry content: a pass reads everything anew, so events may merge but none may
//! get lost, also during a pass.

use std::{
    collections::BTreeSet,
    sync::{Arc, Mutex, PoisonError},
};

use spanwire_engine::port::Changes;
use tokio::{sync::Notify, task::JoinSet};

/// Gathers events between passes.
#[derive(Debug, Clone, Default)]
pub struct Trigger(Arc<Inner>);

#[derive(Debug, Default)]
struct Inner {
    notify: Notify,
    events: Mutex<BTreeSet<&'static str>>,
}

impl Trigger {
    /// Asks for a pass. If one runs, another follows it.
    pub fn fire(&self, event: &'static str) {
        self.0.events.lock().unwrap_or_else(PoisonError::into_inner).insert(event);
        self.0.notify.notify_one();
    }

    /// Resolves when a pass was asked for since the last call of [`Trigger::take`].
    pub async fn fired(&self) {
        while self.0.events.lock().unwrap_or_else(PoisonError::into_inner).is_empty() {
            self.0.notify.notified().await;
        }
    }

    /// What asked for the pass that begins now.
    pub fn take(&self) -> BTreeSet<&'static str> {
        std::mem::take(&mut *self.0.events.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Turns every change of `source` into `event`, as long as `tasks` lives.
    pub fn watch(
        &self,
        tasks: &mut JoinSet<()>,
        event: &'static str,
        mut source: impl Changes + Send + 'static,
    ) {
        let trigger = self.clone();
        tasks.spawn(async move {
            loop {
                source.changed().await;
                trigger.fire(event);
            }
        });
    }
}
