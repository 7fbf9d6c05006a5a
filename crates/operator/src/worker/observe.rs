//! Verb 1, observe: reads the control store, the records and the host at once. It refuses to take a failed read of the
//! control store for an empty one; without records or host there is no pass.

use spanwire_engine::{
    Class, GatewayName, Now, Unreadable,
    port::{Devices, LocalStore, WorkerStore, WorkerView},
    worker::{self, Host, Recorded},
};

use super::{HOST_LIMIT, Ports, Probes, STORE_LIMIT};
use crate::fault::{Noted, limited};

/// What was read.
#[derive(Debug)]
pub struct Fetched {
    /// When.
    pub now: Now,
    /// The control store, or why it can't be read.
    pub view: Result<WorkerView, Noted>,
    /// The local store.
    pub recorded: Recorded,
    /// The host, with evidence and addresses of names.
    pub host: Host,
}

/// Reads everything.
///
/// # Errors
/// Records, host or clock can't be read: nothing can be concluded.
pub async fn observe<C: WorkerStore, L: LocalStore, D: Devices, P: Probes>(
    me: &GatewayName,
    ports: &Ports<C, L, D, P>,
) -> Result<Fetched, Noted> {
    let recorded = recorded(ports).await?;
    let (view, host) = tokio::join!(control(me, &ports.control, &recorded), host(ports));
    let now = ports.clock.now().map_err(|error| Noted::new("cannot read the clock", &error))?;
    Ok(Fetched { now, view, recorded, host: host? })
}

/// Reads the control store; an intent that is older than the one on record is asked for again before it counts.
async fn control<C: WorkerStore>(
    me: &GatewayName,
    control: &C,
    recorded: &Recorded,
) -> Result<WorkerView, Noted> {
    let networks = recorded.intents.keys().chain(recorded.links.keys().map(|link| &link.network));
    control.follow(networks.cloned().collect());
    let view = limited("cannot read the control store", STORE_LIMIT, control.read(me)).await?;
    let older = worker::older_intents(&view, recorded);
    if older.is_empty() {
        return Ok(view);
    }
    limited("cannot read the control store again", STORE_LIMIT, control.reread(me, &older)).await
}

/// Reads the records.
///
/// # Errors
/// They can't be read.
pub async fn recorded<C, L: LocalStore, D, P>(ports: &Ports<C, L, D, P>) -> Result<Recorded, Noted> {
    limited("cannot read the records of this worker", STORE_LIMIT, ports.local.read()).await
}

/// Reads the host and joins what probes and resolver know.
///
/// # Errors
/// It can't be read.
pub async fn host<C, L, D: Devices, P: Probes>(ports: &Ports<C, L, D, P>) -> Result<Host, Noted> {
    let mut host = limited("cannot read this host", HOST_LIMIT, ports.devices.observe()).await?;
    host.evidence = ports.probes.evidence();
    host.resolved = ports.resolver.resolved();
    Ok(host)
}

impl Fetched {
    /// The faults of the read: the control store's, if it failed, and every object that could not be read.
    pub fn faults(&self) -> Vec<Noted> {
        let unreadable = |object: &Unreadable| Noted {
            class: Class::WaitForChange,
            message: format!("{} {} can't be read: {}", object.kind, object.name, object.cause),
            late: false,
        };
        let records = self.recorded.unreadable.iter().map(unreadable);
        match &self.view {
            Ok(view) => view.unreadable.iter().map(unreadable).chain(records).collect(),
            Err(fault) => std::iter::once(fault.clone()).chain(records).collect(),
        }
    }
}
