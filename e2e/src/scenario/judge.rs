//! What a run must keep, and whether it did. It refuses to look at the product: datagrams, streams and the machine's own
//! drops decide.

use std::time::Duration;

use spanwire_api::Phase;
use spanwire_testkit::prober::{Pair, PairReport, Stats};

use super::{Scene, phases::Phases};
use crate::{
    Outcome, Provider, Scenario, Setup, Transit,
    measure::{Keeps, Load, Measured, millis},
    outcome::{PairOutcome, StreamOutcome},
};

/// A stream that stands still longer than this has failed.
const LONGEST_STALL: Duration = Duration::from_millis(250);
/// The same on clusters that share one machine: while their kubelets start containers, a dataplane may have to wait for a
/// processor, and packets with it.
const LONGEST_STALL_ON_CLUSTERS: Duration = Duration::from_secs(1);
/// What was sent this long before a phase was seen to begin may have met the phase.
const MARGIN: Duration = Duration::from_millis(100);

/// How long each pair has to keep its path.
pub(crate) fn expectations(setup: &Setup, pairs: &[Pair]) -> Vec<Keeps> {
    let keeps = |from: &str, to: &str| match setup.transit {
        Transit::Routed => Keeps::Always,
        Transit::Isolated => isolated(setup.scenario, from, to),
    };
    pairs.iter().map(|pair| keeps(pair.from.name(), pair.to.name())).collect()
}

fn isolated(scenario: Scenario, from: &str, to: &str) -> Keeps {
    let with_hub = |keeps| if [from, to].contains(&"hub-a") { Keeps::Always } else { keeps };
    match scenario {
        Scenario::HubChange | Scenario::Restart | Scenario::Outage | Scenario::Latency | Scenario::Writes => {
            isolated_hub_change(from, to)
        }
        Scenario::FullMesh => Keeps::Always,
        Scenario::ModeChange => with_hub(Keeps::Never),
        Scenario::Members
        | Scenario::KeyLoss
        | Scenario::Emptied
        | Scenario::Restored
        | Scenario::Rest
        | Scenario::Chart => with_hub(Keeps::Never),
        Scenario::MeshToHub => with_hub(Keeps::Until(Phase::Switching)),
        Scenario::Failover if is_hub(from) || is_hub(to) => Keeps::Always,
        Scenario::Failover => Keeps::Never,
    }
}

/// Hubs reach everybody; the old one is a spoke like any other from Removing on, the new one was one before.
fn isolated_hub_change(from: &str, to: &str) -> Keeps {
    match [from, to] {
        ["hub-a", "hub-b"] | ["hub-b", "hub-a"] => Keeps::Always,
        pair if pair.contains(&"hub-a") => Keeps::Until(Phase::Removing),
        pair if pair.contains(&"hub-b") => Keeps::Afterwards,
        _ => Keeps::Never,
    }
}

fn is_hub(name: &str) -> bool {
    name.starts_with("hub-")
}

/// The pairs that have a path at the beginning.
pub(crate) fn reachable(pairs: &[Pair], expected: &[Keeps]) -> Vec<Pair> {
    pairs
        .iter()
        .zip(expected)
        .filter(|(_, keeps)| matches!(keeps, Keeps::Always | Keeps::Until(_)))
        .map(|(pair, _)| pair.clone())
        .collect()
}

/// The pairs that keep their path to the end.
pub(crate) fn steady(pairs: &[Pair], expected: &[Keeps]) -> Vec<Pair> {
    pairs
        .iter()
        .zip(expected)
        .filter(|(_, keeps)| **keeps == Keeps::Always)
        .map(|(pair, _)| pair.clone())
        .collect()
}

