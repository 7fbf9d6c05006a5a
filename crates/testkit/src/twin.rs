//! Twins of the engine's ports: the same answers as the real ones, in memory. They refuse to be kinder: a step that the
//! kernel would refuse is refused here.

pub mod host;
pub mod records;

pub use host::apply_to_host;
pub use records::apply_to_records;
