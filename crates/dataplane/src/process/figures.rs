//! What the process holds, in numbers. It refuses names and addresses: those are for `wg show`.

use std::{sync::Arc, time::Duration};

use super::registry::Registry;

/// A peer that probes is one whose last question is younger than this.
const ASKING: Duration = Duration::from_secs(4);

/// What is held at one moment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Held {
    /// Userspace devices.
    pub devices: u64,
    /// Peers whose probes arrive, on devices of either backend.
    pub probing_peers: u64,
    /// Requests since the start that changed a userspace device.
    pub changes: u64,
}

/// A way to look at the process while it runs.
#[derive(Clone)]
pub struct Figures(Arc<Registry>);

impl Figures {
    pub(super) fn of(registry: Arc<Registry>) -> Self {
        Self(registry)
    }

    /// What it holds now; waits while a device is being made or removed.
    pub async fn held(&self) -> Held {
        let (devices, changes) = self.0.stats().await;
        let asks = |age: u64| Duration::from_millis(age) < ASKING;
        let probing = self.0.heard().iter().filter(|heard| asks(heard.age)).count();
        Held { devices: devices.len() as u64, probing_peers: probing as u64, changes }
    }
}
