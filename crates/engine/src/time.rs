//! Moments as values. It refuses to read a clock: callers bring the boot id and the boot-time clock.

use std::time::Duration;

/// A moment of one boot: neither a restart of a process nor a step of the wall clock moves it.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct BootTime {
    /// The kernel's random boot id.
    pub boot_id: String,
    /// Time since boot, suspend included, in whole milliseconds where it is stored.
    pub since_boot: Duration,
}

impl BootTime {
    /// How long ago `earlier` was, or `None` if it belongs to another boot (its age then counts afresh).
    pub fn since(&self, earlier: &BootTime) -> Option<Duration> {
        (self.boot_id == earlier.boot_id).then(|| self.since_boot.saturating_sub(earlier.since_boot))
    }
}

/// The moment of a pass.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
pub struct Now {
    /// For ages.
    pub boot: BootTime,
    /// For people, as RFC 3339; never compared.
    pub wall: String,
}
