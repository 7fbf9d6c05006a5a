//! `tunnel.mode` becomes the other one under traffic, and back. It refuses a host that keeps devices of the mode before.

use std::time::Duration;

use anyhow::Result;

use super::{Scene, judge, phases::Phases, show};
use crate::{Fleet, Mode, Outcome, interrupt};

const LEAD: Duration = Duration::from_secs(1);
const BETWEEN: Duration = Duration::from_secs(5);
const LIMIT: Duration = Duration::from_secs(60);

/// Runs both changes and judges them together.
pub(crate) fn run(scene: &Scene<'_>, fleet: &mut Fleet) -> Result<Outcome> {
    let run = scene.measure(fleet)?;
    interrupt::pause(LEAD)?;
    let first = scene.setup.mode;
    for mode in [first.other(), first] {
        scene.say.line(format!("Editing the network: tunnel.mode: {mode}"));
        fleet.declare(|network| network.mode = mode)?;
        interrupt::wait_for(LIMIT, || Ok(all_of(fleet, mode)?.then_some(())))?;
        show::links(fleet, scene.say)?;
        interrupt::pause(BETWEEN)?;
    }
    let measured = run.finish(&scene.pairs)?;
    let outcome = judge::lossless(scene, &measured, &Phases::default());
    Ok(judge::conclude(outcome, measured.report.held_up))
}

/// Whether every host has devices of this mode alone.
fn all_of(fleet: &Fleet, mode: Mode) -> Result<bool> {
    for member in fleet.members() {
        let text = member.host().output("ip", &["-o", "link", "show"], "")?;
        let kernel = text.lines().filter(|line| line.contains(": sk")).count();
        let userspace = text.lines().filter(|line| line.contains(": sw")).count();
        let (there, left) = match mode {
            Mode::Kernel => (kernel, userspace),
            Mode::Userspace => (userspace, kernel),
        };
        if there == 0 || left > 0 {
            return Ok(false);
        }
    }
    Ok(true)
}
