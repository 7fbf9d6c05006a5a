//! The end-to-end scenarios, one after another, on a provider of hosts. It refuses to stop at the first that fails.

use std::{
    path::PathBuf,
    process::ExitCode,
    time::{Duration, Instant, SystemTime},
};

use anyhow::{Context as _, Result};
use clap::{Parser, ValueEnum as _};
use e2e::{
    Fleet, Laggard, Outcome, Provider, Say, Scenario, Setup, fleet, interrupt, say, scenario, setup::Clusters,
};
use serde::Serialize;
use spanwire_engine::Phase;
use spanwire_testkit::lab::userns;

const AFTER: &str = "\
Exit codes: 0 all passed, 1 one did not. What a failed run leaves to look at is put under target/e2e/.

Examples:
  cargo xtask e2e                                    the two that CI runs
  cargo xtask e2e --all                              every scenario on API servers: about ten minutes
  cargo xtask e2e --scenario failover --scenario key-loss
  cargo xtask e2e --provider files --all             the same without API servers, where they make sense
  cargo xtask e2e --provider kind                    with the chart on clusters of kind, traffic between pods (Docker, root)
  cargo xtask e2e --provider kind --scenario chart --node-image spanwire-kind-node:1.37.2
  cargo xtask e2e --scenario hub-change --keep       leaves everything running until Ctrl-C";

/// Runs the end-to-end scenarios
#[derive(Debug, Parser)]
#[command(name = "e2e", bin_name = "cargo xtask e2e", after_help = AFTER)]
struct Cli {
    /// Where hosts come from
    #[arg(long, value_enum, default_value_t = Provider::Local)]
    provider: Provider,
    /// Only these scenarios; may be given several times [default: hub-change, full-mesh]
    #[arg(long = "scenario", value_enum, value_name = "SCENARIO")]
    scenarios: Vec<Scenario>,
    /// All scenarios that make sense with the provider, but for rest and latency, which take minutes for a figure
    #[arg(long, conflicts_with = "scenarios")]
    all: bool,
    /// Hosts of the scenario writes: two hubs, the others spokes
    #[arg(long, default_value_t = 4)]
    members: u8,
    /// Datagrams a second and pair
    #[arg(long, default_value_t = 500)]
    rate: u32,
    /// Ends the API servers of all workers once their links work: they go on with what they have on record
    #[arg(long)]
    own_clusters_away: bool,
    /// Instead: hub changes with a phase left out, which must lose packets, beside the same ones with all phases
    #[arg(long, conflicts_with_all = ["scenarios", "provider", "all"])]
    without_phases: bool,
    /// Prints one JSON document on standard output, progress on standard error
    #[arg(long)]
    json: bool,
    /// Leaves the last scenario running until Ctrl-C, and says where its files are; clusters of kind stay after that
    #[arg(long)]
    keep: bool,
    /// With --provider kind: the image of the nodes [default: that of the installed kind]
    #[arg(long, value_name = "IMAGE")]
    node_image: Option<String>,
    /// With --provider kind: uses clusters that an earlier run kept
    #[arg(long)]
    reuse: bool,
    /// With --provider kind: the archive of the product's image [default: made by `cargo xtask image`]
    #[arg(long, value_name = "FILE", env = "SPANWIRE_IMAGE", hide_env = true)]
    image: Option<PathBuf>,
    /// With --provider kind: the chart
    #[arg(
        long,
        value_name = "FOLDER",
        env = "SPANWIRE_CHART",
        hide_env = true,
        default_value = "charts/spanwire"
    )]
    chart: PathBuf,
    /// With --provider kind: the chart that is installed first and upgraded from [default: the present one]
    #[arg(long, value_name = "FOLDER")]
    previous_chart: Option<PathBuf>,
    /// Where a failed run leaves logs, objects and audit logs
    #[arg(long, default_value = "target/e2e", value_name = "FOLDER")]
    artefacts: PathBuf,
}

/// One run and what is expected of it.
struct Case {
    name: String,
    setup: Setup,
    must_lose: bool,
}

