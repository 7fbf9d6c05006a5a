//! What a run came to, as a table for people and as a document. It refuses to call anything a success that lost a
//! datagram.

use std::fmt::Write as _;

use serde::Serialize;
use spanwire_testkit::prober::Stats;

use crate::{
    Setup,
    measure::{Drops, Quiet},
};

/// A run.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Outcome {
    /// Which scenario.
    pub scenario: String,
    /// The shape at the beginning.
    pub topology: String,
    /// Whether spokes reach each other.
    pub transit: String,
    /// Whether every host had a masquerading rule and an INVALID drop.
    pub firewall: bool,
    /// The stretch in which nothing changed, before the run.
    pub quiet: Quiet,
    /// Datagrams sent of pairs while they had to keep a path.
    pub sent: u64,
    /// Of those, lost.
    pub lost: u64,
    /// Of those, how many came again.
    pub duplicated: u64,
    /// Of those, how many came after a later one.
    pub reordered: u64,
    /// The longest time without an arrival, in milliseconds.
    pub longest_gap_ms: u64,
    /// One entry an ordered pair.
    pub pairs: Vec<PairOutcome>,
    /// One entry a phase, in the order in which they were seen.
    pub phases: Vec<PhaseOutcome>,
    /// One entry a stream.
    pub streams: Vec<StreamOutcome>,
    /// Failover alone.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub failover: Option<FailoverOutcome>,
    /// What full queues of the machine dropped meanwhile.
    pub overload: Drops,
    /// Processes that were killed and started again.
    pub killed: u32,
    /// Why the run is no success; empty: it is one.
    pub faults: Vec<String>,
    /// In one sentence.
    pub verdict: String,
    /// Whether it is a success.
    pub passed: bool,
}

/// One ordered pair.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct PairOutcome {
    /// Who sent.
    pub from: String,
    /// Who received.
    pub to: String,
    /// How long it had to keep a path; the figures are about that time.
    pub keeps: String,
    /// Datagrams sent.
    pub sent: u64,
    /// Of those, lost.
    pub lost: u64,
    /// Of those, how many came again.
    pub duplicated: u64,
    /// Of those, how many came after a later one.
    pub reordered: u64,
    /// The longest time without an arrival, in milliseconds.
    pub longest_gap_ms: u64,
    /// When datagrams were lost: first and last sending time in seconds of the run, and the phase.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub outages: Vec<String>,
}

/// One phase.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct PhaseOutcome {
    /// Its name.
    pub phase: String,
    /// How long it took, in seconds.
    pub seconds: f64,
}

/// One stream.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct StreamOutcome {
    /// Who sent.
    pub pair: String,
    /// Bytes received.
    pub received: u64,
    /// The longest time without a byte, in milliseconds.
    pub longest_stall_ms: u64,
    /// Why it ended early.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub broken: Option<String>,
}

/// What a failover came to.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct FailoverOutcome {
    /// The longest time without traffic among the pairs that are left, in milliseconds.
    pub outage_ms: u64,
    /// What it may be at most, in milliseconds.
    pub goal_ms: u64,
    /// Lost among them after traffic had come back, while the host was away.
    pub lost_afterwards: u64,
    /// Lost among them while the host came back.
    pub lost_on_return: u64,
    /// Moves of the wide route a spoke made while the host was away; one is right.
    pub moves_away: Vec<(String, u32)>,
    /// Moves of the wide route a spoke made after the host had come back; one is right.
    pub moves_back: Vec<(String, u32)>,
}

impl PairOutcome {
    /// From the count of a pair.
    pub(crate) fn new(label: &str, keeps: String, stats: Stats, outages: Vec<String>) -> Self {
        let (from, to) = label.split_once('>').unwrap_or((label, ""));
        Self {
            from: from.to_owned(),
            to: to.to_owned(),
            keeps,
            sent: stats.sent,
            lost: stats.lost,
            duplicated: stats.duplicated,
            reordered: stats.reordered,
            longest_gap_ms: crate::measure::millis(stats.longest_gap),
            outages,
        }
    }
}

impl Outcome {
    /// An outcome without figures.
    pub(crate) fn empty(setup: &Setup, quiet: Quiet) -> Self {
        Self {
            scenario: setup.scenario.to_string(),
            topology: setup.topology.to_string(),
            transit: setup.transit.to_string(),
            firewall: setup.firewall,
            quiet,
            sent: 0,
            lost: 0,
            duplicated: 0,
            reordered: 0,
            longest_gap_ms: 0,
            pairs: Vec::new(),
            phases: Vec::new(),
            streams: Vec::new(),
            failover: None,
            overload: Drops::default(),
            killed: 0,
            faults: Vec::new(),
            verdict: String::new(),
            passed: false,
        }
    }

    /// Makes it a failure, for a reason that no datagram shows.
    pub(crate) fn fail(&mut self, fault: String) {
        self.faults.push(fault);
        self.passed = false;
        self.verdict = self.faults.join("; ");
    }

    /// The table for people.
    pub fn table(&self) -> String {
        let mut text = String::from(
            "\npair                     sent    lost  duplicated  longest gap  keeps its path\n",
        );
        for pair in &self.pairs {
            let name = format!("{} > {}", pair.from, pair.to);
            let _ = writeln!(
                text,
                "{name:20} {:>8} {:>7} {:>11} {:>9} ms  {}",
                pair.sent, pair.lost, pair.duplicated, pair.longest_gap_ms, pair.keeps
            );
            pair.outages.iter().for_each(|outage| {
                let _ = writeln!(text, "    {outage}");
            });
        }
        let _ = writeln!(
            text,
            "{:20} {:>8} {:>7} {:>11} {:>9} ms",
            "all", self.sent, self.lost, self.duplicated, self.longest_gap_ms
        );
        for stream in &self.streams {
            let broken = stream.broken.as_deref().unwrap_or("");
            let _ = writeln!(
                text,
                "TCP {:20} longest stall {:>5} ms {broken}",
                stream.pair, stream.longest_stall_ms
            );
        }
        text
    }
}
