//! The command line of `spanwire`, parsed once at the edge. It refuses to read files or to reach a store.

pub mod numbers;

use std::{net::SocketAddr, path::PathBuf, time::Duration};

use clap::{Args, Parser, Subcommand, ValueEnum};
use spanwire_dataplane::sysctl;
use spanwire_engine::GatewayName;

pub use numbers::Numbers;
pub use spanwire_store::{Place, PlaceError};

const EXAMPLES: &str = "\
Exit codes with --once: 0 nothing is left to do, 75 it waits for something (and says for what), 1 an error.

Examples:
  spanwire dataplane --socket /run/spanwire/dataplane.sock
      holds the userspace devices of this host; start it before the worker, it outlives it
  spanwire worker --control dir:/srv/control --local dir:/var/lib/spanwire --gateway berlin
      makes this host's tunnels match the intents for the gateway `berlin`
  spanwire worker --control dir:/srv/control --local dir:/var/lib/spanwire --gateway berlin --dry-run
      prints what it would do, and writes nothing
  spanwire controller --control dir:/srv/control
      turns every GatewayNetwork into one intent a gateway
  spanwire worker --local dir:/var/lib/spanwire --control dir:/srv/control --gateway berlin --uninstall
      removes every device, route, rule and record of ours on this host";

/// Connects clusters and hosts with WireGuard, exactly as declared.
#[derive(Debug, Parser)]
#[command(name = "spanwire", version, about, after_help = EXAMPLES, propagate_version = true)]
pub struct Cli {
    /// Settings of every command.
    #[command(flatten)]
    pub common: Common,
    /// Which process to be.
    #[command(subcommand)]
    pub command: Command,
}

/// Settings of every command.
#[derive(Debug, Clone, Args)]
pub struct Common {
    /// How logs are written (to stderr)
    #[arg(long, global = true, value_enum, default_value_t = LogFormat::Human, env = "SPANWIRE_LOG_FORMAT")]
    pub log_format: LogFormat,
    /// The lowest level that is logged: error, warn, info, debug, trace, or module=level lists
    #[arg(long, global = true, default_value = "info", env = "SPANWIRE_LOG_LEVEL", value_name = "LEVEL")]
    pub log_level: String,
    /// How --once, --dry-run and --uninstall print what they did (to stdout) [default: as --log-format]
    #[arg(long, short, global = true, value_enum, env = "SPANWIRE_OUTPUT")]
    pub output: Option<LogFormat>,
    /// Sends spans of passes and their API calls to this collector by OTLP over HTTP (such as http://collector:4318)
    /// [default: nothing is sent]
    #[arg(long, global = true, env = "OTEL_EXPORTER_OTLP_ENDPOINT", value_name = "URL", value_parser = collector)]
    pub otlp_endpoint: Option<String>,
    /// Answers /metrics, /healthz and /readyz at this address (such as 0.0.0.0:9180) by plain HTTP; not with --once,
    /// --dry-run or --uninstall [default: nothing listens]
    #[arg(long, global = true, env = "SPANWIRE_METRICS_LISTEN", value_name = "ADDRESS:PORT", value_parser = listen)]
    pub metrics_listen: Option<SocketAddr>,
}

impl Common {
    /// How results are printed.
    pub fn output(&self) -> LogFormat {
        self.output.unwrap_or(self.log_format)
    }

    /// The collector that spans are sent to; an empty variable names none.
    pub fn collector(&self) -> Option<&str> {
        self.otlp_endpoint.as_deref().filter(|url| !url.is_empty())
    }
}

/// For people, or for programs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum LogFormat {
    /// Lines for people
    Human,
    /// JSON
    Json,
}

const CONTROLLER_EXAMPLES: &str = "\
Examples:
  spanwire controller --control dir:/srv/control
  spanwire controller --control dir:/srv/control --once --output json
      one pass: prints every write, and what a phase waits for";

const WORKER_EXAMPLES: &str = "\
Examples:
  spanwire worker --control dir:/srv/control --local dir:/var/lib/spanwire --gateway berlin
  SPANWIRE_CONTROL=dir:/srv/control SPANWIRE_LOCAL=dir:/var/lib/spanwire spanwire worker --gateway berlin --once
      one pass, the places from the environment
  spanwire worker --control dir:/srv/control --local dir:/var/lib/spanwire --gateway berlin --dry-run
      every step in order, and what stays until something else is connected; nothing is written";

const DATAPLANE_EXAMPLES: &str = "\
Examples:
  spanwire dataplane
  spanwire dataplane --socket /run/other/dataplane.sock
      give the worker the same with --dataplane-socket
  wg show
      shows its devices like any other WireGuard's";

