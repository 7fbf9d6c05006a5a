//! Holds the chart against its rules: it lints, each value set renders as recorded, wrong values are refused with words,
//! the notes end with the next command. It refuses to need a cluster: a real API server takes the recorded files in
//! `crates/api/tests/server/chart.rs`.

mod helm;

use std::{
    fs,
    path::{Path, PathBuf},
    process::{Command, ExitCode},
};

use anyhow::{Context as _, Result};

use crate::{place, step::Steps};
use helm::Helm;

/// `cargo xtask chart`
#[derive(Debug, clap::Args)]
pub(crate) struct ChartArgs {
    /// Record what the value sets render to now
    #[arg(long)]
    bless: bool,
}

const CHART: &str = "charts/spanwire";
const SETS: &str = "charts/spanwire/tests";
const REFUSED: &str = "charts/spanwire/tests/refused";
/// What a set of wrong values begins with: what the refusal says.
const SAYS: &str = "# says: ";

/// Checks the chart, or records what it renders to.
pub(crate) fn run(args: &ChartArgs) -> Result<ExitCode> {
    let findings = findings(args.bless)?;
    findings.iter().for_each(|finding| println!("{finding}"));
    if findings.is_empty() {
        println!("the chart is as recorded");
        return Ok(ExitCode::SUCCESS);
    }
    Ok(ExitCode::FAILURE)
}

/// A step of `cargo xtask test`, in a process of its own like every other.
pub(crate) fn step(steps: &mut Steps) -> Result<()> {
    let in_ci = std::env::var("CI").is_ok_and(|value| !value.is_empty() && value != "false");
    match helm::why_not().filter(|_| !in_ci) {
        Some(why) => steps.skip("chart", why),
        None => steps.command("chart", Command::new(std::env::current_exe()?).arg("chart")),
    }
    Ok(())
}

/// Tells tests where helm is, if it is there.
pub(crate) fn helm_for_tests(command: &mut Command) {
    if let Some(program) = helm::present() {
        command.env(helm::VARIABLE, program);
    }
}

fn findings(bless: bool) -> Result<Vec<String>> {
    let helm = Helm::provide()?;
    let mut findings = versions()?;
    findings.extend(lint(&helm, &[])?);
    for set in sets(SETS)? {
        findings.extend(lint(&helm, &["--values", &set])?);
        findings.extend(golden(&helm, &set, bless)?);
        findings.extend(notes(&helm, &set)?);
    }
    for set in sets(REFUSED)? {
        findings.extend(refusal(&helm, &set)?);
    }
    Ok(findings)
}

/// The value sets of a folder, as paths from the root of the workspace.
fn sets(folder: &str) -> Result<Vec<String>> {
    let mut sets = Vec::new();
    for entry in fs::read_dir(place::root().join(folder)).with_context(|| format!("listing {folder}"))? {
        let path = entry.with_context(|| format!("listing {folder}"))?.path();
        if path.extension().is_some_and(|end| end == "yaml") {
            sets.push(place::short(&path));
        }
    }
    sets.sort();
    Ok(sets)
}

/// The chart is of the version of the programs that it runs.
fn versions() -> Result<Vec<String>> {
    let path = place::root().join(CHART).join("Chart.yaml");
    let text = fs::read_to_string(&path).with_context(|| format!("reading {}", place::short(&path)))?;
    let wanted = ["version", "appVersion"].map(|key| format!("{key}: {}", env!("CARGO_PKG_VERSION")));
    let missing = wanted.iter().filter(|line| !text.lines().any(|other| other == **line));
    Ok(missing.map(|line| format!("{}: no line `{line}`", place::short(&path))).collect())
}

fn lint(helm: &Helm, values: &[&str]) -> Result<Vec<String>> {
    let answer = helm.run(&[&["lint", "--strict", CHART], values].concat())?;
    let of = values.last().unwrap_or(&"the default values");
    Ok(if answer.succeeded {
        Vec::new()
    } else {
        vec![format!("{of}: helm lint: {}{}", answer.output.trim(), answer.errors.trim())]
    })
}

