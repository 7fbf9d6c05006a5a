//! Control planes for hand work. It refuses to be product code: `cargo xtask control-plane` is how people call it.

mod keeper;
mod run;

use std::process::ExitCode;

use clap::{Parser, Subcommand};
use spanwire_testkit::control_plane::assets;

const EXAMPLES: &str = "\
Examples:
  cargo xtask control-plane up                        one API server with our CRDs, in a few seconds
  cargo xtask control-plane up --name spoke-1         a second one beside it
  export KUBECONFIG=$(cargo xtask control-plane kubeconfig)
  cargo xtask control-plane down --all";

/// Real API servers on this machine's loopback, for hand work
#[derive(Debug, Parser)]
#[command(name = "cargo xtask control-plane", bin_name = "cargo xtask control-plane", after_help = EXAMPLES)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Starts one in the background, with our CRDs, and says how to use it
    Up(Up),
    /// Ends one that `up` started, and removes its data
    Down(Down),
    /// Prints the path of its kubeconfig
    Kubeconfig(Named),
    /// Builds kube-apiserver, etcd and kubectl from tools/go.mod where they are not there yet
    Build,
    /// Holds one until it is told to end; `up` starts this
    #[command(hide = true)]
    Keep(Up),
}

#[derive(Debug, Clone, clap::Args)]
struct Up {
    #[command(flatten)]
    named: Named,
    /// Users with a kubeconfig each beside admin; bind roles to them
    #[arg(long = "user")]
    users: Vec<String>,
}

#[derive(Debug, Clone, clap::Args)]
struct Named {
    /// Name, also of its context
    #[arg(long, default_value = "control", value_parser = name)]
    name: String,
}

#[derive(Debug, clap::Args)]
struct Down {
    #[command(flatten)]
    named: Named,
    /// All that run
    #[arg(long)]
    all: bool,
}

/// It becomes the name of a folder.
fn name(text: &str) -> Result<String, String> {
    let plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
    let fine = !text.is_empty() && text.len() <= 40 && text.chars().all(plain);
    fine.then(|| text.to_owned()).ok_or_else(|| "use at most 40 of a-z, 0-9 and -".to_owned())
}

fn main() -> ExitCode {
    let done = match Cli::parse().command {
        Command::Up(args) => keeper::up(&args),
        Command::Down(args) if args.all => keeper::down_all(),
        Command::Down(args) => keeper::down(&args.named.name),
        Command::Kubeconfig(args) => keeper::kubeconfig(&args.name),
        Command::Build => build(),
        Command::Keep(args) => keeper::keep(&args),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(message) => {
            eprintln!("error: {message}");
            ExitCode::FAILURE
        }
    }
}

fn build() -> Result<(), String> {
    let assets = assets::build(&|line| eprintln!("{line}")).map_err(|error| error.to_string())?;
    println!("{}", assets.api_server.parent().unwrap_or(&assets.api_server).display());
    Ok(())
}