/// The processes.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Turns every GatewayNetwork of a control store into one intent a gateway, in phases when a hub moves
    #[command(after_help = CONTROLLER_EXAMPLES)]
    Controller(Box<ControllerArgs>),
    /// Makes the tunnels of this host match the intents for one gateway, and says how they are
    #[command(after_help = WORKER_EXAMPLES)]
    Worker(Box<WorkerArgs>),
    /// Holds the userspace WireGuard devices of this host; outlives the worker
    #[command(after_help = DATAPLANE_EXAMPLES)]
    Dataplane(DataplaneArgs),
}

impl Command {
    /// The process in traces.
    pub fn service(&self) -> &'static str {
        match self {
            Command::Controller(_) => "spanwire-controller",
            Command::Worker(_) => "spanwire-worker",
            Command::Dataplane(_) => "spanwire-dataplane",
        }
    }
}

/// The rhythm of a loop.
#[derive(Debug, Clone, Args)]
pub struct Rhythm {
    /// Looks again at everything after so many seconds without an event
    #[arg(long, default_value = "300", value_parser = seconds, env = "SPANWIRE_RESYNC", value_name = "SECONDS")]
    pub resync: Duration,
    /// Ends after one pass over everything: 0 nothing left to do, 75 waiting, 1 error
    #[arg(long)]
    pub once: bool,
}

/// `spanwire controller`.
#[derive(Debug, Clone, Args)]
pub struct ControllerArgs {
    /// Where networks, gateways and intents are: kube, kube:CONTEXT, in-cluster or dir:PATH
    #[arg(long, env = "SPANWIRE_CONTROL", value_name = "PLACE")]
    pub control: Place,
    /// Namespace of --control kube [default: the context's, or the pod's own]
    #[arg(long, env = "SPANWIRE_CONTROL_NAMESPACE", value_name = "NAMESPACE")]
    pub control_namespace: Option<String>,
    /// The rhythm of the loop.
    #[command(flatten)]
    pub rhythm: Rhythm,
}

/// `spanwire worker`.
#[derive(Debug, Clone, Args)]
pub struct WorkerArgs {
    /// Where gateways and intents are: kube, kube:CONTEXT, in-cluster or dir:PATH
    #[arg(long, env = "SPANWIRE_CONTROL", value_name = "PLACE")]
    pub control: Place,
    /// Namespace of --control kube [default: the context's, or the pod's own]
    #[arg(long, env = "SPANWIRE_CONTROL_NAMESPACE", value_name = "NAMESPACE")]
    pub control_namespace: Option<String>,
    /// Where this worker keeps its records: kube, kube:CONTEXT, in-cluster or dir:PATH
    #[arg(long, env = "SPANWIRE_LOCAL", value_name = "PLACE")]
    pub local: Place,
    /// Namespace of --local kube [default: the context's, or the pod's own]
    #[arg(long, env = "SPANWIRE_LOCAL_NAMESPACE", value_name = "NAMESPACE")]
    pub local_namespace: Option<String>,
    /// The gateway that this host is
    #[arg(long, env = "SPANWIRE_GATEWAY", value_name = "NAME")]
    pub gateway: GatewayName,
    /// Where `spanwire dataplane` listens
    #[arg(long, default_value = DATAPLANE_SOCKET, env = "SPANWIRE_DATAPLANE_SOCKET", value_name = "PATH")]
    pub dataplane_socket: PathBuf,
    /// Folder of the devices' configuration sockets, as given to `spanwire dataplane`
    #[arg(long, default_value = UAPI_DIR, env = "SPANWIRE_UAPI_DIR", value_name = "PATH")]
    pub uapi_dir: PathBuf,
    /// Folder for what lasts until the next boot (what reverse-path filtering was before)
    #[arg(long, default_value = "/run/spanwire", env = "SPANWIRE_RUN_DIR", value_name = "PATH")]
    pub run_dir: PathBuf,
    /// Where the kernel's switches are writable: where the host's /proc/sys/net is mounted, in a container whose own is
    /// read-only
    #[arg(long, default_value = sysctl::USUAL, env = "SPANWIRE_SYSCTL_DIR", value_name = "PATH")]
    pub sysctl_dir: PathBuf,
    /// File of the private key, made if missing [default: private.key in the folder of --local dir, or the Secret
    /// spanwire-GATEWAY of --local kube]
    #[arg(long, env = "SPANWIRE_KEY_FILE", value_name = "PATH")]
    pub key_file: Option<PathBuf>,
    /// The rhythm of the loop.
    #[command(flatten)]
    pub rhythm: Rhythm,
    /// Numbers on this host.
    #[command(flatten)]
    pub numbers: Numbers,
    /// Prints the plan and writes nothing
    #[arg(long, conflicts_with_all = ["once", "uninstall"])]
    pub dry_run: bool,
    /// Removes all devices, routes, rules and records of ours on this host, and nothing else; the key stays
    #[arg(long, conflicts_with = "once")]
    pub uninstall: bool,
}

