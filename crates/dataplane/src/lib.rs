//! placeholder, replaced below
mod control;
mod diff;
pub mod key;
pub mod local;
mod netlink;
mod nft;
pub mod probe;
pub mod process;
mod sysctl;
mod uapi;
pub use local::{LocalDevices, Options};
