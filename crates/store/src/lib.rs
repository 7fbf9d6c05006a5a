//! Where declared state and records live. It refuses policy: it reads, joins and writes what the engine's ports name.

#![warn(missing_docs)]

mod convert;
pub mod dir;
mod yaml;
