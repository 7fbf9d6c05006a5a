//! The chores of this repository, as `cargo xtask <chore>`. It refuses product code: what a user runs is elsewhere.

mod bench;
mod chart;
mod codegen;
mod control_plane;
mod demo;
mod e2e;
mod guest;
mod image;
mod model;
mod place;
mod step;
mod test;
mod test_kernel;
mod tidy;
mod tools;

use std::process::ExitCode;

use clap::{Parser, Subcommand};

const EXAMPLES: &str = "\
Where to begin:
  cargo xtask demo             four hosts on this machine, a hub change, every packet counted
  cargo xtask test             everything that has to hold before a change is handed in
  cargo xtask control-plane up a real API server on this machine, with our CRDs, for kubectl
  cargo xtask codegen          after a change of a kind in crates/api
  cargo xtask image            the image for clusters, as a file
  cargo xtask tidy             the rules of this repository that a machine can check, in a second";

/// The chores of this repository
#[derive(Debug, Parser)]
#[command(name = "cargo xtask", bin_name = "cargo xtask", after_help = EXAMPLES)]
struct Cli {
    #[command(subcommand)]
    chore: Chore,
}

#[derive(Debug, Subcommand)]
enum Chore {
    /// Builds and runs the main job on this machine: a hub change between real tunnels that loses nothing
    #[command(disable_help_flag = true)]
    Demo(demo::DemoArgs),
    /// Runs every check and test; says what it skips and why
    Test(test::TestArgs),
    /// Runs the tests of the dataplane and the main job on the kernel's own WireGuard, in a guest where need be
    TestKernel(test_kernel::TestKernelArgs),
    /// Checks crate edges, file sizes, names, first lines, orphaned files and forbidden words
    Tidy,
    /// Writes the generated files: CRDs, roles and the table of values under charts/spanwire, and docs/api.md
    Codegen(codegen::CodegenArgs),
    /// Lints the chart and compares what its value sets render to with what is recorded
    Chart(chart::ChartArgs),
    /// Makes the image with spanwire, spanwirectl and nft, and its bill of materials; needs no Docker
    Image(image::ImageArgs),
    /// Starts and ends real API servers on this machine for hand work: up, down, kubeconfig, build
    #[command(disable_help_flag = true)]
    ControlPlane(control_plane::ControlPlaneArgs),
    /// Measures: the engine's plan, and the throughput of a tunnel
    Bench(bench::BenchArgs),
    /// Checks the engine against every interleaving at sizes that take too long for the test run
    Model(model::ModelArgs),
    /// Runs the end-to-end scenarios
    #[command(disable_help_flag = true)]
    E2e(e2e::E2eArgs),
}

fn main() -> ExitCode {
    let done = match Cli::parse().chore {
        Chore::Demo(args) => demo::run(&args),
        Chore::Test(args) => test::run(&args),
        Chore::TestKernel(args) => test_kernel::run(&args),
        Chore::Tidy => tidy::run(),
        Chore::Codegen(args) => codegen::run(&args),
        Chore::Chart(args) => chart::run(&args),
        Chore::Image(args) => image::run(&args),
        Chore::ControlPlane(args) => control_plane::run(&args),
        Chore::Bench(args) => bench::run(&args),
        Chore::Model(args) => model::run(&args),
        Chore::E2e(args) => e2e::run(&args),
    };
    done.unwrap_or_else(|error| {
        eprintln!("error: {error:#}");
        ExitCode::FAILURE
    })
}
