//! Verb 1, observe: reads the control store from one moment. It refuses to conclude anything from a failed read.

use spanwire_engine::{
    Now,
    port::{ControlView, ControllerStore},
};

use super::{Controller, STORE_LIMIT};
use crate::fault::{Noted, limited};

/// What was read.
#[derive(Debug)]
pub struct Fetched {
    /// When.
    pub now: Now,
    /// The store.
    pub view: ControlView,
}

/// Reads everything.
///
/// # Errors
/// Store or clock can't be read: there is no pass.
pub async fn observe<S: ControllerStore>(controller: &Controller<S>) -> Result<Fetched, Noted> {
    let view = limited("cannot read the control store", STORE_LIMIT, controller.store.read()).await?;
    let now = controller.clock.now().map_err(|error| Noted::new("cannot read the clock", &error))?;
    Ok(Fetched { now, view })
}
