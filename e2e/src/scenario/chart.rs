//! What a platform team does to installed releases under traffic: upgrade, lose pods, uninstall and install again. It
//! refuses a tunnel that goes before somebody asked for that, and one that stays after.

use std::time::{Duration, Instant};

use anyhow::{Result, bail};

use super::{Scene, trials};
use crate::{Fleet, Outcome, interrupt};

const LEAD: Duration = Duration::from_secs(1);
/// How long nobody looks after the tunnels.
const UNATTENDED: Duration = Duration::from_secs(3);
const TORN_DOWN: Duration = Duration::from_secs(60);

/// Everything in which nothing may be lost, then an uninstall that takes the tunnels along.
pub(crate) fn run(scene: &Scene<'_>, fleet: &mut Fleet) -> Result<Outcome> {
    let run = scene.measure(fleet)?;
    interrupt::pause(LEAD)?;
    step(
        scene,
        "helm upgrade of every release: workers and controllers get new pods, dataplanes stay",
        || fleet.clusters()?.upgrade(),
    )?;
    step(scene, "every worker's pod is deleted", || fleet.clusters()?.delete_worker_pods())?;
    step(scene, "helm uninstall of every worker: the tunnels stay, nobody looks after them", || {
        fleet.clusters()?.uninstall_workers()
    })?;
    interrupt::pause(UNATTENDED)?;
    step(scene, "helm install of every worker again", || fleet.clusters()?.install_workers(&[]))?;
    fleet.wait_until_ready()?;
    let mut outcome = trials::finish(scene, fleet, run)?;
    for fault in fleet.clusters()?.foreign_objects_readable()? {
        outcome.fail(fault);
    }
    let removing = ["uninstall.removeLinks=true"];
    step(scene, "helm uninstall of every worker with uninstall.removeLinks", || {
        fleet.clusters()?.install_workers(&removing)?;
        fleet.clusters()?.uninstall_workers()?;
        wait_until_bare(fleet)
    })?;
    Ok(outcome)
}

fn step(scene: &Scene<'_>, what: &str, work: impl FnOnce() -> Result<()>) -> Result<()> {
    scene.say.line(format!("           {what}"));
    let begun = Instant::now();
    work()?;
    scene.say.line(format!("  {:6.1} s  done", begun.elapsed().as_secs_f64()));
    Ok(())
}

/// Until no node has a device, a rule or a filter of ours.
fn wait_until_bare(fleet: &Fleet) -> Result<()> {
    let mut left = String::new();
    let gone = interrupt::wait_for(TORN_DOWN, || {
        left = fleet.clusters()?.left_on_nodes()?;
        Ok(left.is_empty().then_some(()))
    })?;
    if gone.is_none() {
        bail!("after an uninstall with uninstall.removeLinks there is still:\n{left}");
    }
    Ok(())
}
