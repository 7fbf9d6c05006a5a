//! Real API servers for hand work and for the tests. It refuses to hold their code: that stands in `testkit`, where
//! tests find the same programs.

use std::{
    os::unix::process::CommandExt as _,
    process::{Command, ExitCode, Stdio},
};

use anyhow::{Context as _, Result, bail};

use crate::{place, step::Steps, tools};

/// `cargo xtask control-plane`
#[derive(Debug, clap::Args)]
pub(crate) struct ControlPlaneArgs {
    /// Command and flags; `cargo xtask control-plane --help` lists them
    #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
    flags: Vec<String>,
}

const PROGRAM: &str = "control-plane";
/// Where a user has the programs already.
const ASSETS: &str = "KUBEBUILDER_ASSETS";

/// Builds the program of `testkit`, then becomes it.
pub(crate) fn run(args: &ControlPlaneArgs) -> Result<ExitCode> {
    let status = place::cargo(&["build", "--quiet", "--package", "spanwire-testkit"])
        .args(["--features", PROGRAM, "--bin", PROGRAM])
        .stdin(Stdio::null())
        .stdout(std::io::stderr())
        .status()
        .context("starting cargo build")?;
    if !status.success() {
        bail!("the build failed");
    }
    let program = place::binaries()?.join(PROGRAM);
    let failed = Command::new(&program).args(&args.flags).exec();
    Err(failed).with_context(|| format!("starting {}", program.display()))
}

/// Makes sure that the tests find kube-apiserver and etcd; after the tests were built, which builds the program, too.
/// Where there is no way to get them the tests that need them skip themselves, and this says so; not where `CI` is
/// set: there they fail.
pub(crate) fn provide(steps: &mut Steps) -> Result<()> {
    let named = std::env::var_os(ASSETS).is_some_and(|folder| !folder.is_empty());
    let in_ci = std::env::var("CI").is_ok_and(|value| !value.is_empty() && value != "false");
    let program = place::binaries()?.join(PROGRAM);
    let name = "kube-apiserver and etcd";
    if named || in_ci || tools::is_there("go") {
        steps.command(name, Command::new(program).arg("build"));
    } else {
        let why = "Go is missing: install it from https://go.dev/dl (Debian: golang-go), or let KUBEBUILDER_ASSETS name \
                   a folder with kube-apiserver and etcd; the tests on a real API server do not run";
        steps.skip(name, why.to_owned());
    }
    Ok(())
}
