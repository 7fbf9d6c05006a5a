//! The end-to-end scenarios, one after another, on a provider of hosts. It refuses to stop at the first that fails.

use std::process::ExitCode;

use anyhow::{Context as _, Result};
use clap::{Parser, ValueEnum};
use e2e::{Say, Scenario, Setup, interrupt, scenario};
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
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Provider {
    /// Network namespaces of this machine, the operator as processes, a directory as control store
    Local,
}

fn main() -> ExitCode {
    run(&Cli::parse()).unwrap_or_else(|error| {
        eprintln!("error: {error:#}");
        ExitCode::FAILURE
    })
}

fn run(cli: &Cli) -> Result<ExitCode> {
    match cli.provider {
        Provider::Local if userns::is_needed() => userns::enter().context(userns::REMEDY)?,
        Provider::Local => {}
    }
    interrupt::watch()?;
    let scenarios = if cli.scenarios.is_empty() { &[Scenario::HubChange][..] } else { &cli.scenarios };
    let (mut passed, mut failed) = (0, 0);
    for scenario in scenarios {
        let setup = Setup { rate: cli.rate, ..Setup::for_scenario(*scenario) };
        eprintln!("== {scenario}");
        let (good, words) = match scenario::run(&setup, Say::Err) {
            Ok((_fleet, outcome)) => (outcome.passed, outcome.verdict),
            Err(error) => (false, format!("{error:#}")),
        };
        println!("{scenario}: {}: {words}", if good { "passed" } else { "FAILED" });
        *(if good { &mut passed } else { &mut failed }) += 1;
        if interrupt::is_interrupted() {
            break;
        }
    }
    println!("{passed} passed, {failed} failed, 0 skipped");
    Ok(if failed == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}
