//! The built program on hosts of a network lab, with real devices. The tests refuse to run where no namespaces can be
//! made, and say so.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test fails by panicking")]

mod acceptance;
mod collector;
mod faults;
mod fleet;
mod life;
mod metrics;
mod names;
mod once;
mod rights;
mod scale;
mod scrape;
mod site;
mod start_up;
mod sysctl;
