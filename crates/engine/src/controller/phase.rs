//! Which phase a change of hubs or topology is in (design §5). Its state is what the network's status holds; it refuses
//! to go on before the phase's barrier holds or its time is over, and never goes back.

use std::time::Duration;

use crate::{
    Change, GatewayName, NetworkName, Now, OnTimeout, Phase, Published, Topology,
    port::{ControlView, NetworkView},
};

use super::{
    Membership, Report, Stage,
    barrier::{self, Lag},
    intents,
    validate::Valid,
};

/// Everything that a pass over one network looks at.
#[derive(Debug, Clone, Copy)]
pub struct Context<'a> {
    /// The store.
    pub view: &'a ControlView,
    /// The network's name.
    pub name: &'a NetworkName,
    /// The network as read.
    pub network: &'a NetworkView,
    /// The declaration, judged.
    pub valid: &'a Valid,
    /// Who takes part.
    pub members: &'a Membership,
    /// The moment of the pass.
    pub now: &'a Now,
}

/// Where a pass leaves a network.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Outcome {
    /// What the last finished change left.
    pub published: Published,
    /// The change that is running.
    pub change: Option<Change>,
    /// What is to be published now.
    pub stage: Stage,
    /// What is waited for.
    pub report: Report,
    /// Whether the time of the phase is over and `Hold` keeps it.
    pub held: bool,
}

/// The state that the declaration asks for: hub and standbys, those in maintenance at the end; nothing for a mesh.
///
/// # Errors
/// The active hub is a member that can't be accepted.
pub fn target(valid: &Valid, members: &Membership, view: &ControlView) -> Result<Published, String> {
    if valid.topology == Topology::Mesh {
        return Ok(Published { topology: Topology::Mesh, hubs: Vec::new() });
    }
    if let Some(hub) = valid.hub.as_ref().filter(|hub| !members.is_accepted(hub)) {
        let why = members.get(hub).and_then(|entry| entry.reason.clone()).map(|(_, message)| message);
        return Err(format!("the hub {hub} can't take part: {}", why.unwrap_or_default()));
    }
    let all = valid.hub.iter().chain(&valid.standby_hubs).filter(|hub| members.is_accepted(hub)).cloned();
    let in_maintenance =
        |hub: &GatewayName| view.gateways.get(hub).is_some_and(|gateway| gateway.maintenance);
    let (mut hubs, last): (Vec<_>, Vec<_>) = all.partition(|hub| !in_maintenance(hub));
    hubs.extend(last);
    Ok(Published { topology: Topology::HubSpoke, hubs })
}

/// Starts, restarts or advances the change as far as the reports of the workers allow.
pub fn advance(context: &Context<'_>, target: Published) -> Outcome {
    let mut overrun = Vec::new();
    let mut outcome = go_on(context, target, &mut overrun);
    outcome.report.overrun = overrun;
    outcome
}

/// As far as it gets now; `overrun` gathers the phases that only their time-out ended.
fn go_on(context: &Context<'_>, target: Published, overrun: &mut Vec<String>) -> Outcome {
    let status = &context.network.status;
    let Some(mut published) = status.published.clone().or_else(|| intents::rebuilt(context)) else {
        let stage = Stage::rest(&target);
        return Outcome { published: target, change: None, stage, report: Report::default(), held: false };
    };
    let mut change = status.change.clone().map(|change| on_this_boot(change, context.now));
    loop {
        change = match change {
            None if published == target => None,
            None => Some(begin(published.clone(), target.clone(), context.now)),
            Some(running) => Some(edited(running, &target, context.now)),
        };
        let Some(running) = &change else {
            let stage = Stage::rest(&published);
            return Outcome { published, change: None, stage, report: Report::default(), held: false };
        };
        let stage = Stage::of(running);
        if intents::differs(context, &stage) {
            let report = Report {
                next_due: Some(context.network.spec.hub_change.connect_timeout),
                ..Report::default()
            };
            return Outcome { published, change, stage, report, held: false };
        }
        let lags = barrier::lags(context, running, &stage);
        let (may_go_on, held) = may_go_on(context, running, &lags);
        if !may_go_on {
            let report = waiting(context, running, &lags);
            return Outcome { published, change, stage, report, held };
        }
        overrun.extend(timed_out(context, running, &lags));
        change = match next(running) {
            Some(phase) => Some(enter(running, phase, context.now)),
            None => {
                published = running.to.clone();
                None
            }
        };
    }
}

