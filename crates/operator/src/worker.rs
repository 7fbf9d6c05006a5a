//! The worker: one host's tunnels follow the intents for its gateway. Five verbs, of which observe, apply and report
//! touch the world; it refuses to decide anything itself, and to run beside another worker of the same host.

pub mod apply;
pub mod blame;
pub mod describe;
pub mod dry_run;
pub mod facts;
pub mod identity;
pub mod local_host;
pub mod observe;
pub mod own_key;
pub mod plan;
pub mod probing;
pub mod report;
pub mod start;
pub mod targets;
pub mod told;
pub mod uninstall;
pub mod validate;

use std::{collections::BTreeMap, net::IpAddr, time::Duration};

use spanwire_dataplane::probe::Target;
use spanwire_engine::{
    GatewayName, LinkId, NetworkName, WorkerStatus,
    port::{Devices, LocalStore, WorkerStore},
    worker::{Evidence, Settings},
};

use crate::{
    clock::Clock,
    driver::{Outcome, Reconciler},
    events::Events,
    metrics::links::Measures,
    resolver::Resolver,
    traces,
};
use identity::Identity;

/// How long one call to a store may take.
pub const STORE_LIMIT: Duration = Duration::from_secs(10);
/// How long one call to the host may take.
pub const HOST_LIMIT: Duration = Duration::from_secs(10);

/// Where the evidence on links comes from.
pub trait Probes {
    /// Says which links are probed from now on.
    fn set_targets(&self, targets: Vec<Target>);
    /// What is known of each link now.
    fn evidence(&self) -> BTreeMap<LinkId, Evidence>;
}

/// The worlds that a worker touches.
#[derive(Debug)]
pub struct Ports<C, L, D, P> {
    /// The control store.
    pub control: C,
    /// Its own records.
    pub local: L,
    /// The host.
    pub devices: D,
    /// Evidence on links.
    pub probes: P,
    /// Addresses of host names.
    pub resolver: Resolver,
    /// The clocks of the host.
    pub clock: Clock,
}

/// Where the host's own facts come from.
pub trait Facts {
    /// What the host says of itself now.
    fn host_facts(&self) -> impl Future<Output = HostFacts>;
}

/// What a host says of itself besides its key and ports.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HostFacts {
    /// The address that others dial unless the Gateway advertises another.
    pub endpoint: Option<IpAddr>,
    /// Whether the kernel has WireGuard; the words say why not.
    pub kernel: Result<(), String>,
}

/// The reconciler of one host.
pub struct Worker<C, L, D, P> {
    /// The gateway that this host is.
    pub me: GatewayName,
    /// Its key.
    pub identity: Identity,
    /// Ranges of ports and tables.
    pub settings: Settings,
    /// The worlds that it touches.
    pub ports: Ports<C, L, D, P>,
    /// Where people are told what happened to links.
    pub events: Events,
    /// Where passes say what they came to.
    pub measures: Measures,
    /// The statuses last reported: a hint for when the control store can't be read.
    pub said: BTreeMap<NetworkName, WorkerStatus>,
}

impl<C: WorkerStore, L: LocalStore, D: Devices + Facts, P: Probes> Reconciler for Worker<C, L, D, P> {
    async fn pass(&mut self) -> Outcome {
        let fetched = match observe::observe(&self.me, &self.ports).await {
            Ok(fetched) => fetched,
            Err(fault) => return Outcome::failed(fault),
        };
        if let Ok(view) = &fetched.view {
            traces::link(&view.traces);
        }
        let validated = match validate::validate(&self.me, &mut self.identity, &self.settings, fetched).await
        {
            Ok(validated) => validated,
            Err(fault) => return Outcome::failed(fault),
        };
        let applied = apply::apply(&self.ports, plan::plan(validated)).await;
        report::report(self, applied).await
    }
}
