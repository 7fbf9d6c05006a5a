//! Builds and starts the end-to-end scenarios. It refuses to know them: the crate `e2e` does.

use std::process::ExitCode;

use anyhow::Result;

/// `cargo xtask e2e`
#[derive(Debug, clap::Args)]
pub(crate) struct E2eArgs {
    /// Flags of the scenarios; `cargo xtask e2e --help` lists them
    #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
    flags: Vec<String>,
}

/// Builds, then becomes the scenarios.
pub(crate) fn run(args: &E2eArgs) -> Result<ExitCode> {
    crate::demo::start("e2e", &args.flags)
}
