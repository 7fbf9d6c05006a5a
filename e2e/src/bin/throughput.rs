//! The throughput bench. It refuses a verdict on fewer than five rounds.

use std::{path::PathBuf, process::ExitCode, time::Duration};

use anyhow::{Context as _, Result};
use clap::Parser;
use e2e::{
    Say, interrupt, say,
    throughput::{Plan, Turns, run},
};
use spanwire_testkit::lab::userns;

/// One TCP stream through a tunnel on this machine, beside wireguard-go and the bare path
#[derive(Debug, Parser)]
#[command(name = "throughput", bin_name = "cargo xtask bench throughput")]
struct Cli {
    /// The program `spanwire`, built as it is shipped
    #[arg(long)]
    spanwire: PathBuf,
    /// The program of wireguard-go; left out where it is not given
    #[arg(long)]
    wireguard_go: Option<PathBuf>,
    /// Rounds; each carrier has one turn in each
    #[arg(long, default_value_t = 5)]
    rounds: u32,
    /// Seconds of a turn
    #[arg(long, default_value_t = 4)]
    seconds: u64,
    /// Prints one JSON document on standard output, progress on standard error
    #[arg(long)]
    json: bool,
}

fn main() -> ExitCode {
    say::end(measure(&Cli::parse()))
}

fn measure(cli: &Cli) -> Result<ExitCode> {
    if userns::is_needed() {
        userns::enter().context(userns::REMEDY)?;
    }
    interrupt::watch()?;
    let plan = Plan {
        spanwire: cli.spanwire.clone(),
        wireguard_go: cli.wireguard_go.clone(),
        rounds: cli.rounds,
        turn: Duration::from_secs(cli.seconds),
    };
    let turns = run(&plan, if cli.json { Say::Err } else { Say::Out })?;
    if cli.json {
        println!("{}", serde_json::to_string_pretty(&turns).context("writing the document")?);
        return Ok(ExitCode::SUCCESS);
    }
    for Turns { carrier, median, median_seconds, .. } in &turns {
        println!("{carrier:14} median {median:6.2} Gbit/s  {median_seconds:6.2} CPU s/GB");
    }
    let of = |name: &str| turns.iter().find(|turns| turns.carrier == name);
    if let Some((ours, theirs)) = of("spanwire").zip(of("wireguard-go")) {
        println!(
            "spanwire / wireguard-go = {:.2} of its rate, {:.2} of its processor time ({} rounds)",
            ours.median / theirs.median,
            ours.median_seconds / theirs.median_seconds,
            cli.rounds
        );
    }
    Ok(ExitCode::SUCCESS)
}
