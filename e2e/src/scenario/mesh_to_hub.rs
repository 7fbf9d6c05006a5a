//! `topology: mesh` becomes `hub-spoke` and mesh again under traffic. It refuses to count the way back for pairs that
//! had no path in between.

use std::time::Duration;

use anyhow::Result;

use super::{Scene, hub_change, judge, phases::Phases, show};
use crate::{Fleet, Outcome, Topology, interrupt};

const LEAD: Duration = Duration::from_secs(1);
const BETWEEN: Duration = Duration::from_secs(2);

/// Runs both changes and judges them together.
pub(crate) fn run(scene: &Scene<'_>, fleet: &mut Fleet) -> Result<Outcome> {
    let run = scene.measure(fleet)?;
    let mut phases = Phases::default();
    interrupt::pause(LEAD)?;
    scene.say.line("Editing the network: topology: mesh becomes topology: hub-spoke, hub: hub-a");
    fleet.declare(|network| {
        network.topology = Topology::HubSpoke;
        network.hub = Some("hub-a".to_owned());
    })?;
    phases.follow(fleet, &run, scene.say, |_, _| Ok(()))?;
    show::links(fleet, scene.say)?;
    interrupt::pause(BETWEEN)?;
    scene.say.line("Editing the network: topology: mesh again");
    fleet.declare(|network| {
        network.topology = Topology::Mesh;
        network.hub = None;
    })?;
    phases.follow(fleet, &run, scene.say, |_, _| Ok(()))?;
    hub_change::tail(scene, &run)?;
    let measured = run.finish(&scene.pairs)?;
    show::links(fleet, scene.say)?;
    let outcome = judge::lossless(scene, &measured, &phases);
    Ok(judge::conclude(outcome, measured.report.held_up))
}