/// What a case came to.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct Row {
    name: String,
    passed: bool,
    seconds: f64,
    verdict: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    artefacts: Option<PathBuf>,
    #[serde(skip_serializing_if = "Option::is_none")]
    outcome: Option<Outcome>,
}

impl Cli {
    fn cases(&self) -> Vec<Case> {
        if self.without_phases {
            return without_phases(self.rate);
        }
        let all = Scenario::value_variants().iter().copied();
        let scenarios: Vec<Scenario> = match (self.all, self.scenarios.is_empty()) {
            (true, _) => {
                let fits = |one: &Scenario| match self.provider {
                    Provider::Files => !one.needs_servers() && !one.needs_clusters(),
                    Provider::Local => !one.needs_clusters(),
                    Provider::Kind => !one.needs_servers(),
                };
                all.filter(|one| fits(one) && !one.is_named_only()).collect()
            }
            (false, true) => vec![Scenario::HubChange, Scenario::FullMesh],
            (false, false) => self.scenarios.clone(),
        };
        let case = |scenario: Scenario| Case {
            name: scenario.to_string(),
            setup: Setup {
                provider: self.provider,
                own_clusters_away: self.own_clusters_away,
                members: self.members,
                rate: self.rate,
                clusters: self.clusters(),
                ..Setup::for_scenario(scenario)
            },
            must_lose: false,
        };
        scenarios.into_iter().map(case).collect()
    }

    fn clusters(&self) -> Clusters {
        Clusters {
            image: self.image.clone().unwrap_or_default(),
            chart: self.chart.clone(),
            previous_chart: self.previous_chart.clone(),
            node_image: self.node_image.clone(),
            reuse: self.reuse,
        }
    }

    fn run(&self, case: &Case) -> (Option<Fleet>, Row) {
        let begun = Instant::now();
        let ran = scenario::run(&case.setup, Say::Err);
        let seconds = (begun.elapsed().as_secs_f64() * 10.0).round() / 10.0;
        let row = |passed, verdict, outcome| Row {
            name: case.name.clone(),
            passed,
            seconds,
            verdict,
            artefacts: None,
            outcome,
        };
        match ran {
            Ok((fleet, outcome)) => {
                let (passed, verdict) = judge(case, &outcome);
                let mut row = row(passed, verdict, Some(outcome));
                row.artefacts = (!passed).then(|| self.save(case, &fleet)).flatten();
                (Some(fleet), row)
            }
            Err(scenario::Failed { error, fleet }) => {
                let mut row = row(false, format!("{error:#}"), None);
                row.artefacts = fleet.as_ref().and_then(|fleet| self.save(case, fleet));
                (fleet.map(|fleet| *fleet), row)
            }
        }
    }

    /// Where the artefacts of a failed run are; `None`: they could not be kept, which is said.
    fn save(&self, case: &Case, fleet: &Fleet) -> Option<PathBuf> {
        let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or(Duration::ZERO);
        let name = case.name.replace([' ', ','], "-");
        let folder = self.artefacts.join(format!("{name}-{}", since.as_secs()));
        match fleet.save(&folder) {
            Ok(()) => Some(folder),
            Err(error) => {
                eprintln!("the artefacts could not be kept: {error:#}");
                None
            }
        }
    }
}

/// What Adding, Switching and Demoting wait for is slow here; what Removing waits for is only that old links are gone.
fn without_phases(rate: u32) -> Vec<Case> {
    let runs = [
        (Some(Phase::Adding), None),
        (Some(Phase::Switching), Some(Laggard::Spoke)),
        (Some(Phase::Demoting), Some(Laggard::OldHub)),
        (None, Some(Laggard::Spoke)),
        (None, Some(Laggard::OldHub)),
    ];
    let case = |(leave_out, laggard): (Option<Phase>, Option<Laggard>)| {
        let phases = leave_out.map_or("all phases".to_owned(), |phase| format!("without {}", phase.as_str()));
        let slow = match laggard {
            None => "",
            Some(Laggard::Spoke) => ", a slow spoke",
            Some(Laggard::OldHub) => ", a slow old hub",
        };
        Case {
            name: format!("hub-change, {phases}{slow}"),
            setup: Setup { rate, leave_out, laggard, ..Setup::for_scenario(Scenario::HubChange) },
            must_lose: leave_out.is_some(),
        }
    };
    runs.into_iter().map(case).collect()
}

