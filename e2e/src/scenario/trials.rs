//! What workers go through while nobody asks for another shape of the network: crashes, a member that comes and goes, a
//! lost key. It refuses to excuse a loss among those who stay.

use anyhow::{Context as _, Result, bail};
use spanwire_api::GatewaySpec;

use super::{Scene, hub_change, judge, phases::Phases, show};
use crate::{Fleet, Outcome, interrupt, measure};

const LEAD: std::time::Duration = std::time::Duration::from_secs(1);
const JOINER: &str = "spoke-2";
/// How long a host may take to lose its last device.
const TORN_DOWN: std::time::Duration = std::time::Duration::from_secs(60);

/// Measures on for a while and judges: nothing may be lost, whatever happened.
pub(crate) fn finish(scene: &Scene<'_>, fleet: &Fleet, run: measure::Run) -> Result<Outcome> {
    hub_change::tail(scene, &run)?;
    let measured = run.finish(&scene.pairs)?;
    show::links(fleet, scene.say)?;
    let outcome = judge::lossless(scene, &measured, &Phases::default());
    Ok(judge::conclude(outcome, measured.report.held_up))
}

/// Every worker and the controller are killed and started again.
pub(crate) fn full_mesh(scene: &Scene<'_>, fleet: &mut Fleet) -> Result<Outcome> {
    let run = scene.measure(fleet)?;
    interrupt::pause(LEAD)?;
    scene.say.line("Killing every worker and the controller (-9), starting them again");
    fleet.crash_and_restart()?;
    fleet.wait_until_ready()?;
    finish(scene, fleet, run)
}

/// A member joins and leaves again; what is measured is everybody else.
pub(crate) fn members(scene: &Scene<'_>, fleet: &mut Fleet) -> Result<Outcome> {
    let run = scene.measure(fleet)?;
    interrupt::pause(LEAD)?;
    scene.say.line(format!("Editing the network: {JOINER} joins"));
    fleet.declare(|network| network.members.push(JOINER.to_owned()))?;
    let status = fleet.wait_until_ready()?;
    let of_joiner: Vec<_> = measure::pairs(fleet, &status)?
        .into_iter()
        .filter(|pair| pair.from.name() == JOINER || pair.to.name() == JOINER)
        .collect();
    let reachable = judge::reachable(&of_joiner, &judge::expectations(scene.setup, &of_joiner));
    let carried = measure::quiet(scene.setup, &reachable, scene.say)?;
    scene.say.line(format!("{JOINER} and the others: {} sent, {} lost", carried.sent, carried.lost));
    scene.say.line(format!("Editing the network: {JOINER} leaves"));
    fleet.declare(|network| network.members.retain(|member| member != JOINER))?;
    fleet.wait_until_ready()?;
    let gone = interrupt::wait_for(TORN_DOWN, || {
        let devices = fleet.member(JOINER)?.host().output("ip", &["-o", "link"], "");
        let devices = devices.context("listing devices")?;
        Ok((!devices.contains(": sw")).then_some(()))
    })?;
    if gone.is_none() {
        bail!("{JOINER} left and still has a device.\n{}", fleet.last_words());
    }
    finish(scene, fleet, run)
}

/// A spoke's private key is deleted; its worker starts without it and takes it from the devices.
pub(crate) fn key_loss(scene: &Scene<'_>, fleet: &mut Fleet) -> Result<Outcome> {
    const LOSER: &str = "spoke-1";
    let key = |fleet: &Fleet| -> Result<Option<String>> {
        Ok(fleet.status::<GatewaySpec>(LOSER, "worker")?.and_then(|status| status.public_key))
    };
    let run = scene.measure(fleet)?;
    interrupt::pause(LEAD)?;
    let before = key(fleet)?;
    scene
        .say
        .line(format!("Deleting the private key of {LOSER}, killing its worker (-9), starting it again"));
    fleet.delete_key(LOSER)?;
    fleet.restart_worker(LOSER)?;
    fleet.wait_until_ready()?;
    let mut outcome = finish(scene, fleet, run)?;
    if key(fleet)? != before {
        outcome.fail(format!("{LOSER} has another key than before"));
    }
    if fleet.delete_key(LOSER).is_err() {
        outcome.fail(format!("the key of {LOSER} was not kept again"));
    }
    Ok(outcome)
}
