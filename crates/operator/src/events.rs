//! Kubernetes Events, written beside the passes. It refuses to hold one up or to fail it: what can't be written in time is
//! said in the log and dropped, and a store of files has none.

use std::time::Duration;

use spanwire_store::cluster::EventWriter;
use tokio::{sync::mpsc, task::JoinHandle, time::timeout};

pub use spanwire_store::cluster::Happening;

/// How many may wait to be written.
const WAITING: usize = 256;
/// How long the write of one may take.
const LIMIT: Duration = Duration::from_secs(5);
/// How long those that wait may hold up the end of a process.
const LEAVE: Duration = Duration::from_secs(1);

/// Where passes say what happened. Clones say it to the same place.
#[derive(Debug, Clone, Default)]
pub struct Events(Option<mpsc::Sender<Happening>>);

impl Events {
    /// Nobody listens.
    pub fn none() -> Self {
        Self::default()
    }

    /// Whoever holds the other end listens.
    pub fn channel() -> (Self, mpsc::Receiver<Happening>) {
        let (sender, receiver) = mpsc::channel(WAITING);
        (Self(Some(sender)), receiver)
    }

    /// Says it, and does not wait.
    pub fn tell(&self, happening: Happening) {
        if let Some(Err(fault)) = self.0.as_ref().map(|sender| sender.try_send(happening)) {
            tracing::debug!(%fault, "an Event is dropped");
        }
    }
}

/// Writes what is said, in order.
#[derive(Debug)]
pub struct Writing(Option<JoinHandle<()>>);

/// Events by `writer`; without one nobody listens. Call it within a Tokio runtime.
pub fn begin(writer: Option<EventWriter>) -> (Events, Writing) {
    let Some(writer) = writer else { return (Events::none(), Writing(None)) };
    let (events, mut receiver) = Events::channel();
    let task = tokio::spawn(async move {
        while let Some(happening) = receiver.recv().await {
            match timeout(LIMIT, writer.write(&happening)).await {
                Ok(Ok(())) => {}
                Ok(Err(fault)) => tracing::warn!(reason = happening.reason, "{fault}"),
                Err(_) => tracing::warn!(reason = happening.reason, "an Event could not be written in time"),
            }
        }
    });
    (events, Writing(Some(task)))
}

impl Writing {
    /// Waits, for a second at most, until all that was said is written. `events`: the last one that could say more.
    pub async fn finish(self, events: Events) {
        drop(events);
        let Some(mut task) = self.0 else { return };
        if timeout(LEAVE, &mut task).await.is_err() {
            task.abort();
        }
    }
}
