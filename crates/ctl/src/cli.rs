//! The command line: arguments in, text and exit code out. It refuses to write an object anywhere.

use std::{
    fs,
    io::{self, Read as _},
    path::{Path, PathBuf},
    time::Duration,
};

use clap::{Args, CommandFactory as _, Parser, Subcommand, ValueEnum};
use spanwire_engine::port::ControlView;
use spanwire_store::{Place, cluster, dir::Controller};

use crate::{Declared, Error, join, plan, show, status};

/// How long a look at an API server may take.
const LOOK: Duration = Duration::from_secs(30);

/// Exit code: the command gave no answer.
pub(crate) const FAILED: u8 = 1;
/// Exit code with `--exit-code`: the answer is not the good one.
const NOT_GOOD: u8 = 3;

const EXIT_CODES: &str = "\
Exit codes:
  0  the answer was given
  1  there is no answer: the store or a file could not be read
  2  the command line is wrong
  3  with --exit-code: something is not Ready (status), or the change is invalid or takes a path away (plan)";

/// Look at a Spanwire control store, try changes before they are applied, and print what a new worker cluster needs. Writes
/// no object.
#[derive(Debug, Parser)]
#[command(name = "spanwirectl", version, after_help = EXIT_CODES, disable_help_subcommand = true)]
pub(crate) struct Cli {
    /// The control store: kube, kube:CONTEXT of the kubeconfig, in-cluster, or dir:PATH
    #[arg(long, global = true, env = "SPANWIRE_CONTROL", value_name = "PLACE", default_value = "kube")]
    control: Place,
    /// Namespace of --control kube [default: the context's]
    #[arg(long, short, global = true, env = "SPANWIRE_CONTROL_NAMESPACE", value_name = "NAMESPACE")]
    namespace: Option<String>,
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Show networks, hubs and links, both ends joined.
    #[command(after_help = "\
Examples:
  kubectl spanwire status -n spanwire
  spanwirectl --control dir:/srv/spanwire status
  spanwirectl --control dir:/srv/spanwire status demo -o json
  spanwirectl --control dir:/srv/spanwire status --exit-code && echo all ready

A link is one line for its two ends. Connected: both ends say so. OneWay: one end alone. A route is Active where traffic
goes, Standby where it could.")]
    Status(Status),
    /// Show what a change would do to every link, phase by phase, before it is applied.
    #[command(after_help = "\
Examples:
  spanwirectl --control dir:/srv/spanwire plan -f new-demo.yaml
  sed 's/hub: hub-a/hub: hub-b/' demo.yaml | spanwirectl --control dir:/srv/spanwire plan -f -
  spanwirectl --control dir:/srv/spanwire plan -f demo.yaml -f hub-c.yaml -o yaml

The controller's and the workers' own decisions are played through in memory, with every member alive and every link
working; at most connectTimeout a phase is added where one does not answer. Nothing is written.")]
    Plan(Plan),
    /// Print what to apply in the control cluster and in the worker's, for a new worker cluster.
    #[command(after_help = "\
Examples:
  spanwirectl join berlin --subnet 10.7.1.0/24 | kubectl --context CONTROL apply -f -
  spanwirectl join berlin --side worker --server https://control.example:6443 | kubectl --context BERLIN apply -f -

--side control prints a ServiceAccount, its Role with every right explained, a RoleBinding and the Gateway. --side worker
makes a token for that account, with your own rights in the control cluster, and prints it in a Secret: treat the output
like a password. The same command again renews it. Nothing is applied.")]
    Join(Box<join::Join>),
    /// Print a completion script.
    #[command(after_help = "\
Examples:
  source <(spanwirectl completion bash)
  spanwirectl completion zsh > \"${fpath[1]}/_spanwirectl\"
  spanwirectl completion fish > ~/.config/fish/completions/spanwirectl.fish")]
    Completion {
        /// The shell.
        shell: clap_complete::Shell,
    },
}

#[derive(Debug, Args)]
struct Form {
    /// How to print.
    #[arg(short, long, value_name = "FORM", default_value = "table")]
    output: Output,
    /// Exit with 3 if the answer is not the good one.
    #[arg(long)]
    exit_code: bool,
}

