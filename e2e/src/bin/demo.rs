//! The demo: the main job on this machine. It refuses to leave anything behind: everything it made goes with it.

use std::{path::PathBuf, process::ExitCode};

use anyhow::{Context as _, Result};
use clap::Parser;
use e2e::{Fleet, Laggard, Mode, Say, Scenario, Setup, Topology, Transit, interrupt, say, scenario};
use spanwire_engine::Phase;
use spanwire_testkit::lab::userns;

const AFTER: &str = "\
Four hosts (two hubs, two spokes), each a network namespace with its own `spanwire worker` and `spanwire dataplane`,
and one `spanwire controller`; a directory of YAML files; userspace WireGuard. All twelve ordered pairs are measured
with numbered datagrams from before the change to after it.

Exit codes: 0 nothing was lost, 1 something was lost or went wrong.

Examples:
  cargo xtask demo
  cargo xtask demo --json > result.json
  cargo xtask demo --scenario restart          kills every worker and the controller in each phase
  cargo xtask demo --scenario failover         cuts the active hub's host off
  cargo xtask demo --firewall                  with a masquerading rule and an INVALID drop on every host
  cargo xtask demo --keep                      leaves it running and says how to look inside";

/// A hub change between real tunnels on this machine, with every packet counted
#[derive(Debug, Parser)]
#[command(name = "demo", bin_name = "cargo xtask demo", after_help = AFTER)]
struct Cli {
    /// What happens while everything is measured
    #[arg(long, value_enum, default_value_t = Scenario::HubChange)]
    scenario: Scenario,
    /// The declared shape at the beginning [default: what the scenario begins with; mesh alone means mesh-to-hub]
    #[arg(long, value_enum)]
    topology: Option<Topology>,
    /// Whether spokes reach each other through the hub
    #[arg(long, value_enum, default_value_t = Transit::Routed)]
    transit: Transit,
    /// Which WireGuard carries the tunnels
    #[arg(long, value_enum, default_value_t = Mode::Userspace)]
    mode: Mode,
    /// Gives every host a masquerading rule and an INVALID drop, and runs one paced TCP stream a pair beside the rest
    #[arg(long)]
    firewall: bool,
    /// Datagrams a second and pair; lowered where this machine does not carry them at rest
    #[arg(long, default_value_t = 1000)]
    rate: u32,
    /// Leaves one phase out, by a controller of the tests' own: this loses packets, and shows what the phase is for
    #[arg(long, hide = true, value_parser = phase)]
    leave_out: Option<Phase>,
    /// Stops one worker (SIGSTOP) for 6 s in the middle of the hub change, to show what the phases wait for
    #[arg(long, hide = true, value_enum)]
    laggard: Option<Laggard>,
    /// Prints one JSON document on standard output, progress on standard error
    #[arg(long)]
    json: bool,
    /// Keeps objects, statuses and logs in this new folder
    #[arg(long, value_name = "FOLDER")]
    files: Option<PathBuf>,
    /// Leaves everything running until Ctrl-C and says how to look inside
    #[arg(long)]
    keep: bool,
}

impl Cli {
    fn setup(&self) -> Setup {
        let mesh = self.topology == Some(Topology::Mesh) && self.scenario == Scenario::HubChange;
        let scenario = if mesh { Scenario::MeshToHub } else { self.scenario };
        let common = Setup::for_scenario(scenario);
        Setup {
            topology: self.topology.unwrap_or(common.topology),
            transit: self.transit,
            mode: self.mode,
            firewall: self.firewall,
            rate: self.rate,
            leave_out: self.leave_out,
            laggard: self.laggard,
            files: self.files.clone(),
            ..common
        }
    }
}

fn phase(text: &str) -> Result<Phase, String> {
    let known = || Phase::ALL.map(Phase::as_str).join(", ");
    Phase::ALL.into_iter().find(|phase| phase.as_str().eq_ignore_ascii_case(text)).ok_or_else(known)
}

fn main() -> ExitCode {
    say::end(run(&Cli::parse()))
}

fn run(cli: &Cli) -> Result<ExitCode> {
    let setup = cli.setup();
    setup.check()?;
    if userns::is_needed() {
        userns::enter().context(userns::REMEDY)?;
    }
    interrupt::watch()?;
    let say = if cli.json { Say::Err } else { Say::Out };
    let (fleet, outcome) = scenario::run(&setup, say).map_err(|failed| failed.error)?;
    say.line(outcome.table());
    let word = if outcome.passed { "PASSED" } else { "FAILED" };
    say.line(format!("{word}: {}", outcome.verdict));
    if cli.json {
        println!("{}", serde_json::to_string_pretty(&outcome).context("writing the document")?);
    }
    if cli.keep {
        keep(&fleet, say);
    }
    Ok(if outcome.passed { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// Waits for Ctrl-C.
fn keep(fleet: &Fleet, say: Say) {
    say.line(format!("\nEverything runs on. The files are in {}", fleet.directory().display()));
    say.line("  edit control/gatewaynetworks/demo.yaml and see what happens; statuses stand beside it\n");
    for line in fleet.how_to_look() {
        say.line(format!("  {line}"));
    }
    say.line("\nCtrl-C ends it and takes everything away.");
    while !interrupt::is_interrupted() {
        if interrupt::pause(std::time::Duration::from_secs(3600)).is_err() {
            return;
        }
    }
}
