//! The directory store: `<plural>/<name>.yaml` is an object, `<plural>/<name>.status.<owner>.yaml` what one owner says
//! of it. It refuses to rewrite what people edit, and to take what it cannot read for something that is not there.
//!
//! [`Controller`], [`Worker`] and [`Local`] are the three roles; each implements its port of the engine. [`Watch`]
//! waits for changes. docs/directory-store.md describes the files.

mod absence;
mod controller;
mod declaration;
mod document;
mod error;
mod file;
mod folder;
mod identity;
mod join;
mod layout;
mod local;
mod lock;
mod root;
mod watch;
mod worker;

pub use controller::Controller;
pub use declaration::{BadDeclaration, Declaration};
pub use error::Error;
pub use local::Local;
pub use watch::Watch;
pub use worker::Worker;
