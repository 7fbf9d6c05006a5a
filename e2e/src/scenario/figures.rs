//! Figures that only a whole fleet on API servers shows: what is asked of them at rest, and how long an edit takes to the
//! first device. It refuses to count what it did not see in an audit log or in the kernel.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Barrier,
    time::{Duration, Instant},
};

use anyhow::{Context as _, Result, bail};
use spanwire_testkit::control_plane::Request;

use super::{Scene, judge, phases::Phases, trials};
use crate::{Fleet, Outcome, interrupt};

const REST: Duration = Duration::from_secs(600);
const CHANGES: usize = 50;
const FIRST_DEVICE: Duration = Duration::from_secs(30);
const LOOK_EVERY: Duration = Duration::from_micros(500);
const GOAL: Duration = Duration::from_millis(250);

/// Ten minutes in which nothing is declared. Only leases may be written.
pub(crate) fn rest(scene: &Scene<'_>, fleet: &mut Fleet) -> Result<Outcome> {
    let run = scene.measure(fleet)?;
    let marks = fleet.servers()?.marks()?;
    scene.say.line(format!("{} s in which nobody edits anything", REST.as_secs()));
    interrupt::pause(REST)?;
    let requests = fleet.servers()?.requests_since(&marks)?;
    let mut counts: BTreeMap<(&str, String), usize> = BTreeMap::new();
    for request in &requests {
        *counts.entry((&request.verb, request.target())).or_default() += 1;
    }
    scene.say.line(format!("\n{:8} {:34} {:>8} {:>12}", "verb", "objects", "requests", "a minute"));
    let minutes = REST.as_secs_f64() / 60.0;
    for ((verb, target), count) in &counts {
        let rate = *count as f64 / minutes;
        scene.say.line(format!("{verb:8} {target:34} {count:>8} {rate:>12.1}"));
    }
    let is_foreign = |request: &&Request| request.is_write() && request.resource != "leases";
    let written: Vec<String> = requests
        .iter()
        .filter(is_foreign)
        .map(|request| format!("{} {} {}", request.verb, request.target(), request.name))
        .collect();
    let mut outcome = trials::finish(scene, fleet, run)?;
    if !written.is_empty() {
        outcome.fail(format!("written at rest: {}", written.join(", ")));
    }
    Ok(outcome)
}

/// From the edit of `hub` to the first device on a spoke, over many changes.
pub(crate) fn latency(scene: &Scene<'_>, fleet: &mut Fleet) -> Result<Outcome> {
    let run = scene.measure(fleet)?;
    let mut times = Vec::new();
    for change in 0..CHANGES {
        let hub = if change % 2 == 0 { "hub-b" } else { "hub-a" };
        let edit = |fleet: &mut Fleet| fleet.declare(|network| network.hub = Some(hub.to_owned()));
        times.push(until_first_device(fleet, "spoke-1", edit)?);
        Phases::default().follow(fleet, &run, crate::Say::Nothing, |_, _| Ok(()))?;
        if change % 10 == 9 {
            scene.say.line(format!("{:7.2} s  {} changes", run.now().as_secs_f64(), change + 1));
        }
    }
    times.sort();
    let at = |share: usize| times[(times.len() * share).div_ceil(100).max(1) - 1];
    let (middle, late) = (at(50), at(99));
    let words = format!(
        "from the edit to the first device of a spoke: p50 {} ms, p99 {} ms over {CHANGES} changes (goal {} ms)",
        middle.as_millis(),
        late.as_millis(),
        GOAL.as_millis()
    );
    scene.say.line(&words);
    let measured = run.finish(&scene.pairs)?;
    let outcome = judge::lossless(scene, &measured, &Phases::default());
    let mut outcome = judge::conclude(outcome, measured.report.held_up);
    outcome.verdict = format!("{}; {words}", outcome.verdict);
    if late > GOAL {
        outcome.fail(words);
    }
    Ok(outcome)
}

/// Edits, and waits until a device appears on a host that was not there before. How long that took.
fn until_first_device(
    fleet: &mut Fleet,
    member: &str,
    edit: impl FnOnce(&mut Fleet) -> Result<()>,
) -> Result<Duration> {
    let host = fleet.member(member)?.host().clone();
    let before = host.run(devices).context("entering the host")??;
    let watching = Barrier::new(2);
    let found = std::thread::scope(|scope| -> Result<Option<Duration>> {
        let watch = scope.spawn(|| {
            host.run(|| -> Result<Option<Duration>> {
                watching.wait();
                let begun = Instant::now();
                while begun.elapsed() < FIRST_DEVICE {
                    if !devices()?.is_subset(&before) {
                        return Ok(Some(begun.elapsed()));
                    }
                    std::thread::park_timeout(LOOK_EVERY);
                }
                Ok(None)
            })
        });
        watching.wait();
        edit(fleet)?;
        watch
            .join()
            .map_err(|_| anyhow::anyhow!("the thread that watched devices ended"))?
            .context("entering the host")?
    })?;
    match found {
        Some(time) => Ok(time),
        None => bail!("no device after {FIRST_DEVICE:?}"),
    }
}

/// Names of our devices in the network namespace of the calling thread.
fn devices() -> Result<BTreeSet<String>> {
    let all = nix::net::if_::if_nameindex().context("listing devices")?;
    let names = all.iter().map(|device| device.name().to_string_lossy().into_owned());
    Ok(names.filter(|name| name.starts_with("sw")).collect())
}
