//! Verb 4, apply: takes the steps in order, those together that may stand in any, and reads back. After a failed step it refuses to take anything
//! away; without the packet filter, or with a host that hangs, it refuses to go on.

use std::collections::BTreeMap;

use futures::{StreamExt as _, stream};
use spanwire_engine::{
    LinkId, Now,
    port::{Devices, LocalStore, WorkerStore, Written},
    worker::{Host, HostStep, PeerConfig, RecordStep, Recorded, RecordedLink, Report, Step},
};
use tokio::time::{Instant, timeout};

use super::{
    HOST_LIMIT, Ports, Probes, STORE_LIMIT, blame, describe,
    observe::{self, Fetched},
    plan::Plan,
    validate::Validated,
};
use crate::{
    fault::{Noted, late, limited},
    ledger::{Ledger, Target},
    metrics::taken::{Fate, Taken},
};

/// How many steps are on their way at once.
const AT_ONCE: usize = 8;

/// What came of a plan.
#[derive(Debug)]
pub struct Applied {
    /// What the plan followed from, with records and host read again.
    pub validated: Validated,
    /// What the plan left undone.
    pub report: Report,
    /// What was written.
    pub ledger: Ledger,
    /// Links for which a step failed, with the cause.
    pub failed: BTreeMap<LinkId, String>,
    /// Everything that failed.
    pub faults: Vec<Noted>,
    /// What became of the steps.
    pub taken: Taken,
}

/// Takes the steps, then reads records and host again where anything was tried.
pub async fn apply<C: WorkerStore, L: LocalStore, D: Devices, P: Probes>(
    ports: &Ports<C, L, D, P>,
    plan: Plan,
) -> Applied {
    let Plan { mut validated, steps, report } = plan;
    let mut tally = Tally::default();
    for group in steps.chunk_by(go_together) {
        let allowed: Vec<&Step> = group.iter().filter(|step| tally.allows(step)).collect();
        for (step, outcome) in allowed.iter().zip(take(ports, &allowed).await) {
            tally.note(step, outcome, &validated.fetched.recorded, &steps);
        }
    }
    if !steps.is_empty() {
        read_back(ports, &mut validated.fetched, &mut tally.faults).await;
    }
    if tally.skipped > 0 {
        tracing::warn!(skipped = tally.skipped, "steps left for the next pass because others failed");
    }
    let Tally { ledger, failed, faults, taken, stopped: _, host_is_behind: _, skipped: _ } = tally;
    Applied { validated, report, ledger, failed, faults, taken }
}

/// The peers of one device, and records of links with the packet filter before them: both have to stand before a device
/// is touched, and neither needs the other.
fn go_together(one: &Step, other: &Step) -> bool {
    match (peer(one), peer(other)) {
        (Some(one), Some(other)) => one.device == other.device,
        _ => is_link_record(other) && (is_link_record(one) || is_firewall(one)),
    }
}

fn is_link_record(step: &Step) -> bool {
    matches!(step, Step::Record(RecordStep::Link(_)))
}

fn peer(step: &Step) -> Option<&PeerConfig> {
    match step {
        Step::Host(HostStep::Peer(peer)) => Some(peer),
        Step::Host(_) | Step::Record(_) => None,
    }
}

/// Takes steps that go together, each under the time limit of one; the answers are in their order.
async fn take<C, L: LocalStore, D: Devices, P>(
    ports: &Ports<C, L, D, P>,
    steps: &[&Step],
) -> Vec<Result<Written, Noted>> {
    match steps {
        [first, _, ..] if peer(first).is_some() => take_peers(ports, steps).await,
        _ => stream::iter(steps).map(|step| take_one(ports, step)).buffered(AT_ONCE).collect().await,
    }
}

async fn take_one<C, L: LocalStore, D: Devices, P>(
    ports: &Ports<C, L, D, P>,
    step: &Step,
) -> Result<Written, Noted> {
    let (what, began) = (describe::step(step), Instant::now());
    let outcome = match step {
        Step::Record(step) => limited(&what, STORE_LIMIT, ports.local.apply(step)).await,
        Step::Host(step) => limited(&what, HOST_LIMIT, ports.devices.apply(step)).await,
    };
    tracing::trace!(elapsed = ?began.elapsed(), "{what}");
    outcome
}