/// `spanwire dataplane`.
#[derive(Debug, Clone, Args)]
pub struct DataplaneArgs {
    /// Where the worker reaches this process
    #[arg(long, default_value = DATAPLANE_SOCKET, env = "SPANWIRE_DATAPLANE_SOCKET", value_name = "PATH")]
    pub socket: PathBuf,
    /// Folder of the configuration sockets, one a device, where `wg` looks for them
    #[arg(long, default_value = UAPI_DIR, env = "SPANWIRE_UAPI_DIR", value_name = "PATH")]
    pub uapi_dir: PathBuf,
}

/// Where worker and dataplane meet unless told otherwise.
pub const DATAPLANE_SOCKET: &str = "/run/spanwire/dataplane.sock";

/// Where `wg` looks for configuration sockets.
const UAPI_DIR: &str = "/var/run/wireguard";

fn collector(text: &str) -> Result<String, String> {
    if text.is_empty() || text.starts_with("http://") || text.starts_with("https://") {
        Ok(text.to_owned())
    } else {
        Err("use the address of a collector's OTLP over HTTP, such as http://collector:4318".to_owned())
    }
}

fn listen(text: &str) -> Result<SocketAddr, String> {
    text.parse()
        .map_err(|_| "use an address of this host and a port, such as 0.0.0.0:9180 or [::]:9180".to_owned())
}

fn seconds(text: &str) -> Result<Duration, String> {
    match text.parse::<u32>() {
        Ok(0) => Err("use at least 1 second".to_owned()),
        Ok(seconds) => Ok(Duration::from_secs(seconds.into())),
        Err(_) => Err("use whole seconds, such as 300".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory as _;

    fn worker(extra: &[&str]) -> Result<WorkerArgs, clap::Error> {
        let base = ["spanwire", "worker", "--control", "dir:/c", "--local", "dir:/l", "--gateway", "hub-a"];
        let cli = Cli::try_parse_from(base.iter().chain(extra))?;
        let Command::Worker(args) = cli.command else { panic!("not a worker") };
        Ok(*args)
    }

    fn common(extra: &[&str]) -> Result<Common, clap::Error> {
        let base = ["spanwire", "controller", "--control", "dir:/c"];
        Cli::try_parse_from(base.iter().chain(extra)).map(|cli| cli.common)
    }

    #[test]
    fn the_command_line_is_consistent() {
        Cli::command().debug_assert();
    }

    #[test]
    fn defaults_are_the_documented_ones() {
        let args = worker(&[]).unwrap();
        assert_eq!(args.rhythm.resync, Duration::from_secs(300));
        assert_eq!(args.dataplane_socket, PathBuf::from(DATAPLANE_SOCKET));
        assert!(!args.rhythm.once && !args.dry_run && !args.uninstall && args.key_file.is_none());
    }

    #[test]
    fn what_excludes_each_other_is_refused() {
        for flags in [["--once", "--dry-run"], ["--dry-run", "--uninstall"], ["--once", "--uninstall"]] {
            assert!(worker(&flags).is_err(), "{flags:?}");
        }
        assert!(worker(&["--resync", "0"]).unwrap_err().to_string().contains("at least 1 second"));
        assert!(worker(&["--gateway", "a.b"]).is_err());
    }

    #[test]
    fn spans_go_nowhere_unless_a_collector_is_named() {
        assert_eq!(common(&[]).unwrap().collector(), None);
        assert_eq!(common(&["--otlp-endpoint", ""]).unwrap().collector(), None);
        let named = common(&["--otlp-endpoint", "http://c:4318"]).unwrap();
        assert_eq!(named.collector(), Some("http://c:4318"));
        let refused = common(&["--otlp-endpoint", "c:4317"]).unwrap_err();
        assert!(refused.to_string().contains("http://collector:4318"), "{refused}");
    }

    #[test]
    fn nothing_listens_unless_an_address_is_named() {
        assert_eq!(common(&[]).unwrap().metrics_listen, None);
        let named = common(&["--metrics-listen", "[::1]:9180"]).unwrap();
        assert_eq!(named.metrics_listen.unwrap().port(), 9180);
        for wrong in ["9180", ":9180", "localhost:9180", "192.0.2.1"] {
            let refused = common(&["--metrics-listen", wrong]).unwrap_err().to_string();
            assert!(refused.contains("such as 0.0.0.0:9180"), "{refused}");
        }
    }

    #[test]
    fn help_teaches_by_example() {
        let help = Cli::command().render_long_help().to_string();
        for words in ["Examples:", "spanwire controller --control dir:", "75", "--log-format"] {
            assert!(help.contains(words), "{words}");
        }
        for command in Cli::command().get_subcommands_mut() {
            assert!(command.render_long_help().to_string().contains("Examples:"), "{}", command.get_name());
        }
    }
}
