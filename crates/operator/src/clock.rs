//! The clocks of a pass: boot id, boot-time clock, wall time. It refuses to be read by decisions: they get a value.

use std::{fs, time::Duration};

use nix::time::{ClockId, clock_gettime};
use spanwire_engine::{BootTime, Class, Now, port};

const BOOT_ID: &str = "/proc/sys/kernel/random/boot_id";

/// Why a clock could not be read.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The boot id could not be read.
    #[error("cannot read the boot id from {BOOT_ID}: is /proc mounted?")]
    BootId(#[source] std::io::Error),
    /// The boot-time clock could not be read.
    #[error("cannot read the boot-time clock")]
    BootTime(#[source] nix::Error),
}

impl port::Fault for Error {
    fn class(&self) -> Class {
        match self {
            Error::BootId(_) | Error::BootTime(_) => Class::NeedsHuman,
        }
    }
}

/// Reads the clocks of this host; the boot id is read once.
#[derive(Debug, Clone)]
pub struct Clock {
    boot_id: String,
}

impl Clock {
    /// A clock for the boot that is running.
    ///
    /// # Errors
    /// The boot id can't be read.
    pub fn new() -> Result<Self, Error> {
        let boot_id = fs::read_to_string(BOOT_ID).map_err(Error::BootId)?.trim().to_owned();
        Ok(Self { boot_id })
    }

    /// The moment now, in whole milliseconds since boot.
    ///
    /// # Errors
    /// The boot-time clock can't be read.
    pub fn now(&self) -> Result<Now, Error> {
        let time = Duration::from(clock_gettime(ClockId::CLOCK_BOOTTIME).map_err(Error::BootTime)?);
        let millis = u64::try_from(time.as_millis()).unwrap_or(u64::MAX);
        let boot = BootTime { boot_id: self.boot_id.clone(), since_boot: Duration::from_millis(millis) };
        Ok(Now { boot, wall: wall() })
    }
}

/// The wall time in UTC as RFC 3339, to the second.
fn wall() -> String {
    jiff::Timestamp::now().strftime("%Y-%m-%dT%H:%M:%SZ").to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn boot_time_goes_on_and_wall_time_is_rfc_3339() {
        let clock = Clock::new().unwrap();
        let (first, second) = (clock.now().unwrap(), clock.now().unwrap());
        assert!(second.boot.since(&first.boot).is_some());
        assert!(second.boot.since_boot >= first.boot.since_boot);
        assert_eq!(first.boot.since_boot.subsec_nanos() % 1_000_000, 0);
        assert!(first.wall.parse::<jiff::Timestamp>().is_ok(), "{}", first.wall);
        assert!(first.wall.ends_with('Z'));
    }
}
