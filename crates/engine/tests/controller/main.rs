//! The controller's answers to declarations, by case id. It refuses a real store: views are values.
#![allow(clippy::panic, clippy::unwrap_used, reason = "helpers of tests fail by panic")]

mod declarations;
mod members;
mod store;
