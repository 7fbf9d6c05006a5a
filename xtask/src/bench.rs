//! Runs the benches. It refuses to compare with numbers of other machines: both sides run here, in one run.

use std::{
    path::PathBuf,
    process::{Command, ExitCode},
};

use anyhow::{Context as _, Result, bail};
use clap::ValueEnum;

use crate::{place, tools};

/// `cargo xtask bench`
#[derive(Debug, clap::Args)]
pub(crate) struct BenchArgs {
    /// Which bench; all without it
    bench: Option<Bench>,
    /// Flags of the bench, after `--`
    #[arg(last = true)]
    flags: Vec<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Bench {
    /// The worker's plan for 10,000 links, beside one sort-merge of the same keys
    Plan,
    /// One TCP stream through a tunnel, beside wireguard-go (needs Go to build it) and the bare path
    Throughput,
    /// The controller's first pass over 1,000 gateways, beside a plain client that writes the same objects
    Publish,
}

/// Runs them one after another.
pub(crate) fn run(args: &BenchArgs) -> Result<ExitCode> {
    let wanted = |bench| args.bench.is_none_or(|only| only == bench);
    if wanted(Bench::Plan) {
        let mut bench = place::cargo(&["bench", "--package", "spanwire-engine"]);
        finish("cargo bench", bench.args(&args.flags))?;
    }
    if wanted(Bench::Throughput) {
        throughput(&args.flags)?;
    }
    if wanted(Bench::Publish) {
        publish(&args.flags)?;
    }
    Ok(ExitCode::SUCCESS)
}

/// The operator as it is shipped, against wireguard-go as its authors publish it.
fn throughput(flags: &[String]) -> Result<()> {
    tools::ensure(&[tools::WG, tools::NFT])?;
    eprintln!("Building spanwire with the profile dist (some minutes) …");
    finish("cargo build", &mut place::cargo(&["build", "--profile", "dist", "--package", "spanwire"]))?;
    finish("cargo build", &mut place::cargo(&["build", "--package", "e2e", "--bin", "throughput"]))?;
    let folder = place::binaries()?;
    let shipped = folder.with_file_name("dist").join("spanwire");
    let mut bench = Command::new(folder.join("throughput"));
    bench.arg("--spanwire").arg(shipped).args(flags);
    match wireguard_go()? {
        Some(path) => {
            bench.arg("--wireguard-go").arg(path);
        }
        None => eprintln!("Go is missing, so there is no wireguard-go to compare with."),
    }
    finish("the bench", &mut bench)
}

/// Both sides are built the same way.
fn publish(flags: &[String]) -> Result<()> {
    finish("cargo build", &mut place::cargo(&["build", "--package", "spanwire", "--package", "e2e"]))?;
    let folder = place::binaries()?;
    let mut bench = Command::new(folder.join("publish"));
    bench.arg("--spanwire").arg(folder.join("spanwire")).args(flags);
    finish("the bench", &mut bench)
}

/// The current wireguard-go, built from its Go module.
fn wireguard_go() -> Result<Option<PathBuf>> {
    if !tools::is_there("go") {
        return Ok(None);
    }
    let folder = place::binaries()?.with_file_name("tools");
    eprintln!("Building the latest wireguard-go …");
    let mut install = Command::new("go");
    install.args(["install", "golang.zx2c4.com/wireguard@latest"]).env("GOBIN", &folder);
    finish("go install", &mut install)?;
    Ok(Some(folder.join("wireguard")))
}

fn finish(name: &str, command: &mut Command) -> Result<()> {
    let status = command.status().with_context(|| format!("starting {name}"))?;
    if status.success() { Ok(()) } else { bail!("{name} failed") }
}