fn main() -> ExitCode {
    say::end(run(&Cli::parse()))
}

fn run(cli: &Cli) -> Result<ExitCode> {
    if userns::is_needed() && cli.provider != Provider::Kind {
        userns::enter().context(userns::REMEDY)?;
    }
    interrupt::watch()?;
    let _made = fleet::MadeClusters { keep: cli.keep };
    let mut rows: Vec<Row> = Vec::new();
    let cases = cli.cases();
    for (at, case) in cases.iter().enumerate() {
        eprintln!("== {} of {}: {}", at + 1, cases.len(), case.name);
        let (fleet, row) = cli.run(case);
        eprintln!("{}: {}: {}", row.name, word(&row), row.verdict);
        rows.push(row);
        if let Some(fleet) = fleet.filter(|_| cli.keep && at + 1 == cases.len()) {
            keep(&fleet);
        }
        if interrupt::is_interrupted() {
            break;
        }
    }
    if cli.json {
        println!("{}", serde_json::to_string_pretty(&rows).context("writing the document")?);
    } else {
        table(&rows, cases.len());
    }
    let good = rows.len() == cases.len() && rows.iter().all(|row| row.passed);
    Ok(if good { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn word(row: &Row) -> &'static str {
    if row.passed { "passed" } else { "FAILED" }
}

fn table(rows: &[Row], asked: usize) {
    println!(
        "\n{:40} {:7} {:>8} {:>9} {:>7} {:>12}",
        "scenario", "result", "time", "sent", "lost", "longest gap"
    );
    for row in rows {
        let figures = row.outcome.as_ref().map(|outcome| {
            format!("{:>9} {:>7} {:>9} ms", outcome.sent, outcome.lost, outcome.longest_gap_ms)
        });
        let (name, word, figures) = (&row.name, word(row), figures.unwrap_or_default());
        println!("{name:40} {word:7} {:>6.1} s {figures}", row.seconds);
    }
    for row in rows.iter().filter(|row| !row.passed) {
        println!("\n{}: {}", row.name, row.verdict);
        if let Some(folder) = &row.artefacts {
            println!("  logs, objects and audit logs: {}", folder.display());
        }
    }
    let passed = rows.iter().filter(|row| row.passed).count();
    println!("\n{passed} passed, {} failed, {} skipped", rows.len() - passed, asked - rows.len());
}

/// Waits for Ctrl-C.
fn keep(fleet: &Fleet) {
    eprintln!("\nEverything runs on. Logs are in {}", fleet.directory().display());
    for line in fleet.how_to_look() {
        eprintln!("  {line}");
    }
    eprintln!("Ctrl-C ends it and takes everything away.");
    while !interrupt::is_interrupted() {
        if interrupt::pause(Duration::from_secs(3600)).is_err() {
            return;
        }
    }
}

fn judge(case: &Case, outcome: &Outcome) -> (bool, String) {
    if case.must_lose {
        let words = format!("{} of {} datagrams lost, as they must be", outcome.lost, outcome.sent);
        return if outcome.lost > 0 {
            (true, words)
        } else {
            (false, "nothing was lost: what is the phase for?".to_owned())
        };
    }
    (outcome.passed, outcome.verdict.clone())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn without_flags_it_is_what_ci_runs() {
        let cli = Cli::try_parse_from(["e2e"]).unwrap();
        assert_eq!(cli.provider, Provider::Local);
        let names: Vec<String> = cli.cases().into_iter().map(|case| case.name).collect();
        assert_eq!(names, ["hub-change", "full-mesh"]);
    }

    #[test]
    fn every_scenario_of_a_provider_means_something_there() {
        for provider in Provider::value_variants() {
            let word = provider.to_possible_value().unwrap();
            let cli = Cli::try_parse_from(["e2e", "--all", "--provider", word.get_name()]).unwrap();
            for case in cli.cases() {
                case.setup.check().unwrap_or_else(|error| panic!("{word:?}, {}: {error:#}", case.name));
            }
        }
    }
}
