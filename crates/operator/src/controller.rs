//! The controller: every declared network becomes its status and one intent a gateway. Five verbs, of which observe and
//! apply touch the world; it refuses to decide anything itself, and to run beside another controller of the same store.

pub mod apply;
pub mod observe;
pub mod plan;
pub mod report;
pub mod start;
pub mod told;
pub mod validate;

use std::time::Duration;

use spanwire_engine::port::ControllerStore;

use crate::{
    clock::Clock,
    driver::{Outcome, Reconciler},
    events::Events,
    traces,
};

/// How long one call to the store may take.
pub const STORE_LIMIT: Duration = Duration::from_secs(10);

/// The reconciler of one control store.
#[derive(Debug)]
pub struct Controller<S> {
    /// The store.
    pub store: S,
    /// The clocks of this host.
    pub clock: Clock,
    /// Where people are told what happened.
    pub events: Events,
}

impl<S: ControllerStore> Reconciler for Controller<S> {
    async fn pass(&mut self) -> Outcome {
        let fetched = match observe::observe(self).await {
            Ok(fetched) => fetched,
            Err(fault) => return Outcome::failed(fault),
        };
        traces::link(&fetched.view.traces);
        let planned = plan::plan(validate::validate(fetched));
        report::report(apply::apply(&self.store, &self.events, planned).await)
    }
}
