//! A moment of one boot, as it is stored. It refuses wall clocks: a step of the clock must not move an age.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::Duration;

/// A moment on the boot-time clock of one boot.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct BootMoment {
    /// The kernel's random boot id.
    #[serde(rename = "bootID")]
    #[schemars(length(max = 64))]
    pub boot_id: String,
    /// Time since boot, suspend included.
    #[serde(rename = "bootTime")]
    pub boot_time: Duration,
}
