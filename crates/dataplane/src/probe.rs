//! Whether links work, from probes that peers answer. It refuses to believe bytes that were sent, or the age of a
//! handshake.
//!
//! A probe is a UDP datagram of 24 bytes to port [`PORT`] of the peer's tunnel address, sent out of the link's device
//! whatever the routes say, and answered on the device where it arrived. See [`Timing`] for how often and how many.

mod evidence;
mod prober;
mod session;
pub(crate) mod socket;
mod state;
pub(crate) mod wire;

pub use prober::{Prober, ProberConfig, Target};
pub use state::Timing;

/// The UDP port at which every gateway answers probes, on its tunnel address. A host firewall beside ours has to let it
/// in from our devices.
pub const PORT: u16 = 51799;