async fn take_peers<C, L, D: Devices, P>(
    ports: &Ports<C, L, D, P>,
    steps: &[&Step],
) -> Vec<Result<Written, Noted>> {
    let peers: Vec<PeerConfig> = steps.iter().filter_map(|step| peer(step).cloned()).collect();
    match timeout(HOST_LIMIT, ports.devices.apply_peers(&peers)).await {
        Ok(answers) => steps
            .iter()
            .zip(answers)
            .map(|(step, answer)| answer.map_err(|error| Noted::new(&describe::step(step), &error)))
            .collect(),
        Err(elapsed) => {
            steps.iter().map(|step| Err(late(&describe::step(step), HOST_LIMIT, &elapsed))).collect()
        }
    }
}

#[derive(Default)]
struct Tally {
    ledger: Ledger,
    failed: BTreeMap<LinkId, String>,
    faults: Vec<Noted>,
    taken: Taken,
    stopped: bool,
    /// A step to the host failed or was left: what the packet filter protects is still there.
    host_is_behind: bool,
    skipped: usize,
}

impl Tally {
    fn allows(&mut self, step: &Step) -> bool {
        let takes_away = step.is_destructive() || (self.host_is_behind && is_firewall(step));
        let allowed = !self.stopped && (self.faults.is_empty() || !takes_away);
        if !allowed {
            self.skipped += 1;
            self.taken.note(describe::kind(step), Fate::Left);
        }
        self.host_is_behind |= !allowed && matches!(step, Step::Host(_));
        allowed
    }

    fn note(&mut self, step: &Step, outcome: Result<Written, Noted>, recorded: &Recorded, steps: &[Step]) {
        let fate = match &outcome {
            Ok(Written::Changed) => Fate::Changed,
            Ok(Written::Same) => Fate::Same,
            Err(_) => Fate::Failed,
        };
        self.taken.note(describe::kind(step), fate);
        match outcome {
            Ok(written) => self.ledger.note(target(step), written, || describe::step(step)),
            Err(fault) => {
                self.stopped |= fault.late || is_firewall(step);
                self.host_is_behind |= matches!(step, Step::Host(_));
                for link in blame::links(step, &known(recorded, steps)) {
                    self.failed.entry(link).or_insert_with(|| fault.message.clone());
                }
                self.faults.push(fault);
            }
        }
    }
}

fn is_firewall(step: &Step) -> bool {
    matches!(step, Step::Host(HostStep::Firewall(_)))
}

fn target(step: &Step) -> Target {
    match step {
        Step::Record(_) => Target::Record,
        Step::Host(_) => Target::Device,
    }
}

/// The links as recorded before, or as this plan records them.
fn known<'a>(recorded: &'a Recorded, steps: &'a [Step]) -> BTreeMap<&'a LinkId, &'a RecordedLink> {
    let planned = steps.iter().filter_map(|step| match step {
        Step::Record(RecordStep::Link(link)) => Some((&link.id, &**link)),
        Step::Record(RecordStep::Intent(_) | RecordStep::ForgetLink(_) | RecordStep::ForgetIntent(_))
        | Step::Host(_) => None,
    });
    recorded.links.iter().chain(planned).collect()
}

/// What can't be read again stays as it was read before: the next pass is due anyway.
async fn read_back<C: WorkerStore, L: LocalStore, D: Devices, P: Probes>(
    ports: &Ports<C, L, D, P>,
    fetched: &mut Fetched,
    faults: &mut Vec<Noted>,
) {
    let Fetched { now: _, view: _, recorded, host } = fetched;
    let (records, devices) = tokio::join!(observe::recorded(ports), observe::host(ports));
    keep::<Recorded>(recorded, records, faults);
    keep::<Host>(host, devices, faults);
}

fn keep<T>(place: &mut T, read: Result<T, Noted>, faults: &mut Vec<Noted>) {
    match read {
        Ok(value) => *place = value,
        Err(fault) => faults.push(fault),
    }
}

impl Applied {
    /// The moment of the pass.
    pub fn now(&self) -> &Now {
        &self.validated.fetched.now
    }
}