/// What `helm template` makes of a set.
fn rendered(helm: &Helm, set: &str) -> Result<Result<String, String>> {
    let arguments = ["template", "spanwire", CHART, "--namespace", "spanwire", "--values", set];
    let answer = helm.run(&arguments)?;
    // Versions of helm differ in empty lines.
    let lines = answer.output.lines().map(str::trim_end).filter(|line| !line.is_empty());
    let text = lines.flat_map(|line| [line, "\n"]).collect();
    Ok(if answer.succeeded { Ok(text) } else { Err(answer.errors) })
}

fn golden(helm: &Helm, set: &str, bless: bool) -> Result<Vec<String>> {
    let text = match rendered(helm, set)? {
        Ok(text) => text,
        Err(words) => return Ok(vec![format!("{set}: helm template: {}", words.trim())]),
    };
    let name = Path::new(set).file_name().context("a value set has a name")?;
    let path: PathBuf = place::root().join(SETS).join("golden").join(name);
    let recorded = fs::read_to_string(&path).unwrap_or_default();
    if bless && recorded != text {
        fs::write(&path, text).with_context(|| format!("writing {}", place::short(&path)))?;
        eprintln!("{}: written", place::short(&path));
        return Ok(Vec::new());
    }
    Ok(difference(&recorded, &text)
        .map(|(number, line)| {
            format!(
                "{}:{number}: not as rendered: {line}\n    look at it, then `cargo xtask chart --bless`",
                place::short(&path)
            )
        })
        .into_iter()
        .collect())
}

/// The first line that differs, as rendered now, with its number.
fn difference<'a>(recorded: &'a str, text: &'a str) -> Option<(usize, &'a str)> {
    if recorded == text {
        return None;
    }
    let (old, new): (Vec<_>, Vec<_>) = (recorded.lines().collect(), text.lines().collect());
    let number = old.iter().zip(&new).take_while(|(old, new)| old == new).count();
    Some((number + 1, new.get(number).copied().unwrap_or("(nothing more)").trim()))
}

/// The last thing that somebody reads after an installation is what to type next.
fn notes(helm: &Helm, set: &str) -> Result<Vec<String>> {
    let arguments = ["install", "spanwire", CHART, "--namespace", "spanwire", "--values", set];
    let answer = helm.run(&[&arguments[..], &["--dry-run=client"]].concat())?;
    let last = answer.output.lines().map(str::trim_end).rfind(|line| !line.is_empty()).unwrap_or_default();
    let command =
        ["kubectl ", "spanwirectl ", "helm "].iter().any(|word| last.trim_start().starts_with(word));
    Ok(if answer.succeeded && command {
        Vec::new()
    } else {
        vec![format!("{set}: the notes end with no command: {last}{}", answer.errors.trim())]
    })
}

fn refusal(helm: &Helm, set: &str) -> Result<Vec<String>> {
    let text = fs::read_to_string(place::root().join(set)).with_context(|| format!("reading {set}"))?;
    let words = text.lines().next().and_then(|line| line.strip_prefix(SAYS));
    let words = words.with_context(|| format!("{set}: line 1 is not `{SAYS}` with words of the refusal"))?;
    Ok(match rendered(helm, set)? {
        Ok(_) => vec![format!("{set}: it is not refused")],
        Err(said) if said.contains(words) => Vec::new(),
        Err(said) => vec![format!("{set}: refused, but not with {words:?}: {}", said.trim())],
    })
}

#[cfg(test)]
mod tests {
    use super::difference;

    #[test]
    fn the_first_difference_is_shown() {
        assert_eq!(difference("a\nb\n", "a\nb\n"), None);
        assert_eq!(difference("a\nb\n", "a\n  c\n"), Some((2, "c")));
        assert_eq!(difference("a\nb\n", "a\n"), Some((2, "(nothing more)")));
        assert_eq!(difference("", "a\n"), Some((1, "a")));
    }
}
