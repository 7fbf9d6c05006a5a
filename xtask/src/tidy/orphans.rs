//! Source files that no crate compiles. It refuses `#[path]`: a module stands where its name says.

use std::{
    collections::BTreeSet,
    path::{Path, PathBuf},
};

use anyhow::{Context as _, Result};

use super::{files::sources, lexer::code_only};
use crate::place;

/// Follows every `mod` from the roots of all targets and names the files that were not met.
pub(crate) fn findings() -> Result<Vec<String>> {
    let metadata = place::metadata()?;
    let packages = metadata["packages"].as_array().context("cargo metadata names no packages")?;
    let targets = packages.iter().filter_map(|package| package["targets"].as_array()).flatten();
    let mut met = BTreeSet::new();
    let mut findings = Vec::new();
    for root in targets.filter_map(|target| target["src_path"].as_str()).map(PathBuf::from) {
        let folder = root.parent().map(Path::to_path_buf).unwrap_or_default();
        follow(&root, &folder, &mut met, &mut findings)?;
    }
    let all = sources()?.into_iter().map(|(path, _)| path);
    findings.extend(
        all.filter(|path| !met.contains(path))
            .map(|path| format!("{}: no crate compiles this file", place::short(&path))),
    );
    Ok(findings)
}

fn follow(file: &Path, folder: &Path, met: &mut BTreeSet<PathBuf>, findings: &mut Vec<String>) -> Result<()> {
    if !met.insert(file.to_path_buf()) {
        return Ok(());
    }
    let text = std::fs::read_to_string(file).with_context(|| format!("reading {}", place::short(file)))?;
    let code = code_only(&text);
    if code.contains("#[path") {
        findings.push(format!("{}: `#[path]` hides where a module is", place::short(file)));
    }
    for name in modules(&code) {
        let module = folder.join(format!("{name}.rs"));
        if module.is_file() {
            follow(&module, &folder.join(&name), met, findings)?;
        }
    }
    Ok(())
}

/// The names of modules that are declared to stand in files of their own.
fn modules(code: &str) -> Vec<String> {
    let words: Vec<&str> = code.split_whitespace().collect();
    words
        .windows(2)
        .filter(|pair| pair[0] == "mod")
        .filter_map(|pair| pair[1].strip_suffix(';'))
        .map(str::to_owned)
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn modules_in_files_of_their_own_are_found() {
        let code = "mod a; pub mod b;\n#[cfg(test)]\nmod tests {\n}\npub(crate) mod c;";
        assert_eq!(modules(code), ["a", "b", "c"]);
    }
}
