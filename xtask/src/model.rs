//! Runs the model check of the engine at larger sizes. It refuses to hold the model: that stands beside the engine's
//! twins in `testkit`, and the small sizes are part of `cargo xtask test`.

use std::process::ExitCode;

use anyhow::{Context as _, Result, bail};

use crate::{place, step::Steps};

/// `cargo xtask model`
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct ModelArgs {
    /// Only runs whose name contains this
    #[arg(long, default_value = "")]
    only: String,
    /// Stop each run after this many states
    #[arg(long, default_value_t = 20_000_000)]
    limit: u64,
    /// Flags of one run of your own, after `--`; `cargo xtask model -- --help` lists them
    #[arg(last = true)]
    own: Vec<String>,
}

const EXAMPLES: &str = "\
Examples:
  cargo xtask model                                  all runs
  cargo xtask model --only restart                   those with restarts
  cargo xtask model -- --gateways 4 --faults 1       one run of your own";

/// Name and flags of each run. A dead member is waited for in each of the four phases.
const RUNS: [(&str, &str); 12] = [
    ("hub change, one spoke", "--gateways 3"),
    ("hub change, two spokes", "--gateways 4"),
    ("hub change, two edits", "--gateways 3 --hubs 0 1 0 --edits 2"),
    ("hub change, one broken link", "--gateways 3 --faults 1"),
    ("hub change, restarts", "--gateways 3 --restarts 2"),
    ("hub change, time-outs", "--gateways 3 --faults 1 --times 1"),
    ("hub change, a dead spoke", "--gateways 4 --dead 3 --times 4"),
    ("hub change, a dead spoke, Hold", "--gateways 4 --dead 3 --times 4 --hold"),
    ("hub change, a standby is kept", "--gateways 4 --hubs 0,2 1,2"),
    ("hub and standby swapped", "--gateways 3 --hubs 0,1 1,0"),
    ("mesh to hub, one broken link", "--gateways 3 --to-hub --faults 1"),
    ("hub to mesh, one broken link", "--gateways 3 --to-mesh --faults 1"),
];

/// Runs them one after another; a violation fails.
pub(crate) fn run(args: &ModelArgs) -> Result<ExitCode> {
    build()?;
    let program = place::binaries()?.with_file_name("release").join("model");
    if !args.own.is_empty() {
        let status =
            std::process::Command::new(&program).args(&args.own).status().context("starting model")?;
        return Ok(if status.success() { ExitCode::SUCCESS } else { ExitCode::FAILURE });
    }
    let chosen: Vec<_> = RUNS.iter().filter(|(name, _)| name.contains(&args.only)).collect();
    let mut steps = Steps::new(chosen.len(), true);
    for (name, flags) in chosen {
        let mut command = std::process::Command::new(&program);
        command.args(flags.split_whitespace()).arg("--limit").arg(args.limit.to_string());
        steps.command(name, &mut command);
    }
    Ok(steps.sum_up())
}

fn build() -> Result<()> {
    eprintln!("Building the model with optimisation …");
    let status =
        place::cargo(&["build", "--release", "--quiet", "--package", "spanwire-testkit", "--bin", "model"])
            .status()
            .context("starting cargo build")?;
    if status.success() { Ok(()) } else { bail!("the build failed") }
}
