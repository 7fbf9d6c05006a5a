//! Everything that has to hold before a change is handed in. It refuses to be quiet about what it did not look at.

mod deny;

use std::process::{Command, ExitCode};

use anyhow::Result;

use crate::{
    chart, codegen, control_plane, guest, image, place,
    step::Steps,
    tidy,
    tools::{self, Namespaces},
};

/// `cargo xtask test`
#[derive(Debug, clap::Args)]
pub(crate) struct TestArgs {
    /// Show all output as it comes, not only that of steps that fail
    #[arg(long, short)]
    verbose: bool,
}

const STEPS: usize = 12;

/// Runs all steps; the exit code is 0 if none failed.
pub(crate) fn run(args: &TestArgs) -> Result<ExitCode> {
    let mut steps = Steps::new(STEPS, args.verbose);
    steps.command("formatting", &mut place::cargo(&["fmt", "--all", "--check"]));
    steps.check("tidy", tidy::findings);
    steps.check("generated files", || codegen::differences(false));
    chart::step(&mut steps)?;
    steps.command("clippy", &mut place::cargo(CLIPPY));
    tests(&mut steps)?;
    kernel(&mut steps)?;
    let image = "image in containers";
    match image::docker::why_not() {
        None => steps.command(image, place::cargo(TESTS).args(["--test", "image"])),
        Some(why) => steps.skip(image, why),
    }
    let mut documents = place::cargo(&["doc", "--workspace", "--all-features", "--no-deps", "--quiet"]);
    steps.command("documents", documents.env("RUSTDOCFLAGS", "-D warnings"));
    deny::run(&mut steps);
    Ok(steps.sum_up())
}

/// The kernel's WireGuard, in a guest where need be; in a process of its own, like every other step.
fn kernel(steps: &mut Steps) -> Result<()> {
    let mut command = Command::new(std::env::current_exe()?);
    command.args(["test-kernel", "--part", "dataplane", "--part", "hub-change"]).current_dir(place::root());
    match guest::why_not() {
        None => steps.command("kernel WireGuard", &mut command),
        Some(why) => steps.skip("kernel WireGuard", why),
    }
    Ok(())
}

const CLIPPY: &[&str] =
    &["clippy", "--workspace", "--all-targets", "--all-features", "--quiet", "--", "-D", "warnings"];

const TESTS: &[&str] = &["test", "--workspace", "--all-features", "--no-fail-fast"];

/// Unit, property, golden, documentation and network-namespace tests are one call of cargo; only where namespaces come
/// from differs.
fn tests(steps: &mut Steps) -> Result<()> {
    tools::ensure(&[tools::NFT, tools::WG, tools::IP])?;
    let arguments = TESTS;
    // Compiling may need the network, which a namespace does not have.
    steps.command("building tests", place::cargo(arguments).arg("--no-run"));
    control_plane::provide(steps)?;
    let name = "tests";
    let mut cargo = place::cargo(arguments);
    chart::helm_for_tests(&mut cargo);
    match tools::namespaces() {
        Namespaces::Plainly => steps.command(name, &mut cargo),
        Namespaces::AsUser => {
            let mut inside = Command::new("unshare");
            // A new namespace has its loopback down, on which the API servers of tests listen.
            inside.args(tools::USER_NAMESPACE).args(["sh", "-c", "ip link set lo up && exec \"$0\" \"$@\""]);
            inside.arg(cargo.get_program()).args(cargo.get_args());
            inside.arg("--offline").current_dir(place::root());
            chart::helm_for_tests(&mut inside);
            steps.command(name, &mut inside);
        }
        Namespaces::Forbidden(why) => {
            eprintln!("tests in network namespaces skip themselves: {why}");
            steps.command("tests without network namespaces", &mut cargo);
            steps.skip("tests in network namespaces", why);
        }
    }
    Ok(())
}
