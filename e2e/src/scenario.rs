//! From a setup to an outcome: build, wait, measure at rest, measure the change, judge. It refuses to judge a run whose
//! machine is overloaded at rest.

mod chart;
mod control_cluster;
mod failover;
mod figures;
mod hub_change;
mod judge;
mod laggard;
mod mesh_to_hub;
mod mode_change;
mod phases;
mod show;
mod trials;
mod writes;

use anyhow::Result;

use crate::{Fleet, Outcome, Provider, Say, Scenario, Setup, measure};

/// Something could not be built or did not happen in time.
#[derive(Debug)]
pub struct Failed {
    /// What.
    pub error: anyhow::Error,
    /// What was built before.
    pub fleet: Option<Box<Fleet>>,
}

/// Runs one scenario. The fleet runs on until it is dropped.
///
/// # Errors
/// Something could not be built or did not happen in time; a lost datagram is an outcome and no error.
pub fn run(setup: &Setup, say: Say) -> Result<(Fleet, Outcome), Failed> {
    let mut fleet = setup
        .check()
        .and_then(|()| Fleet::start(setup, say))
        .map_err(|error| Failed { error, fleet: None })?;
    match play(setup, &mut fleet, say) {
        Ok(outcome) => Ok((fleet, outcome)),
        Err(error) => Err(Failed { error, fleet: Some(Box::new(fleet)) }),
    }
}

fn play(setup: &Setup, fleet: &mut Fleet, say: Say) -> Result<Outcome> {
    let status = fleet.wait_until_ready()?;
    show::topology(fleet, &status, say);
    let Some(script) = script(setup.scenario) else { return writes::run(setup, fleet, say) };
    show::links(fleet, say)?;
    let pairs = measure::pairs(fleet, &status)?;
    let expected = judge::expectations(setup, &pairs);
    let reachable: Vec<_> = judge::reachable(&pairs, &expected);
    let quiet = measure::quiet(setup, &reachable, say)?;
    say.line(format!(
        "At rest: {} pairs at {}/s, {} sent, 0 lost, longest gap {} ms.",
        reachable.len(),
        quiet.rate,
        quiet.sent,
        quiet.longest_gap_ms
    ));
    fleet.say_at_rest(say)?;
    if setup.own_clusters_away {
        fleet.servers()?.stop_own_clusters()?;
        say.line("The API servers of all workers are away from here on.");
    }
    let scene = Scene { setup, pairs, expected, quiet, say };
    script(&scene, fleet)
}

/// What happens to a fleet while it is measured.
type Script = fn(&Scene<'_>, &mut Fleet) -> Result<Outcome>;

/// `None`: nothing is measured, writes are counted.
fn script(scenario: Scenario) -> Option<Script> {
    Some(match scenario {
        Scenario::HubChange => |scene, fleet| hub_change::run(scene, fleet, hub_change::Kill::Nobody),
        Scenario::Restart => |scene, fleet| hub_change::run(scene, fleet, hub_change::Kill::InEveryPhase),
        Scenario::MeshToHub => mesh_to_hub::run,
        Scenario::Failover => failover::run,
        Scenario::ModeChange => mode_change::run,
        Scenario::FullMesh => trials::full_mesh,
        Scenario::Members => trials::members,
        Scenario::KeyLoss => trials::key_loss,
        Scenario::Outage => control_cluster::outage,
        Scenario::Emptied => control_cluster::emptied,
        Scenario::Restored => control_cluster::restored,
        Scenario::Rest => figures::rest,
        Scenario::Latency => figures::latency,
        Scenario::Chart => chart::run,
        Scenario::Writes => return None,
    })
}

/// What a scenario knows when its change begins.
pub(crate) struct Scene<'a> {
    pub(crate) setup: &'a Setup,
    pub(crate) pairs: Vec<spanwire_testkit::prober::Pair>,
    pub(crate) expected: Vec<measure::Keeps>,
    pub(crate) quiet: measure::Quiet,
    pub(crate) say: Say,
}

impl Scene<'_> {
    /// Begins to measure all pairs that ever have a path, with streams beside them where the hosts have firewalls or the
    /// rules of a cluster.
    pub(crate) fn measure(&self, fleet: &Fleet) -> Result<measure::Run> {
        let steady: Vec<_> = judge::steady(&self.pairs, &self.expected);
        let has_rules = self.setup.firewall || self.setup.provider == Provider::Kind;
        let streams = has_rules.then_some(&steady[..]);
        measure::Run::start(fleet, &self.pairs, self.quiet.rate, streams)
    }
}