#[derive(Debug, Args)]
struct Status {
    /// Only this network.
    network: Option<String>,
    #[command(flatten)]
    form: Form,
}

#[derive(Debug, Args)]
struct Plan {
    /// A Gateway or GatewayNetwork as it would be; - is standard input. May be repeated.
    #[arg(short, long = "filename", value_name = "FILE", required = true)]
    files: Vec<PathBuf>,
    #[command(flatten)]
    form: Form,
}

/// How to print.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Output {
    /// For people.
    Table,
    /// For programs.
    Json,
    /// For both.
    Yaml,
}

/// What to print, and the exit code.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Said {
    /// Standard output.
    pub(crate) text: String,
    /// Standard error: what a person has to know besides.
    pub(crate) notes: String,
    pub(crate) code: u8,
}

/// Runs one command.
pub(crate) fn run(cli: Cli, program: &'static str) -> Result<Said, Error> {
    let Cli { control, namespace, command } = cli;
    let look = || look(&control, namespace.as_deref());
    match command {
        Command::Status(Status { network, form }) => {
            let mut report = status::report(&look()?);
            if let Some(name) = network {
                report = report.only(&name)?;
            }
            say(&report, report.is_ready(), &form, show::status)
        }
        Command::Plan(Plan { files, form }) => {
            let declared = files.iter().map(|file| declaration(file)).collect::<Result<Vec<_>, _>>()?;
            let forecast = plan::forecast(&look()?, &declared);
            say(&forecast, forecast.is_harmless(), &form, show::plan)
        }
        Command::Join(join) => {
            let printed = runtime()?.block_on(join.run(&control, namespace.as_deref()));
            let join::Printed { text, notes } = printed.map_err(Error::Join)?;
            Ok(Said { text, notes, code: 0 })
        }
        Command::Completion { shell } => {
            let mut script = Vec::new();
            clap_complete::generate(shell, &mut Cli::command(), program, &mut script);
            Ok(Said { text: String::from_utf8_lossy(&script).into_owned(), notes: String::new(), code: 0 })
        }
    }
}

fn say<T: serde::Serialize>(
    answer: &T,
    good: bool,
    form: &Form,
    table: impl FnOnce(&T) -> String,
) -> Result<Said, Error> {
    let text = match form.output {
        Output::Table => table(answer),
        Output::Json => format!("{}\n", serde_json::to_string_pretty(answer).map_err(Error::Json)?),
        Output::Yaml => serde_saphyr::to_string(answer).map_err(Error::Yaml)?,
    };
    Ok(Said { text, notes: String::new(), code: if form.exit_code && !good { NOT_GOOD } else { 0 } })
}

fn look(control: &Place, namespace: Option<&str>) -> Result<ControlView, Error> {
    runtime()?.block_on(async {
        match control {
            Place::Dir(path) => {
                let looked = async { Controller::open(path)?.look().await };
                looked.await.map_err(Error::Store)
            }
            Place::Kube { context } => {
                look_at(cluster::Connection::open(context.as_deref(), namespace)).await
            }
            Place::InCluster => look_at(std::future::ready(cluster::Connection::in_cluster(namespace))).await,
        }
    })
}

async fn look_at(
    connection: impl Future<Output = Result<cluster::Connection, cluster::Error>>,
) -> Result<ControlView, Error> {
    let looked = async { cluster::look(&connection.await?).await };
    let looked = tokio::time::timeout(LOOK, looked).await.map_err(|_| Error::Late(LOOK))?;
    looked.map_err(Error::Cluster)
}

fn runtime() -> Result<tokio::runtime::Runtime, Error> {
    tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(Error::Start)
}

fn declaration(file: &Path) -> Result<Declared, Error> {
    let read = || {
        if file == Path::new("-") {
            let mut text = String::new();
            io::stdin().read_to_string(&mut text).map(|_| text)
        } else {
            fs::read_to_string(file)
        }
    };
    let text = read().map_err(|source| Error::File { path: file.to_owned(), source })?;
    Declared::parse(file, &text).map_err(|fault| Error::Declaration(file.to_owned(), fault))
}
