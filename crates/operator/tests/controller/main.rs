//! The controller over a twin of its store. It refuses a real one.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test fails by panicking")]

mod pass;
mod store;
