//! The active hub's host is cut off, and comes back. It refuses to call flapping a recovery: each spoke moves its wide
//! route once away and once back.

use std::{collections::BTreeMap, time::Duration};

use anyhow::Result;
use spanwire_api::{LinkRole, RouteState};
use spanwire_testkit::prober::{PairReport, Stats};

use super::{Scene, judge, phases::Phases, show};
use crate::{
    Fleet, Outcome, interrupt,
    measure::{Run, millis},
    outcome::FailoverOutcome,
};

const LEAD: Duration = Duration::from_secs(2);
const AWAY: Duration = Duration::from_secs(15);
const BACK: Duration = Duration::from_secs(25);
const GOAL: Duration = Duration::from_secs(3);
/// What was sent this short before the cut was still under way and went with it.
const UNDER_WAY: Duration = Duration::from_millis(200);
const SPOKES: [&str; 2] = ["spoke-1", "spoke-2"];

/// Runs it and judges it.
pub(crate) fn run(scene: &Scene<'_>, fleet: &mut Fleet) -> Result<Outcome> {
    let run = scene.measure(fleet)?;
    interrupt::pause(LEAD)?;
    let cut = run.now();
    scene.say.line("Cutting off the host of hub-a");
    fleet.member("hub-a")?.host().cut_off()?;
    let moves_away = watch_routes(scene, fleet, &run, AWAY)?;
    show::links(fleet, scene.say)?;
    scene.say.line("The host of hub-a comes back");
    let returned = run.now();
    fleet.member("hub-a")?.host().reconnect()?;
    let moves_back = watch_routes(scene, fleet, &run, BACK)?;
    let measured = run.finish(&scene.pairs)?;
    show::links(fleet, scene.say)?;
    let mut outcome = judge::lossless(scene, &measured, &Phases::default());
    let left: Vec<&PairReport> = measured
        .report
        .pairs
        .iter()
        .zip(&scene.expected)
        .filter(|(pair, keeps)| !pair.label.contains("hub-a") && **keeps == crate::measure::Keeps::Always)
        .map(|(pair, _)| pair)
        .collect();
    let of_left = |from, to| left.iter().map(|pair| pair.window(from, to)).fold(Stats::default(), Stats::and);
    let failover = FailoverOutcome {
        outage_ms: millis(of_left(cut, returned).longest_gap),
        goal_ms: millis(GOAL),
        lost_afterwards: of_left(cut + GOAL, returned).lost,
        lost_on_return: of_left(returned, Duration::MAX).lost,
        moves_away,
        moves_back,
    };
    outcome.faults.extend(faults(&failover, &of_left(Duration::ZERO, cut.saturating_sub(UNDER_WAY))));
    outcome.verdict = if outcome.faults.is_empty() {
        format!("traffic was back after {} ms, and nothing was lost from then on", failover.outage_ms)
    } else {
        outcome.faults.join("; ")
    };
    outcome.passed = outcome.faults.is_empty();
    outcome.failover = Some(failover);
    Ok(outcome)
}

fn faults(failover: &FailoverOutcome, before: &Stats) -> Vec<String> {
    let FailoverOutcome { outage_ms, goal_ms, lost_afterwards, lost_on_return, moves_away, moves_back } =
        failover;
    let mut faults = Vec::new();
    if before.lost > 0 {
        faults.push(format!("{} datagrams were lost before anything happened", before.lost));
    }
    if outage_ms > goal_ms {
        faults.push(format!("traffic was away for {outage_ms} ms, the goal is {goal_ms} ms"));
    }
    for (lost, when) in
        [(lost_afterwards, "after the standby had taken over"), (lost_on_return, "on the way back")]
    {
        if *lost > 0 {
            faults.push(format!("{lost} datagrams were lost {when}"));
        }
    }
    for (moves, when) in [(moves_away, "while the hub was away"), (moves_back, "after it had come back")] {
        for (spoke, count) in moves.iter().filter(|(_, count)| *count != 1) {
            faults.push(format!("{spoke} moved its wide route {count} times {when}, once is right"));
        }
    }
    faults
}

/// Counts how often each spoke's wide route moved to another hub, as its worker says.
fn watch_routes(scene: &Scene<'_>, fleet: &Fleet, run: &Run, time: Duration) -> Result<Vec<(String, u32)>> {
    let mut last: BTreeMap<&str, String> = BTreeMap::new();
    let mut moves: BTreeMap<&str, u32> = SPOKES.iter().map(|spoke| (*spoke, 0)).collect();
    interrupt::wait_for(time, || {
        fleet.check_alive()?;
        for spoke in SPOKES {
            let Some(hub) = active_uplink(fleet, spoke)? else { continue };
            let before = last.insert(spoke, hub.clone());
            if before.is_some_and(|before| before != hub) {
                *moves.entry(spoke).or_default() += 1;
                scene.say.line(format!("{:7.2} s  {spoke} routes through {hub}", run.now().as_secs_f64()));
            }
        }
        Ok(None::<()>)
    })?;
    Ok(moves.into_iter().map(|(spoke, count)| (spoke.to_owned(), count)).collect())
}

fn active_uplink(fleet: &Fleet, spoke: &str) -> Result<Option<String>> {
    let rows = fleet.links(spoke)?.map(|status| status.peer_statuses).unwrap_or_default();
    let mut active =
        rows.into_iter().filter(|row| row.role == Some(LinkRole::Uplink) && row.route == RouteState::Active);
    Ok(active.next().map(|row| row.peer))
}
