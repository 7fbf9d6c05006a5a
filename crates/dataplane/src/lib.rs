//! placeholder, replaced below
mod control;
mod diff;
pub mod key;
mod netlink;
pub mod probe;
pub mod process;
mod uapi;