/// The outcome of a change in which nothing may be lost.
pub(crate) fn lossless(scene: &Scene<'_>, measured: &Measured, phases: &Phases) -> Outcome {
    let mut outcome = Outcome::empty(scene.setup, scene.quiet);
    outcome.phases = phases.outcome();
    outcome.overload = measured.drops;
    let mut sum = Stats::default();
    for (pair, keeps) in measured.report.pairs.iter().zip(&scene.expected) {
        let (from, to) = window(*keeps, phases);
        let stats = pair.window(from, to);
        sum = sum.and(stats);
        let outages = outages(pair, (from, to), phases, &measured.load);
        outcome.pairs.push(PairOutcome::new(&pair.label, keeps.to_string(), stats, outages));
    }
    outcome.sent = sum.sent;
    outcome.lost = sum.lost;
    outcome.duplicated = sum.duplicated;
    outcome.reordered = sum.reordered;
    outcome.longest_gap_ms = millis(sum.longest_gap);
    let longest = match scene.setup.provider {
        Provider::Files | Provider::Local => LONGEST_STALL,
        Provider::Kind => LONGEST_STALL_ON_CLUSTERS,
    };
    streams(&mut outcome, measured, longest);
    outcome
}

/// The time in which a pair has to have its path.
fn window(keeps: Keeps, phases: &Phases) -> (Duration, Duration) {
    match keeps {
        Keeps::Always => (Duration::ZERO, Duration::MAX),
        Keeps::Until(phase) => {
            let began = phases.began(phase).unwrap_or(Duration::MAX);
            (Duration::ZERO, began.saturating_sub(MARGIN))
        }
        Keeps::Afterwards => (phases.ended().unwrap_or(Duration::MAX), Duration::MAX),
        Keeps::Never => (Duration::ZERO, Duration::ZERO),
    }
}

fn outages(pair: &PairReport, window: (Duration, Duration), phases: &Phases, load: &Load) -> Vec<String> {
    const SHOWN: usize = 5;
    let (from, to) = window;
    let within = |(first, last): &(Duration, Duration)| *last >= from && *first < to;
    let all: Vec<_> = pair.outages().into_iter().filter(within).collect();
    let shown = all.iter().take(SHOWN).map(|(first, last)| {
        let (from, to) = (first.as_secs_f64(), last.as_secs_f64());
        let got = load.between(*first, *last);
        format!("lost from {from:.3} s to {to:.3} s{}; {got}", phases.at(*first))
    });
    let more = all.len().saturating_sub(SHOWN);
    shown.chain((more > 0).then(|| format!("and {more} more times"))).collect()
}

fn streams(outcome: &mut Outcome, measured: &Measured, longest: Duration) {
    for stream in &measured.streams {
        if stream.longest_stall > longest || stream.broken.is_some() {
            let broken = stream.broken.as_deref().unwrap_or("not broken");
            let stall = millis(stream.longest_stall);
            outcome
                .faults
                .push(format!("the TCP stream {} stood still for {stall} ms ({broken})", stream.label));
        }
        outcome.streams.push(StreamOutcome {
            pair: stream.label.clone(),
            received: stream.received,
            longest_stall_ms: millis(stream.longest_stall),
            broken: stream.broken.clone(),
        });
    }
}

/// Turns figures and faults into the verdict.
pub(crate) fn conclude(mut outcome: Outcome, sender_held_up: Duration) -> Outcome {
    if outcome.lost > 0 {
        let lost = outcome.lost;
        outcome.faults.insert(0, format!("{lost} of {} datagrams were lost", outcome.sent));
    }
    if outcome.overload.total() > 0 {
        let note = format!("this machine was overloaded meanwhile: {}", outcome.overload);
        if !outcome.faults.is_empty() {
            outcome.faults.push(note);
        }
    }
    outcome.passed = outcome.faults.is_empty();
    outcome.verdict = if outcome.passed {
        format!(
            "0 of {} datagrams lost, longest gap {} ms (the sender itself was held up for at most {} ms)",
            outcome.sent,
            outcome.longest_gap_ms,
            millis(sender_held_up)
        )
    } else {
        outcome.faults.join("; ")
    };
    outcome
}
