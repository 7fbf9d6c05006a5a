//! What a source file has to look like from outside: its size, its first line, its name. It refuses to read its code.

use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result};

use crate::place;

const MOST_LINES: usize = 400;
const RULED_OUT: [&str; 9] = ["shared", "common", "util", "utils", "helper", "helpers", "misc", "v2", "mod"];

/// All source files with their text.
pub(crate) fn sources() -> Result<Vec<(PathBuf, String)>> {
    let files = place::files()?.into_iter().filter(|path| path.extension().is_some_and(|end| end == "rs"));
    files
        .map(|path| {
            let text =
                std::fs::read_to_string(&path).with_context(|| format!("reading {}", place::short(&path)))?;
            Ok((path, text))
        })
        .collect()
}

/// Judges every source file.
pub(crate) fn findings() -> Result<Vec<String>> {
    Ok(sources()?.iter().flat_map(|(path, text)| judge(path, text)).collect())
}

fn judge(path: &Path, text: &str) -> Vec<String> {
    let name = place::short(path);
    let mut findings = Vec::new();
    let lines = text.lines().count();
    if lines > MOST_LINES {
        findings.push(format!("{name}: {lines} lines, at most {MOST_LINES}: split it by what it decides"));
    }
    if !text.starts_with("//! ") {
        findings
            .push(format!("{name}:1: the first line is not `//! ` with what the file decides and refuses"));
    }
    for part in Path::new(&name).with_extension("").iter().filter_map(|part| part.to_str()) {
        if RULED_OUT.contains(&part.to_lowercase().as_str()) {
            findings.push(format!("{name}: `{part}` says nothing: name it after what it decides"));
        }
    }
    findings
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn size_first_line_and_name_are_judged() {
        let judge = |path: &str, text: &str| judge(&place::root().join(path), text).len();
        assert_eq!(judge("crates/x/src/plan.rs", "//! Plans.\n"), 0);
        assert_eq!(judge("crates/x/src/plan.rs", "// Plans.\n"), 1);
        assert_eq!(judge("crates/x/src/plan.rs", &"//! Plans.\n".repeat(401)), 1);
        for bad in ["crates/x/src/utils.rs", "crates/x/src/plan/mod.rs", "crates/common/src/lib.rs"] {
            assert_eq!(judge(bad, "//! Plans.\n"), 1, "{bad}");
        }
    }
}
