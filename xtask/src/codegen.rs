//! The one writer of generated files. It refuses to leave what is no longer generated.

mod values;

use std::{collections::BTreeMap, fs, path::PathBuf, process::ExitCode};

use anyhow::{Context as _, Result};

use crate::place;

/// `cargo xtask codegen`
#[derive(Debug, clap::Args)]
pub(crate) struct CodegenArgs {
    /// Write nothing; fail if a file differs from what would be written
    #[arg(long)]
    check: bool,
}

/// Folders that hold generated files alone.
const CRDS: &str = "charts/spanwire/files/crds";
const ROLES: &str = "charts/spanwire/files/roles";
const REFERENCE: &str = "docs/api.md";
const METRICS: &str = "docs/metrics.md";
/// The chart's page, of which what stands between these lines is generated.
const PAGE: &str = "charts/spanwire/README.md";
const BEGIN: &str = "<!-- values.yaml, by cargo xtask codegen: begin -->\n";
const END: &str = "<!-- end -->\n";

/// Writes or checks all generated files.
pub(crate) fn run(args: &CodegenArgs) -> Result<ExitCode> {
    let findings = differences(!args.check)?;
    for finding in &findings {
        println!("{finding}");
    }
    if args.check && !findings.is_empty() {
        eprintln!("Run `cargo xtask codegen` and commit what it writes.");
        return Ok(ExitCode::FAILURE);
    }
    println!("{}", if findings.is_empty() { "all generated files are up to date" } else { "done" });
    Ok(ExitCode::SUCCESS)
}

/// What differs from the generated content; with `write` it is brought up to date.
pub(crate) fn differences(write: bool) -> Result<Vec<String>> {
    let wanted = wanted()?;
    let mut findings = Vec::new();
    for (path, content) in &wanted {
        if fs::read_to_string(path).ok().as_ref() == Some(content) {
            continue;
        }
        if write {
            let folder = path.parent().context("every generated file stands in a folder")?;
            fs::create_dir_all(folder).with_context(|| format!("making {}", place::short(folder)))?;
            fs::write(path, content).with_context(|| format!("writing {}", place::short(path)))?;
        }
        let verb = if write { "written" } else { "differs from what it is generated from" };
        findings.push(format!("{}: {verb}", place::short(path)));
    }
    for folder in [CRDS, ROLES] {
        findings.extend(leftovers(folder, &wanted, write)?);
    }
    Ok(findings)
}

/// Every generated file with its content.
fn wanted() -> Result<BTreeMap<PathBuf, String>> {
    let crds = spanwire_api::crds().context("generating the CRDs")?;
    let roles = spanwire_api::rbac::manifests().context("generating the roles")?;
    let within = |folder: &str, files: Vec<(String, String)>| {
        let folder = place::root().join(folder);
        files.into_iter().map(move |(name, text)| (folder.join(name), text))
    };
    let reference = (place::root().join(REFERENCE), spanwire_api::reference());
    let metrics = (place::root().join(METRICS), spanwire_api::metrics::page());
    Ok(within(CRDS, crds).chain(within(ROLES, roles)).chain([reference, metrics, page()?]).collect())
}

/// The chart's page with the table of its values.
fn page() -> Result<(PathBuf, String)> {
    let read =
        |path: &PathBuf| fs::read_to_string(path).with_context(|| format!("reading {}", place::short(path)));
    let path = place::root().join(PAGE);
    let (values, page) = (read(&path.with_file_name("values.yaml"))?, read(&path)?);
    let parts = page.split_once(BEGIN).and_then(|(head, rest)| Some((head, rest.split_once(END)?.1)));
    let (head, tail) = parts.with_context(|| format!("{PAGE} has no lines {BEGIN}and {END}"))?;
    let table = values::table(&values)?;
    Ok((path, format!("{head}{BEGIN}\n{table}\n{END}{tail}")))
}

/// What is no longer generated.
fn leftovers(folder: &str, wanted: &BTreeMap<PathBuf, String>, write: bool) -> Result<Vec<String>> {
    let mut findings = Vec::new();
    for entry in fs::read_dir(place::root().join(folder)).into_iter().flatten() {
        let path = entry.with_context(|| format!("listing {folder}"))?.path();
        if wanted.contains_key(&path) {
            continue;
        }
        if write {
            fs::remove_file(&path).with_context(|| format!("removing {}", place::short(&path)))?;
        }
        let verb = if write { "removed" } else { "belongs to no kind in crates/api" };
        findings.push(format!("{}: {verb}", place::short(&path)));
    }
    Ok(findings)
}
