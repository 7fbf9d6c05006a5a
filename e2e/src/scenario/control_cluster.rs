//! What becomes of traffic when the control cluster is away, empty, or set back. It refuses to call a network converged
//! that does not do what is declared.

use std::time::Duration;

use anyhow::{Context as _, Result, bail};

use super::{Scene, hub_change, judge, phases::Phases, show, trials};
use crate::{Fleet, Outcome, interrupt};

const LEAD: Duration = Duration::from_secs(1);
const AWAY: Duration = Duration::from_secs(120);
/// How long a worker may take to notice something.
const NOTICED: Duration = Duration::from_secs(60);

/// Two minutes without the control cluster, with a worker that restarts in the middle; then the hub moves.
pub(crate) fn outage(scene: &Scene<'_>, fleet: &mut Fleet) -> Result<Outcome> {
    let run = scene.measure(fleet)?;
    interrupt::pause(LEAD)?;
    scene.say.line(format!("The control cluster goes away for {} s", AWAY.as_secs()));
    fleet.servers()?.stop_control()?;
    interrupt::pause(AWAY / 2)?;
    scene.say.line("Killing the worker of spoke-1 (-9), starting it again");
    fleet.restart_worker("spoke-1")?;
    interrupt::pause(AWAY / 2)?;
    fleet.servers()?.start_control()?;
    scene.say.line("It is back. Editing the network: hub: hub-a becomes hub: hub-b");
    fleet.declare(|network| network.hub = Some("hub-b".to_owned()))?;
    let mut phases = Phases::default();
    phases.follow(fleet, &run, scene.say, |_, _| Ok(()))?;
    hub_change::tail(scene, &run)?;
    let measured = run.finish(&scene.pairs)?;
    show::links(fleet, scene.say)?;
    Ok(judge::conclude(judge::lossless(scene, &measured, &phases), measured.report.held_up))
}

/// The control cluster holds nothing of ours for a while.
pub(crate) fn emptied(scene: &Scene<'_>, fleet: &mut Fleet) -> Result<Outcome> {
    let full = fleet.servers()?.snapshot()?;
    let run = scene.measure(fleet)?;
    interrupt::pause(LEAD)?;
    scene.say.line("The control cluster is emptied");
    fleet.servers()?.empty()?;
    wait_for_words(fleet, "GatewayNotFound")?;
    scene.say.line("Every worker says GatewayNotFound. The control cluster is restored");
    interrupt::pause(LEAD)?;
    fleet.servers()?.restore(&full)?;
    fleet.wait_until_ready()?;
    trials::finish(scene, fleet, run)
}

/// The hub moves, then etcd is set back to before. Everybody follows what is declared then, and says so. The way back
/// has no phases, so that something may be lost on it; how much is said.
pub(crate) fn restored(scene: &Scene<'_>, fleet: &mut Fleet) -> Result<Outcome> {
    let before = fleet.servers()?.snapshot()?;
    fleet.wait_until_ready()?;
    let run = scene.measure(fleet)?;
    interrupt::pause(LEAD)?;
    scene.say.line("Editing the network: hub: hub-a becomes hub: hub-b");
    fleet.declare(|network| network.hub = Some("hub-b".to_owned()))?;
    Phases::default().follow(fleet, &run, scene.say, |_, _| Ok(()))?;
    scene.say.line("The control cluster's etcd is restored from before the edit");
    fleet.servers()?.restore(&before)?;
    fleet.expect(|network| network.hub = Some("hub-a".to_owned()));
    let said = interrupt::wait_for(NOTICED, || {
        let status = fleet.links("spoke-1")?;
        let conditions = status.iter().flat_map(|status| &status.conditions);
        Ok(conditions.into_iter().any(|it| it.type_ == "ControlClusterRestored").then_some(()))
    })?;
    if said.is_none() {
        bail!("nobody says ControlClusterRestored.\n{}", fleet.last_words());
    }
    let status = fleet.wait_until_ready()?;
    let after = crate::measure::quiet(scene.setup, &scene.pairs, scene.say)?;
    let measured = run.finish(&scene.pairs)?;
    show::links(fleet, scene.say)?;
    let mut outcome = judge::lossless(scene, &measured, &Phases::default());
    scene.say.line(format!("{}: {} lost on the way back", status.state, outcome.lost));
    outcome.verdict = format!(
        "as declared in the restored cluster: 0 of {} lost then, {} of {} in all",
        after.sent, outcome.lost, outcome.sent
    );
    outcome.passed = true;
    Ok(outcome)
}

/// Waits until every worker's log holds the words.
fn wait_for_words(fleet: &Fleet, words: &str) -> Result<()> {
    let said = interrupt::wait_for(NOTICED, || {
        fleet.check_alive()?;
        for member in fleet.members() {
            let log = member.worker_log().with_context(|| format!("{} has no worker", member.name()))?;
            let text = std::fs::read_to_string(log).with_context(|| format!("reading {}", log.display()))?;
            if !text.contains(words) {
                return Ok(None);
            }
        }
        Ok(Some(()))
    })?;
    if said.is_none() {
        bail!("a worker does not say {words}.\n{}", fleet.last_words());
    }
    Ok(())
}
