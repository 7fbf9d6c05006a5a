//! Where declared state and records live: a directory of files, or an API server. It refuses policy: it reads, joins
//! and writes what the engine's ports name, and says what it could not read.
//!
//! ```
//! use spanwire_engine::port::ControllerStore;
//! use spanwire_store::dir::Controller;
//!
//! # let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
//! # let folder = tempfile::tempdir().unwrap();
//! # let folder = folder.path();
//! # runtime.block_on(async {
//! std::fs::create_dir(folder.join("gateways"))?;
//! std::fs::write(
//!     folder.join("gateways/hub-a.yaml"),
//!     "apiVersion: spanwire.dev/v1alpha1\n\
//!      kind: Gateway\n\
//!      metadata: {name: hub-a}\n\
//!      spec: {subnets: [10.1.0.0/24], maintainance: true}\n",
//! )?;
//! let view = Controller::open(folder)?.read().await?;
//! assert!(view.gateways.is_empty(), "what cannot be read is unknown");
//! assert!(view.unreadable[0].cause.ends_with(
//!     "gateways/hub-a.yaml: line 4, column 32: spec: unknown field \"maintainance\", did you mean \"maintenance\"?"
//! ));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! # }).unwrap();
//! ```
#![warn(missing_docs)]

#[cfg(feature = "cluster")]
pub mod cluster;
mod conflict;
mod convert;
pub mod dir;
mod managed;
mod place;
mod yaml;

pub use conflict::Conflict;
pub use place::{Place, PlaceError};
