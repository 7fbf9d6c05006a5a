//! The tests of the dataplane and the main job on the kernel's own WireGuard: on this machine where its kernel has it, else
//! in a guest. It refuses to call a run done that did not come to its end.

use std::{
    collections::{BTreeMap, BTreeSet},
    path::{Path, PathBuf},
    process::{Command, ExitCode, Stdio},
    time::{Duration, Instant},
};

use anyhow::{Context as _, Result, bail};

use crate::{
    demo,
    guest::{self, Ended, Run},
    place,
    tools::{self, Namespaces},
};

/// `cargo xtask test-kernel`
#[derive(Debug, clap::Args)]
pub(crate) struct TestKernelArgs {
    /// Use a guest even if this machine's own kernel has WireGuard
    #[arg(long)]
    guest: bool,
    /// Run only these parts
    #[arg(long, value_enum)]
    part: Vec<Part>,
    /// Only the tests of the dataplane and the processes whose name contains this
    #[arg(long, default_value = "")]
    filter: String,
}

/// What is run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum Part {
    /// The dataplane's tests between network namespaces
    Dataplane,
    /// The processes of `spanwire`: starts, kills, faults
    Processes,
    /// A hub change under traffic, with every packet counted
    HubChange,
    /// The same with every worker and the controller killed in every phase
    Restart,
    /// `tunnel.mode` becomes userspace and kernel again under traffic
    ModeChange,
}

const ALL: &[Part] = &[Part::Dataplane, Part::Processes, Part::HubChange, Part::Restart, Part::ModeChange];

/// A guest that took longer would be stuck: with hardware help it takes a tenth.
const LIMIT: Duration = Duration::from_secs(20 * 60);

/// Datagrams a second and pair: as many as emulation carries, for more than 100,000 in a run.
const RATE: &str = "100";
/// What the userspace dataplanes carry there.
const SLOW: &str = "20";

/// Builds, runs, and gives the exit code of what was run.
pub(crate) fn run(args: &TestKernelArgs) -> Result<ExitCode> {
    let parts = if args.part.is_empty() { ALL } else { &args.part };
    let programs = Programs::build(parts)?;
    let script = programs.script(parts, &args.filter);
    let begun = Instant::now();
    let code = if !args.guest && kernel_has_wireguard() {
        eprintln!("The kernel of this machine has WireGuard: no guest is needed.");
        let status = Command::new("sh").args(["-c", &script]).current_dir(place::root()).status();
        status.context("starting sh")?.code().unwrap_or(1)
    } else {
        eprintln!("Booting a guest whose kernel has WireGuard …");
        let run = Run { programs: programs.all(), script, limit: LIMIT };
        let Ended { code } = guest::run(&run, &mut |line| println!("{line}"))?;
        code
    };
    eprintln!("Ended with {code} after {:.0} s.", begun.elapsed().as_secs_f64());
    Ok(if code == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// Whether a device of the kernel's WireGuard can be made here; tried in a namespace that goes at once.
fn kernel_has_wireguard() -> bool {
    let mut attempt = Command::new("unshare");
    attempt.args(["--net", "ip", "link", "add", "sw-trial", "type", "wireguard"]);
    tools::namespaces() == Namespaces::Plainly
        && attempt.stderr(Stdio::null()).status().is_ok_and(|status| status.success())
}

/// What runs inside, by the name of its program.
struct Programs(BTreeMap<&'static str, PathBuf>);

impl Programs {
    /// Builds what the parts need, with the same features as the tests: nothing is built twice.
    fn build(parts: &[Part]) -> Result<Self> {
        eprintln!("Building spanwire, the demo and the tests …");
        let tests: BTreeSet<&'static str> = parts.iter().filter_map(|part| part.test()).collect();
        let mut programs =
            tests.into_iter().map(|name| Ok((name, test(name)?))).collect::<Result<BTreeMap<_, _>>>()?;
        if parts.iter().any(|part| *part != Part::Dataplane) {
            let (bins, folder) = (["spanwire", "demo"], place::binaries()?);
            demo::build(&bins)?;
            programs.extend(bins.map(|name| (name, folder.join(name))));
        }
        Ok(Self(programs))
    }

    fn all(&self) -> Vec<PathBuf> {
        self.0.values().cloned().collect()
    }

    fn script(&self, parts: &[Part], filter: &str) -> String {
        let quoted =
            |name: &str| format!("'{}'", self.0.get(name).map_or(Path::new(name), |path| path).display());
        let mut script =
            format!("export SPANWIRE_TEST_BACKEND=kernel SPANWIRE_BINARY={}\nstatus=0\n", quoted("spanwire"));
        for part in parts {
            let command = match part {
                // What processors are used for under emulation says nothing.
                Part::Dataplane => format!("{} --skip rest:: {filter}", quoted("netns")),
                // An API server under emulation takes minutes to start, devices of the kernel need no process, and what
                // ten thousand changes cost there says nothing.
                Part::Processes => format!(
                    "{} --skip acceptance --skip scale --skip d13_ --skip ten_thousand {filter}",
                    quoted("processes")
                ),
                Part::HubChange => format!("{} --mode kernel --rate {RATE}", quoted("demo")),
                Part::ModeChange => {
                    format!("{} --mode kernel --rate {SLOW} --scenario mode-change", quoted("demo"))
                }
                Part::Restart => format!("{} --mode kernel --rate {RATE} --scenario restart", quoted("demo")),
            };
            script.push_str(&format!("echo '== {part:?}'\n{command} || status=1\n"));
        }
        script.push_str("exit $status\n");
        script
    }
}

impl Part {
    /// The test program that it needs.
    fn test(self) -> Option<&'static str> {
        match self {
            Part::Dataplane => Some("netns"),
            Part::Processes => Some("processes"),
            Part::HubChange | Part::Restart | Part::ModeChange => None,
        }
    }
}

/// The test program of this name, built as for `cargo xtask test`.
fn test(name: &str) -> Result<PathBuf> {
    let arguments =
        ["test", "--workspace", "--all-features", "--no-run", "--message-format", "json", "--test", name];
    let output = place::cargo(&arguments).stderr(Stdio::inherit()).output().context("starting cargo test")?;
    if !output.status.success() {
        bail!("the test {name} could not be built");
    }
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let built: Vec<serde_json::Value> =
        text.lines().filter_map(|line| serde_json::from_str(line).ok()).collect();
    let fits = |message: &&serde_json::Value| {
        message["target"]["name"] == name && message["target"]["kind"][0] == "test"
    };
    let program = built.iter().find(fits).and_then(|message| message["executable"].as_str());
    Ok(program.with_context(|| format!("cargo named no test program {name}"))?.into())
}
