//! x
pub(crate) mod socket;
pub(crate) mod wire;
/// The UDP port at which every gateway answers probes, on its tunnel address.
pub const PORT: u16 = 51799;
