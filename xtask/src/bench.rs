//! Runs the benches. It refuses to compare with numbers of other machines: both sides run here, in one run.

use std::process::ExitCode;

use anyhow::{Context as _, Result};
use clap::ValueEnum;

use crate::place;

/// `cargo xtask bench`
#[derive(Debug, clap::Args)]
pub(crate) struct BenchArgs {
    /// Which bench; all without it
    bench: Option<Bench>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Bench {
    /// The worker's plan for 10,000 links
    Plan,
}

/// Runs them one after another.
pub(crate) fn run(args: &BenchArgs) -> Result<ExitCode> {
    let wanted = |bench| args.bench.is_none_or(|only| only == bench);
    if wanted(Bench::Plan) {
        let status = place::cargo(&["bench", "--package", "spanwire-engine"])
            .status()
            .context("starting cargo bench")?;
        if !status.success() {
            return Ok(ExitCode::FAILURE);
        }
    }
    Ok(ExitCode::SUCCESS)
}
