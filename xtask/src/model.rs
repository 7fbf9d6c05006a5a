//! Runs the model check of the engine at larger sizes. It refuses to hold the model: it stands beside the engine, as a
//! test of it.

use std::process::ExitCode;

use anyhow::{Context as _, Result};

use crate::place;

/// `cargo xtask model`
#[derive(Debug, clap::Args)]
pub(crate) struct ModelArgs {
    /// Only models whose name contains this
    filter: Option<String>,
}

/// Runs the tests named `model` of the engine with the larger sizes switched on.
pub(crate) fn run(args: &ModelArgs) -> Result<ExitCode> {
    let mut command = place::cargo(&["test", "--package", "spanwire-engine", "--test", "model", "--"]);
    command.arg("--nocapture").args(&args.filter).env("SPANWIRE_MODEL", "large");
    let status = command.status().context("starting cargo test")?;
    Ok(if status.success() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}
