//! The request to end: SIGTERM or SIGINT, and the short grace that a running pass gets. It refuses to remove anything.

use std::{io, time::Duration};

use tokio::{
    signal::unix::{SignalKind, signal},
    sync::watch,
    time::sleep,
};

/// How long a pass may go on after the request. The process ends within 5 s, this leaves time to close.
pub const GRACE: Duration = Duration::from_secs(3);

/// Knows whether the process was asked to end.
#[derive(Debug, Clone)]
pub struct Stop(watch::Receiver<bool>);

impl Stop {
    /// Listens for SIGTERM and SIGINT from now on.
    ///
    /// # Errors
    /// The handlers can't be installed.
    pub fn on_signals() -> io::Result<Self> {
        let (mut terminate, mut interrupt) =
            (signal(SignalKind::terminate())?, signal(SignalKind::interrupt())?);
        let (sender, receiver) = watch::channel(false);
        tokio::spawn(async move {
            tokio::select! {
                _ = terminate.recv() => tracing::info!("SIGTERM: ending, everything stays as it is"),
                _ = interrupt.recv() => tracing::info!("SIGINT: ending, everything stays as it is"),
            }
            let _ = sender.send(true);
            sender.closed().await;
        });
        Ok(Self(receiver))
    }

    /// A request that the caller makes by sending `true` (or by dropping the sender).
    pub fn by_hand() -> (watch::Sender<bool>, Self) {
        let (sender, receiver) = watch::channel(false);
        (sender, Self(receiver))
    }

    /// Resolves when the end was asked for.
    pub async fn requested(&self) {
        let mut receiver = self.0.clone();
        let _ = receiver.wait_for(|asked| *asked).await;
    }

    /// Resolves when the end was asked for and the grace is over.
    pub async fn overdue(&self) {
        self.requested().await;
        sleep(GRACE).await;
    }

    /// Whether the end was asked for.
    pub fn is_requested(&self) -> bool {
        *self.0.borrow()
    }
}
