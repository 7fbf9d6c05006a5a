//! The decisions on a whole network of twins: controller, workers, hosts and the links between them, step by step. It
//! refuses clocks and chance: time is a number, and what connects is said.
#![allow(clippy::disallowed_methods, reason = "golden scripts are read from files, and rewritten when asked")]
#![allow(clippy::panic, clippy::unwrap_used, reason = "helpers of tests fail by panic")]

mod cases;
mod kill;
mod laws;
mod script;
mod scripts;
mod world;
