//! The dataplane between real network namespaces. It refuses to touch the network of the machine that it runs on.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking, its helpers too")]

mod devices;
mod filter;
mod kernel;
mod peers;
mod probes;
mod rest;
mod rig;
mod smoke;
