//! Every interleaving of a change, explored with the real engine: the controller's plan, the workers' plans step by
//! step, late intents, handshakes in any order, restarts, one broken link, a dead member, edits half-way, time-outs. It
//! refuses to re-implement a decision: only the world around the decisions is modelled.
//!
//! In every state each live pair must have a path as long as nothing broke, and no packet may circle, whatever broke.
//! Every end must be the declared one. A [`Rule`] taken away must give a counter-example.

mod control;
mod fib;
mod hosts;
mod intern;
mod rules;
mod search;
mod setup;
mod world;

pub use rules::Rule;
pub use search::{Outcome, explore};
pub use setup::{Declaration, Setup};
