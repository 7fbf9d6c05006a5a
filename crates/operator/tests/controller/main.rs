//! The controller over a twin of its store. It refuses a real one.

mod pass;
mod store;
