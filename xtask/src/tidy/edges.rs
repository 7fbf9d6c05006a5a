//! Which crate may depend on which. It refuses edges that the table in ARCHITECTURE.md does not have.

use std::{
    collections::{BTreeMap, BTreeSet},
    path::Path,
};

use anyhow::{Context as _, Result};

use crate::place;

const TABLE: &str = "ARCHITECTURE.md";
const TESTKIT: &str = "testkit";

/// What one row of the table allows.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Allowed {
    Anything,
    Only(BTreeSet<String>),
}

/// Compares the crates of the workspace with the table.
pub(crate) fn findings() -> Result<Vec<String>> {
    let text =
        std::fs::read_to_string(place::root().join(TABLE)).with_context(|| format!("reading {TABLE}"))?;
    let table = table(&text);
    if table.is_empty() {
        return Ok(vec![format!("{TABLE}: no table with the columns `crate` and `may depend on`")]);
    }
    let metadata = place::metadata()?;
    let packages = metadata["packages"].as_array().context("cargo metadata names no packages")?;
    let names: BTreeSet<String> =
        packages.iter().filter_map(|package| folder(package["manifest_path"].as_str()?, 1)).collect();
    let mut findings: Vec<String> = table
        .keys()
        .filter(|name| !names.contains(*name))
        .map(|name| format!("{TABLE}: the table names `{name}`, which is no crate of the workspace"))
        .collect();
    for package in packages {
        let manifest = package["manifest_path"].as_str().unwrap_or_default();
        let name = folder(manifest, 1).with_context(|| format!("{manifest} stands in no folder"))?;
        let Some(allowed) = table.get(&name) else {
            findings.push(format!("{TABLE}: the table has no row for `{name}`"));
            continue;
        };
        let dependencies = package["dependencies"].as_array().map_or(&[][..], Vec::as_slice);
        findings
            .extend(dependencies.iter().filter_map(|dependency| judge(&name, allowed, dependency, &names)));
    }
    Ok(findings)
}

/// What is wrong with one dependency.
fn judge(
    name: &str,
    allowed: &Allowed,
    dependency: &serde_json::Value,
    ours: &BTreeSet<String>,
) -> Option<String> {
    let to = folder(dependency["path"].as_str()?, 0).filter(|to| ours.contains(to))?;
    let for_tests = dependency["kind"] == "dev";
    let fine = match allowed {
        Allowed::Anything => true,
        Allowed::Only(list) => (list.contains(&to) && to != TESTKIT) || (for_tests && to == TESTKIT),
    };
    let kind = if for_tests { "for its tests " } else { "" };
    (!fine).then(|| format!("{name}: depends {kind}on {to}, which the table in {TABLE} does not allow"))
}

/// The name of the folder that stands `up` levels over a path: crates go by their folders, not by their published
/// names.
fn folder(path: &str, up: usize) -> Option<String> {
    let folder = Path::new(path).ancestors().nth(up)?.file_name()?;
    Some(folder.to_string_lossy().into_owned())
}

/// The first table with the two columns.
fn table(text: &str) -> BTreeMap<String, Allowed> {
    let mut columns = None;
    let mut table = BTreeMap::new();
    for line in text.lines() {
        let cells = cells(line);
        let Some((name, allowed)) = columns else {
            let place = |title: &str| cells.iter().position(|cell| cell.eq_ignore_ascii_case(title));
            columns = place("crate").zip(place("may depend on"));
            continue;
        };
        let (Some(name), Some(allowed)) = (cells.get(name), cells.get(allowed)) else { break };
        if !name.chars().all(|c| c == '-' || c == ':') {
            table.insert(crate_name(name), parse(allowed));
        }
    }
    table
}

fn cells(line: &str) -> Vec<String> {
    let Some(inner) = line.trim().strip_prefix('|') else { return Vec::new() };
    let inner = inner.strip_suffix('|').unwrap_or(inner);
    inner.split('|').map(|cell| cell.replace('`', "").trim().to_owned()).collect()
}

fn crate_name(cell: &str) -> String {
    cell.trim().strip_prefix("crates/").unwrap_or(cell.trim()).to_owned()
}

fn parse(cell: &str) -> Allowed {
    if cell.contains("anything") {
        return Allowed::Anything;
    }
    let names = cell.split([',', '·']).map(crate_name);
    Allowed::Only(names.filter(|name| !name.is_empty() && name != "none" && name != "nothing").collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn the_table_is_read() {
        let table = table(concat!(
            "text\n\n| crate | its words | may depend on |\n|---|---|---|\n| `crates/api` | x | none |\n",
            "| `crates/store` | y | `api`, `engine` |\n| `e2e` | z | anything |\n\n| `other` | a | api |\n"
        ));
        assert_eq!(table.len(), 3);
        assert_eq!(table["api"], Allowed::Only(BTreeSet::new()));
        assert_eq!(table["store"], Allowed::Only(["api", "engine"].map(str::to_owned).into()));
        assert_eq!(table["e2e"], Allowed::Anything);
    }

    #[test]
    fn edges_that_the_table_lacks_are_named() {
        let ours = ["api", "engine", TESTKIT].map(str::to_owned).into();
        let allowed = Allowed::Only(["api".to_owned()].into());
        let edge = |name: &str, kind: serde_json::Value| json!({"kind": kind, "path": format!("x/{name}")});
        let judged = |edge| judge("store", &allowed, &edge, &ours).is_some();
        assert!(judged(edge("engine", json!(null))));
        assert!(judged(edge("engine", json!("dev"))));
        assert!(judged(edge("testkit", json!(null))));
        assert!(!judged(edge("testkit", json!("dev"))));
        assert!(!judged(edge("api", json!(null))));
        assert!(!judged(json!({"name": "serde", "kind": null, "path": null})));
    }
}
