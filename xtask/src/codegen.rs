//! The one writer of generated files. It refuses to leave what is no longer generated.

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

const CRDS: &str = "charts/spanwire/crds";

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
    let folder = place::root().join(CRDS);
    let wanted: BTreeMap<PathBuf, String> = spanwire_api::crds()
        .context("generating the CRDs")?
        .into_iter()
        .map(|(name, yaml)| (folder.join(name), yaml))
        .collect();
    let mut findings = Vec::new();
    if write {
        fs::create_dir_all(&folder).with_context(|| format!("making {CRDS}"))?;
    }
    for (path, content) in &wanted {
        if fs::read_to_string(path).ok().as_ref() == Some(content) {
            continue;
        }
        if write {
            fs::write(path, content).with_context(|| format!("writing {}", place::short(path)))?;
        }
        let verb = if write { "written" } else { "differs from the kinds in crates/api" };
        findings.push(format!("{}: {verb}", place::short(path)));
    }
    for entry in fs::read_dir(&folder).into_iter().flatten() {
        let path = entry.with_context(|| format!("listing {CRDS}"))?.path();
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
