//! The worker over twins of its ports: its passes and its modes. They refuse real stores and devices.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test fails by panicking")]

mod host;
mod kill;
mod measured;
mod modes;
mod pass;
mod stores;
mod world;
