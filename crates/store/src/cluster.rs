//! A namespace of an API server as a store: lists and watches give the views, server-side apply makes the writes. It
//! refuses to answer from a list that is not complete, and while a server can't be heard.

mod apply;
mod call;
mod connection;
mod controller;
mod error;
mod events;
mod local;
mod look;
mod mirror;
mod requests;
mod rights;
mod view;
mod worker;

pub use call::{Verb, call};
pub use connection::{Connection, News};
pub use controller::Controller;
pub use error::{Error, words};
pub use events::{EventWriter, Happening};
pub use local::Local;
pub use look::look;
pub use requests::{Answer, Asked, Requests};
pub use worker::Worker;
