//! The end-to-end scenarios, one after another, on a provider of hosts. It refuses to stop at the first that fails.

use std::process::ExitCode;

use anyhow::{Context as _, Result};
use clap::Parser;
use e2e::{Laggard, Outcome, Provider, Say, Scenario, Setup, interrupt, scenario};
use spanwire_engine::Phase;
use spanwire_testkit::lab::userns;

/// Runs the end-to-end scenarios
#[derive(Debug, Parser)]
#[command(name = "e2e", bin_name = "cargo xtask e2e")]
struct Cli {
    /// Where hosts come from
    #[arg(long, value_enum, default_value_t = Provider::Local)]
    provider: Provider,
    /// Only these scenarios [default: hub-change]
    #[arg(value_enum)]
    scenarios: Vec<Scenario>,
    /// Datagrams a second and pair
    #[arg(long, default_value_t = 500)]
    rate: u32,
    /// Ends the API servers of all workers once their links work: they go on with what they have on record
    #[arg(long)]
    own_clusters_away: bool,
    /// Instead: hub changes with a phase left out, which must lose packets, beside the same ones with all phases
    #[arg(long, conflicts_with_all = ["scenarios", "provider"])]
    without_phases: bool,
}

/// One run and what is expected of it.
struct Case {
    name: String,
    setup: Setup,
    must_lose: bool,
}

impl Cli {
    fn cases(&self) -> Vec<Case> {
        if self.without_phases {
            return without_phases(self.rate);
        }
        let scenarios = if self.scenarios.is_empty() { &[Scenario::HubChange][..] } else { &self.scenarios };
        let case = |scenario: &Scenario| Case {
            name: scenario.to_string(),
            setup: Setup {
                provider: self.provider,
                own_clusters_away: self.own_clusters_away,
                rate: self.rate,
                ..Setup::for_scenario(*scenario)
            },
            must_lose: false,
        };
        scenarios.iter().map(case).collect()
    }
}

/// What Adding, Switching and Demoting wait for is slow here; what Removing waits for is only that old links are gone.
fn without_phases(rate: u32) -> Vec<Case> {
    let runs = [
        (Some(Phase::Adding), None),
        (Some(Phase::Switching), Some(Laggard::Spoke)),
        (Some(Phase::Demoting), Some(Laggard::OldHub)),
        (None, Some(Laggard::Spoke)),
        (None, Some(Laggard::OldHub)),
    ];
    let case = |(leave_out, laggard): (Option<Phase>, Option<Laggard>)| {
        let phases = leave_out.map_or("all phases".to_owned(), |phase| format!("without {}", phase.as_str()));
        let slow = match laggard {
            None => "",
            Some(Laggard::Spoke) => ", a slow spoke",
            Some(Laggard::OldHub) => ", a slow old hub",
        };
        Case {
            name: format!("hub-change, {phases}{slow}"),
            setup: Setup { rate, leave_out, laggard, ..Setup::for_scenario(Scenario::HubChange) },
            must_lose: leave_out.is_some(),
        }
    };
    runs.into_iter().map(case).collect()
}

fn main() -> ExitCode {
    run(&Cli::parse()).unwrap_or_else(|error| {
        eprintln!("error: {error:#}");
        ExitCode::FAILURE
    })
}

fn run(cli: &Cli) -> Result<ExitCode> {
    if userns::is_needed() {
        userns::enter().context(userns::REMEDY)?;
    }
    interrupt::watch()?;
    let (mut passed, mut failed) = (0, 0);
    for case in cli.cases() {
        eprintln!("== {}", case.name);
        let (good, words) = match scenario::run(&case.setup, Say::Err) {
            Ok((_fleet, outcome)) => judge(&case, &outcome),
            Err(error) => (false, format!("{error:#}")),
        };
        println!("{}: {}: {words}", case.name, if good { "passed" } else { "FAILED" });
        *(if good { &mut passed } else { &mut failed }) += 1;
        if interrupt::is_interrupted() {
            break;
        }
    }
    println!("{passed} passed, {failed} failed, 0 skipped");
    Ok(if failed == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn judge(case: &Case, outcome: &Outcome) -> (bool, String) {
    if case.must_lose {
        let words = format!("{} of {} datagrams lost, as they must be", outcome.lost, outcome.sent);
        return if outcome.lost > 0 {
            (true, words)
        } else {
            (false, "nothing was lost: what is the phase for?".to_owned())
        };
    }
    (outcome.passed, outcome.verdict.clone())
}
