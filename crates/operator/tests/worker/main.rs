//! The worker over twins of its ports: its passes and its modes. They refuse real stores and devices.

mod host;
mod modes;
mod pass;
mod stores;
mod world;
