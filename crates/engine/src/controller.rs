//! The controller's decisions.
