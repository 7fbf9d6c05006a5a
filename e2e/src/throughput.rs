//! One TCP stream through a tunnel on this machine: ours, wireguard-go, and the bare path as the ceiling, side by side.
//! It refuses to compare rounds of different runs: all of them take turns.

mod stream;
mod tunnel;

use std::{path::PathBuf, time::Duration};

use anyhow::{Context as _, Result};
use serde::Serialize;
use spanwire_testkit::lab::{Host, Lab};

use stream::Carried;
pub use tunnel::Carrier;

use crate::{Say, interrupt};

/// How to measure.
#[derive(Debug, Clone)]
pub struct Plan {
    /// `spanwire`, built as it is shipped.
    pub spanwire: PathBuf,
    /// The program of wireguard-go; `None`: it is left out.
    pub wireguard_go: Option<PathBuf>,
    /// Rounds; each carrier has one turn in each.
    pub rounds: u32,
    /// Length of a turn.
    pub turn: Duration,
}

/// All turns of one carrier.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Turns {
    /// The carrier.
    pub carrier: String,
    /// Gbit/s of each turn.
    pub gbit_per_second: Vec<f64>,
    /// Their median.
    pub median: f64,
    /// Processor seconds of both ends for each gigabyte, user and system, by turn. The bare path takes none.
    pub seconds_per_gigabyte: Vec<f64>,
    /// Their median.
    pub median_seconds: f64,
}

/// Runs all rounds.
///
/// # Errors
/// A host, a tunnel or a stream could not be made.
pub fn run(plan: &Plan, say: Say) -> Result<Vec<Turns>> {
    let mut carriers = vec![Carrier::Bare, Carrier::Spanwire(plan.spanwire.clone())];
    carriers.extend(plan.wireguard_go.clone().map(Carrier::WireguardGo));
    let mut carried: Vec<Vec<Carried>> = vec![Vec::new(); carriers.len()];
    for round in 1..=plan.rounds {
        for (carrier, carried) in carriers.iter().zip(&mut carried) {
            interrupt::pause(Duration::ZERO)?;
            let turn = turn(carrier, plan.turn).with_context(|| format!("a turn of {carrier}"))?;
            say.line(format!(
                "round {round}/{}  {:14} {:6.2} Gbit/s  {:6.2} CPU s/GB",
                plan.rounds,
                carrier.to_string(),
                turn.gbit_per_second(),
                turn.seconds_per_gigabyte()
            ));
            carried.push(turn);
        }
    }
    let turns = carriers.iter().zip(carried).map(|(carrier, carried)| {
        let gbit_per_second: Vec<f64> = carried.iter().map(Carried::gbit_per_second).collect();
        let seconds_per_gigabyte: Vec<f64> = carried.iter().map(Carried::seconds_per_gigabyte).collect();
        Turns {
            carrier: carrier.to_string(),
            median: median(&gbit_per_second),
            gbit_per_second,
            median_seconds: median(&seconds_per_gigabyte),
            seconds_per_gigabyte,
        }
    });
    Ok(turns.collect())
}

/// One turn, on two hosts of its own: nothing of an earlier one is left.
fn turn(carrier: &Carrier, time: Duration) -> Result<Carried> {
    let mut lab = Lab::new().context("making network namespaces")?;
    let hosts: [Host; 2] = [lab.host("left")?, lab.host("right")?];
    let tunnel = carrier.connect(&hosts)?;
    stream::measure(&hosts, tunnel.address(1), time, || tunnel.busy())
}

fn median(rates: &[f64]) -> f64 {
    let mut sorted = rates.to_vec();
    sorted.sort_by(f64::total_cmp);
    let middle = sorted.len() / 2;
    match (sorted.get(middle), sorted.len() % 2) {
        (None, _) => 0.0,
        (Some(one), 1) => *one,
        (Some(upper), _) => f64::midpoint(*upper, sorted[middle - 1]),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn medians() {
        for (rates, expected) in [(&[][..], 0.0), (&[3.0, 1.0, 2.0], 2.0), (&[1.0, 4.0, 2.0, 3.0], 2.5)] {
            assert!((median(rates) - expected).abs() < 1e-9, "{rates:?}");
        }
    }
}
