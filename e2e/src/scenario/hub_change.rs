//! `hub: hub-a` becomes `hub: hub-b` under traffic, with or without crashes. It refuses a run in which a phase was not
//! seen where crashes belong into each.

use std::time::Duration;

use anyhow::Result;
use spanwire_api::Phase;

use super::{Scene, judge, laggard::Stop, phases::Phases, show};
use crate::{Fleet, Outcome, interrupt, measure::Keeps};

/// What is sent at least, over all pairs.
const LEAST_SENT: u64 = 100_000;
const LEAD: Duration = Duration::from_secs(1);
const TAIL: Duration = Duration::from_secs(2);
const LONGEST_TAIL: Duration = Duration::from_secs(600);
/// Workers and the controller.
const KILLED_EACH_TIME: u32 = 5;

/// Who is killed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kill {
    /// Nobody.
    Nobody,
    /// Every worker and the controller, as each phase begins.
    InEveryPhase,
}

/// Runs the change and judges it.
pub(crate) fn run(scene: &Scene<'_>, fleet: &mut Fleet, kill: Kill) -> Result<Outcome> {
    let run = scene.measure(fleet)?;
    interrupt::pause(LEAD)?;
    scene.say.line("Editing the network: hub: hub-a becomes hub: hub-b");
    fleet.declare(|network| network.hub = Some("hub-b".to_owned()))?;
    let (mut phases, mut killed) = (Phases::default(), 0);
    let mut in_phases = Vec::new();
    let mut stop = scene.setup.laggard.map(Stop::new);
    phases.follow(fleet, &run, scene.say, |fleet, phase| {
        if let Some(stop) = &mut stop {
            stop.look(fleet, scene.say)?;
        }
        if let Some(phase) = phase.filter(|_| kill == Kill::InEveryPhase) {
            fleet.crash_and_restart()?;
            killed += KILLED_EACH_TIME;
            in_phases.push(phase);
            scene.say.line("           killed every worker and the controller (-9), started them again");
        }
        Ok(())
    })?;
    if let Some(stop) = &mut stop {
        stop.finish(fleet, scene.say)?;
    }
    tail(scene, &run)?;
    let measured = run.finish(&scene.pairs)?;
    show::links(fleet, scene.say)?;
    let mut outcome = judge::lossless(scene, &measured, &phases);
    outcome.killed = killed;
    if kill == Kill::InEveryPhase {
        for phase in [Phase::Adding, Phase::Switching, Phase::Demoting, Phase::Removing] {
            if !in_phases.contains(&phase) {
                outcome.faults.push(format!("phase {phase:?} was not seen, so nobody was killed in it"));
            }
        }
    }
    Ok(judge::conclude(outcome, measured.report.held_up))
}

/// Measures on for a while, and until there is enough to speak of among the pairs that count to the end.
pub(crate) fn tail(scene: &Scene<'_>, run: &crate::measure::Run) -> Result<()> {
    interrupt::pause(TAIL)?;
    let counted = scene.expected.iter().filter(|keeps| matches!(keeps, Keeps::Always | Keeps::Afterwards));
    let least = LEAST_SENT * scene.pairs.len() as u64 / (counted.count() as u64).max(1);
    interrupt::wait_for(LONGEST_TAIL, || Ok((run.sent() >= least).then_some(())))?;
    Ok(())
}
