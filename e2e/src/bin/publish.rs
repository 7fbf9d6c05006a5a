//! The publishing bench. It refuses a verdict on fewer than three rounds.

use std::{path::PathBuf, process::ExitCode};

use anyhow::{Context as _, Result};
use clap::Parser;
use e2e::{
    Say, interrupt,
    publish::{Plan, run},
    say,
};

/// The controller's first pass over 1,000 gateways in ten networks, beside a plain client that writes the same objects
#[derive(Debug, Parser)]
#[command(name = "publish", bin_name = "cargo xtask bench publish")]
struct Cli {
    /// The program `spanwire`
    #[arg(long)]
    spanwire: PathBuf,
    /// Rounds; each has one turn of both
    #[arg(long, default_value_t = 3, value_parser = clap::value_parser!(u32).range(3..))]
    rounds: u32,
    /// Prints one JSON document on standard output, progress on standard error
    #[arg(long)]
    json: bool,
}

fn main() -> ExitCode {
    say::end(measure(&Cli::parse()))
}

fn measure(cli: &Cli) -> Result<ExitCode> {
    interrupt::watch()?;
    let plan = Plan { spanwire: cli.spanwire.clone(), rounds: cli.rounds };
    let figures = run(&plan, Say::Err)?;
    if cli.json {
        println!("{}", serde_json::to_string_pretty(&figures).context("writing the document")?);
        return Ok(ExitCode::SUCCESS);
    }
    println!(
        "controller / plain client = {:.2} of its time for {} writes; a controller at rest has {} MiB",
        figures.ratio(),
        figures.writes,
        figures.resident >> 20
    );
    Ok(ExitCode::SUCCESS)
}
