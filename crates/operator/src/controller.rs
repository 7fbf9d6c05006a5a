//! The controller: every declared network becomes its status and one intent a gateway. Five verbs, of which observe and
//! apply touch the world; it refuses to decide anything itself, and to run beside another controller of the same store.

pub mod apply;
pub mod backends;
pub mod heard;
pub mod observe;
pub mod plan;
pub mod report;
pub mod start;
pub mod told;
pub mod validate;

use std::time::Duration;

use spanwire_engine::port::ControllerStore;

use backends::Backends;

use crate::{
    clock::Clock,
    driver::{Outcome, Reconciler},
    events::Events,
    health::Health,
    metrics::changes::Networks,
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
    /// Where it is said that the store was read.
    pub health: Health,
    /// The networks as they are shown to who scrapes.
    pub networks: Networks,
    /// What gateways said of their WireGuard.
    pub backends: Backends,
}

impl<S: ControllerStore> Reconciler for Controller<S> {
    async fn pass(&mut self) -> Outcome {
        let fetched = match observe::observe(self).await {
            Ok(fetched) => fetched,
            Err(fault) => return Outcome::failed(fault),
        };
        self.health.looked();
        traces::link(&fetched.view.traces);
        self.backends.look(&fetched.view.gateways).into_iter().for_each(|turn| self.events.tell(turn));
        let planned = plan::plan(validate::validate(fetched));
        let applied = apply::apply(&self.store, &self.events, planned).await;
        self.networks.note(&applied);
        report::report(applied)
    }
}
