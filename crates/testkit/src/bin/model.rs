//! The model check from the command line. It refuses to choose for you what is large: `cargo xtask model` does.

use std::{process::ExitCode, time::Instant};

use clap::Parser;
use spanwire_engine::{LinkRole, OnTimeout};
use spanwire_testkit::model::{Outcome, Rule, Setup, explore};

/// Explore every interleaving of a hub change or a change of topology with the real engine.
#[derive(Parser)]
struct Arguments {
    /// Lists of hubs between which the declaration is edited, by gateway number: `0 1` is A and B, `0,2` A with standby C.
    #[arg(long, num_args = 1.., default_values = ["0", "1"])]
    hubs: Vec<String>,
    /// Members of each of those declarations, by gateway number; absent: everybody.
    #[arg(long, num_args = 1..)]
    members: Vec<String>,
    /// Edits go to later declarations only.
    #[arg(long)]
    forward: bool,
    /// How many gateways there are (2 to 5).
    #[arg(long, default_value_t = 3)]
    gateways: usize,
    /// A change of topology instead: mesh to hub and spoke.
    #[arg(long, conflicts_with = "to_mesh")]
    to_hub: bool,
    /// A change of topology instead: hub and spoke to mesh.
    #[arg(long)]
    to_mesh: bool,
    /// How many edits may be made.
    #[arg(long, default_value_t = 1)]
    edits: u8,
    /// How many links may break.
    #[arg(long, default_value_t = 0)]
    faults: u8,
    /// How many worker restarts there may be.
    #[arg(long, default_value_t = 0)]
    restarts: u8,
    /// How many times connectTimeout may pass.
    #[arg(long, default_value_t = 0)]
    times: u8,
    /// A gateway that is dead.
    #[arg(long)]
    dead: Option<usize>,
    /// Two gateways that never connect anew, as `0,2`.
    #[arg(long, value_delimiter = ',', num_args = 2)]
    blocked: Vec<usize>,
    /// Of these two only links of this role.
    #[arg(long)]
    blocked_role: Option<LinkRole>,
    /// onTimeout is Hold.
    #[arg(long)]
    hold: bool,
    /// Switch a rule off and look for the counter-example.
    #[arg(long)]
    without: Option<Rule>,
    /// Stop after this many states.
    #[arg(long, default_value_t = 5_000_000)]
    limit: usize,
}

fn numbers(list: &str) -> Vec<usize> {
    list.split(',').filter_map(|number| number.parse().ok()).collect()
}

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    let mut setup = if arguments.to_hub || arguments.to_mesh {
        Setup::topology(arguments.gateways, arguments.to_mesh)
    } else {
        let lists: Vec<Vec<usize>> = arguments.hubs.iter().map(|list| numbers(list)).collect();
        let slices: Vec<&[usize]> = lists.iter().map(Vec::as_slice).collect();
        Setup::hub_change(arguments.gateways, &slices)
    };
    for (declaration, members) in setup.declarations.iter_mut().zip(&arguments.members) {
        declaration.members = numbers(members);
    }
    setup.forward = arguments.forward;
    setup.edits = arguments.edits;
    setup.faults = arguments.faults;
    setup.restarts = arguments.restarts;
    setup.times = arguments.times;
    setup.dead = arguments.dead;
    setup.blocked = arguments.blocked.first().copied().zip(arguments.blocked.get(1).copied());
    setup.blocked_role = arguments.blocked_role;
    setup.on_timeout = if arguments.hold { OnTimeout::Hold } else { OnTimeout::Proceed };
    setup.without = arguments.without;
    setup.limit = arguments.limit;
    let started = Instant::now();
    let outcome = explore(&setup);
    let seconds = started.elapsed().as_secs_f32();
    match outcome {
        Outcome::Complete { states, ends } => {
            println!("complete: {states} states, {ends} ends, no violation, {seconds:.1} s");
            ExitCode::SUCCESS
        }
        Outcome::Stopped { states } => {
            println!("stopped at {states} states, no violation so far, {seconds:.1} s");
            ExitCode::SUCCESS
        }
        Outcome::Violation { what, trace, states } => {
            println!("violation after {states} states, {seconds:.1} s: {what}");
            for event in trace {
                println!("  {event}");
            }
            ExitCode::FAILURE
        }
    }
}
