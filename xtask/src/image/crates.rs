//! Which crates are in our programs, with licences and checksums. It refuses crates that only built them or tested them.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    path::{Path, PathBuf},
};

use anyhow::{Context as _, Result, bail};

use super::{architecture::Architecture, programs};
use crate::place;

/// A crate in our programs.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Crate {
    /// Its name.
    pub(crate) name: String,
    /// Its version.
    pub(crate) version: String,
    /// Its licences as an SPDX expression.
    pub(crate) licence: String,
    /// SHA-256 of its file on the registry; none of ours has one.
    pub(crate) sha256: Option<String>,
    folder: PathBuf,
}

/// All of them, sorted.
pub(crate) fn linked(architecture: Architecture) -> Result<Vec<Crate>> {
    let names = tree(architecture)?;
    let lock = fs::read_to_string(place::root().join("Cargo.lock")).context("reading Cargo.lock")?;
    let checksums = checksums(&lock);
    let metadata = place::metadata_of_all()?;
    let packages = metadata["packages"].as_array().context("cargo metadata names no packages")?;
    let mut crates = BTreeSet::new();
    for package in packages {
        let text = |key: &str| package[key].as_str().unwrap_or_default().to_owned();
        let of = (text("name"), text("version"));
        if !names.contains(&of) {
            continue;
        }
        let folder = Path::new(&text("manifest_path")).parent().map(Path::to_path_buf);
        crates.insert(Crate {
            licence: expression(&text("license")),
            sha256: checksums.get(&of).cloned(),
            folder: folder.context("a manifest stands in no folder")?,
            name: of.0,
            version: of.1,
        });
    }
    if crates.len() != names.len() {
        bail!("cargo tree names {} crates, cargo metadata describes {}", names.len(), crates.len());
    }
    Ok(crates.into_iter().collect())
}

/// Names and versions of what is linked, as cargo resolves it for our programs alone.
fn tree(architecture: Architecture) -> Result<BTreeSet<(String, String)>> {
    let mut command = place::cargo(&["tree", "--locked", "--prefix", "none", "--format", "{p}"]);
    command.args(["--edges", "normal,no-proc-macro", "--target", &architecture.target()]);
    let output = command.args(programs::packages()).output().context("starting cargo tree")?;
    if !output.status.success() {
        bail!("cargo tree failed: {}", String::from_utf8_lossy(&output.stderr).trim());
    }
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    Ok(named(&text))
}

/// `name v1.2.3 (where)` in each line.
fn named(text: &str) -> BTreeSet<(String, String)> {
    let lines = text.lines().filter_map(|line| {
        let mut words = line.split_whitespace();
        let (name, version) = (words.next()?, words.next()?.strip_prefix('v')?);
        Some((name.to_owned(), version.to_owned()))
    });
    lines.collect()
}

/// Checksums of the registry by name and version.
fn checksums(lock: &str) -> BTreeMap<(String, String), String> {
    let of = |block: &str, key: &str| {
        let mut lines = block.lines();
        lines.find_map(|line| {
            Some(line.strip_prefix(key)?.strip_prefix(" = \"")?.strip_suffix('"')?.to_owned())
        })
    };
    let blocks = lock.split("[[package]]").skip(1);
    blocks
        .filter_map(|block| Some(((of(block, "name")?, of(block, "version")?), of(block, "checksum")?)))
        .collect()
}

/// Old manifests write a slash for "or".
fn expression(licence: &str) -> String {
    licence.split('/').map(str::trim).collect::<Vec<_>>().join(" OR ")
}

/// The texts of all licences, each once, behind the names of the crates that carry it.
pub(crate) fn licences(crates: &[Crate]) -> Result<String> {
    let mut texts: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for each in crates.iter().filter(|each| each.sha256.is_some()) {
        let name = format!("{} {} ({})", each.name, each.version, each.licence);
        for file in papers(&each.folder)? {
            let text = fs::read_to_string(&file).with_context(|| format!("reading {}", file.display()))?;
            texts.entry(text.trim().to_owned()).or_default().insert(name.clone());
        }
    }
    let mut sorted: Vec<(BTreeSet<String>, String)> =
        texts.into_iter().map(|(text, names)| (names, text)).collect();
    sorted.sort();
    let rule = "=".repeat(80);
    let sections = sorted.into_iter().map(|(names, text)| {
        format!("{rule}\n{}\n{rule}\n\n{text}\n\n", names.into_iter().collect::<Vec<_>>().join("\n"))
    });
    Ok(sections.collect())
}

/// Files of a crate that hold its licence or what has to be said with it.
fn papers(folder: &Path) -> Result<Vec<PathBuf>> {
    let listed = fs::read_dir(folder).with_context(|| format!("listing {}", folder.display()))?;
    let mut files: Vec<PathBuf> = listed.flatten().map(|entry| entry.path()).collect();
    files.retain(|path| {
        let name = path.file_name().unwrap_or_default().to_string_lossy().to_uppercase();
        path.is_file()
            && ["LICENSE", "LICENCE", "COPYING", "COPYRIGHT", "NOTICE"].iter().any(|of| name.starts_with(of))
    });
    files.sort();
    Ok(files)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_of_the_tree_are_names_and_versions() {
        let found = named("spanwire v0.1.0 (/x/operator)\nserde v1.0.2\nserde v1.0.2 (*)\n\n");
        let pair = |name: &str, version: &str| (name.to_owned(), version.to_owned());
        assert_eq!(found, BTreeSet::from([pair("serde", "1.0.2"), pair("spanwire", "0.1.0")]));
    }

    #[test]
    fn checksums_are_found_by_name_and_version() {
        let lock = "version = 4\n\n[[package]]\nname = \"a\"\nversion = \"1.0.0\"\nchecksum = \"abc\"\ndependencies = [\n \
                    \"b\",\n]\n\n[[package]]\nname = \"ours\"\nversion = \"0.1.0\"\n";
        let found = checksums(lock);
        assert_eq!(found.len(), 1);
        assert_eq!(found[&("a".to_owned(), "1.0.0".to_owned())], "abc");
    }

    #[test]
    fn old_licences_become_expressions() {
        assert_eq!(expression("MIT/Apache-2.0"), "MIT OR Apache-2.0");
        assert_eq!(expression("Apache-2.0 / MIT"), "Apache-2.0 OR MIT");
        assert_eq!(expression("MIT OR Apache-2.0"), "MIT OR Apache-2.0");
        assert_eq!(expression("Apache-2.0"), "Apache-2.0");
    }
}
