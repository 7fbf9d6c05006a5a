//! Builds and starts the demo. It refuses to be the demo: that is a program of the crate `e2e`, which the end-to-end
//! scenarios share.

use std::{
    ffi::OsString,
    os::unix::process::CommandExt as _,
    process::{Command, ExitCode, Stdio},
    time::Instant,
};

use anyhow::{Context as _, Result, bail};

use crate::{place, tools};

/// `cargo xtask demo`
#[derive(Debug, clap::Args)]
pub(crate) struct DemoArgs {
    /// Flags of the demo; `cargo xtask demo --help` lists them
    #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
    flags: Vec<String>,
}

/// Builds, then becomes the demo.
pub(crate) fn run(args: &DemoArgs) -> Result<ExitCode> {
    start("demo", &args.flags, &[], &[])
}

/// Builds the operator, one program of `e2e` and what else that one starts, then becomes it.
pub(crate) fn start(
    program: &str,
    flags: &[String],
    more: &[&str],
    variables: &[(&str, OsString)],
) -> Result<ExitCode> {
    if !asks_for_help(flags) {
        tools::ensure(&[tools::NFT])?;
    }
    build(&[&["spanwire", program], more].concat())?;
    let folder = place::binaries()?;
    let mut command = Command::new(folder.join(program));
    command.args(flags).env("SPANWIRE_BINARY", folder.join("spanwire"));
    command.envs(variables.iter().map(|(name, value)| (name, value)));
    let failed = command.exec();
    Err(failed).with_context(|| format!("starting {}", folder.join(program).display()))
}

/// Whether nothing is run.
pub(crate) fn asks_for_help(flags: &[String]) -> bool {
    flags.iter().any(|flag| flag == "--help" || flag == "-h")
}

/// Builds programs with the features of the tests, so that nothing is built twice.
pub(crate) fn build(programs: &[&str]) -> Result<()> {
    eprintln!("Building {} (the first time takes some minutes) …", programs.join(" and "));
    let begun = Instant::now();
    let bins = programs.iter().flat_map(|program| ["--bin", program]);
    let status = place::cargo(&["build", "--workspace", "--all-features"])
        .args(bins)
        .stdin(Stdio::null())
        .stdout(std::io::stderr())
        .status()
        .context("starting cargo build")?;
    if !status.success() {
        bail!("the build failed");
    }
    eprintln!("Built in {:.1} s.", begun.elapsed().as_secs_f64());
    Ok(())
}