fn begin(from: Published, to: Published, now: &Now) -> Change {
    Change { from, to, phase: Phase::Adding, started_at: now.wall.clone(), started: now.boot.clone() }
}

fn enter(change: &Change, phase: Phase, now: &Now) -> Change {
    Change { phase, started_at: now.wall.clone(), started: now.boot.clone(), ..change.clone() }
}

/// A phase that began on another boot counts its age afresh.
fn on_this_boot(change: Change, now: &Now) -> Change {
    if now.boot.since(&change.started).is_some() {
        change
    } else {
        Change { started: now.boot.clone(), ..change }
    }
}

/// An edit of the hubs before `Removing` starts `Adding` again from what is published now; any other waits.
fn edited(change: Change, target: &Published, now: &Now) -> Change {
    let of_hubs = change.from.topology == change.to.topology && change.to.topology == target.topology;
    if change.to == *target || !of_hubs || change.phase == Phase::Removing {
        return change;
    }
    let from = Published { topology: change.from.topology, hubs: Stage::of(&change).hubs };
    begin(from, target.clone(), now)
}

fn next(change: &Change) -> Option<Phase> {
    match change.phase {
        Phase::Adding => Some(Phase::Switching),
        Phase::Switching => Some(Phase::Demoting),
        Phase::Demoting => Some(Phase::Removing),
        Phase::Removing => None,
    }
}

/// Whether the phase may end, and whether `Hold` alone keeps it.
fn may_go_on(context: &Context<'_>, change: &Change, lags: &[Lag]) -> (bool, bool) {
    if lags.is_empty() {
        return (true, false);
    }
    let policy = context.network.spec.hub_change;
    if age(context, change) < policy.connect_timeout {
        return (false, false);
    }
    let guarded = match change.phase {
        Phase::Switching | Phase::Demoting => true,
        Phase::Adding | Phase::Removing => false,
    };
    let held = policy.on_timeout == OnTimeout::Hold
        && guarded
        && lags.iter().any(|lag| barrier::is_live(context, &lag.member));
    (!held, held)
}

fn age(context: &Context<'_>, change: &Change) -> Duration {
    context.now.boot.since(&change.started).unwrap_or_default()
}

fn waiting(context: &Context<'_>, change: &Change, lags: &[Lag]) -> Report {
    let policy = context.network.spec.hub_change;
    let describe = |lag: &Lag| format!("{} waits for {}", change.phase.as_str(), who(context, lag));
    Report {
        waits: lags.iter().map(describe).collect(),
        next_due: Some(policy.connect_timeout.saturating_sub(age(context, change))),
        ..Report::default()
    }
}

/// A phase that ends although somebody lags.
fn timed_out(context: &Context<'_>, change: &Change, lags: &[Lag]) -> Option<String> {
    let (first, rest) = lags.split_first()?;
    let more = if rest.is_empty() { String::new() } else { format!(" (and {} more)", rest.len()) };
    let limit = context.network.spec.hub_change.connect_timeout.as_secs_f32();
    Some(format!("{} went on after {limit} s without {}{more}", change.phase.as_str(), who(context, first)))
}

fn who(context: &Context<'_>, lag: &Lag) -> String {
    let dead = if barrier::is_live(context, &lag.member) { "" } else { " (not seen alive)" };
    format!("{}{dead}: {}", lag.member, lag.what)
}
