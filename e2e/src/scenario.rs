//! From a setup to an outcome: build, wait, measure at rest, measure the change, judge. It refuses to judge a run whose
//! machine is overloaded at rest.

mod failover;
mod hub_change;
mod judge;
mod laggard;
mod mesh_to_hub;
mod phases;
mod show;

use anyhow::Result;

use crate::{Fleet, Outcome, Say, Scenario, Setup, measure};

/// Runs one scenario. The fleet runs on until it is dropped.
///
/// # Errors
/// Something could not be built or did not happen in time; a lost datagram is an outcome and no error.
pub fn run(setup: &Setup, say: Say) -> Result<(Fleet, Outcome)> {
    setup.check()?;
    let mut fleet = Fleet::start(setup, say)?;
    let status = fleet.wait_until_ready()?;
    show::topology(&fleet, &status, say);
    show::links(&fleet, say)?;
    let pairs = measure::pairs(&fleet, &status)?;
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
    if setup.own_clusters_away {
        fleet.stop_own_clusters()?;
        say.line("The API servers of all workers are away from here on.");
    }
    let scene = Scene { setup, pairs, expected, quiet, say };
    let outcome = match setup.scenario {
        Scenario::HubChange => hub_change::run(&scene, &mut fleet, hub_change::Kill::Nobody),
        Scenario::Restart => hub_change::run(&scene, &mut fleet, hub_change::Kill::InEveryPhase),
        Scenario::MeshToHub => mesh_to_hub::run(&scene, &mut fleet),
        Scenario::Failover => failover::run(&scene, &mut fleet),
    }?;
    Ok((fleet, outcome))
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
    /// Begins to measure all pairs that ever have a path, with streams beside them where the hosts have firewalls.
    pub(crate) fn measure(&self, fleet: &Fleet) -> Result<measure::Run> {
        let steady: Vec<_> = judge::steady(&self.pairs, &self.expected);
        let streams = self.setup.firewall.then_some(&steady[..]);
        measure::Run::start(fleet, &self.pairs, self.quiet.rate, streams)
    }
}
