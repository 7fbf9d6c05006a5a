//! Words that a room never says, notes to self, and paths of somebody's machine. It refuses to judge prose: only code
//! is held against a room's words.

use std::path::Path;

use anyhow::Result;

use super::{files::sources, lexer::code_only};
use crate::place;

/// Folder of a crate and the words that its code never says.
const ROOMS: [(&str, &[&str]); 4] = [
    ("crates/api/src", &["tokio"]),
    ("crates/engine/src", &["kube", "tokio", "netlink", "serde"]),
    ("crates/store/src", &["wireguard", "netlink"]),
    ("crates/dataplane/src", &["kube"]),
];

// Written in halves, so that this file does not hold what it looks for.
const NOTES: [&str; 4] = [concat!("TO", "DO"), concat!("FIX", "ME"), concat!("XX", "X"), concat!("HA", "CK")];
const HOMES: [&str; 3] = [concat!("/ho", "me/"), concat!("/ro", "ot/"), concat!("/Us", "ers/")];
const READ: [&str; 8] = ["rs", "md", "toml", "yaml", "yml", "sh", "txt", "json"];

/// Judges every text file.
pub(crate) fn findings() -> Result<Vec<String>> {
    let mut findings = Vec::new();
    for (path, text) in sources()? {
        findings.extend(foreign_words(&place::short(&path), &text));
    }
    let root = place::root().display().to_string();
    for path in place::files()?.iter().filter(|path| is_text(path)) {
        // A file that is no text holds no words.
        let Ok(text) = std::fs::read_to_string(path) else { continue };
        findings.extend(notes(&place::short(path), &text, &root));
    }
    Ok(findings)
}

fn is_text(path: &Path) -> bool {
    let end = path.extension().and_then(|end| end.to_str());
    end.is_none_or(|end| READ.contains(&end)) && path.file_name().is_none_or(|name| name != "Cargo.lock")
}

fn foreign_words(name: &str, text: &str) -> Vec<String> {
    let Some((_, words)) = ROOMS.iter().find(|(room, _)| name.starts_with(room)) else { return Vec::new() };
    let mut findings = Vec::new();
    for (number, line) in (1..).zip(code_only(text).lines()) {
        for identifier in line.split(|c: char| !c.is_alphanumeric() && c != '_') {
            let lower = identifier.to_lowercase();
            if let Some(word) = words.iter().find(|word| lower.contains(**word)) {
                findings.push(format!("{name}:{number}: `{identifier}`: this room never says {word}"));
            }
        }
    }
    findings
}

fn notes(name: &str, text: &str, root: &str) -> Vec<String> {
    let mut findings = Vec::new();
    for (number, line) in (1..).zip(text.lines()) {
        let words = line.split(|c: char| !c.is_alphanumeric());
        for note in words.filter(|word| NOTES.contains(word)) {
            findings.push(format!("{name}:{number}: {note}: do it, or write an issue"));
        }
        let own = Path::new(root).components().count() > 2 && line.contains(root);
        if own || HOMES.iter().any(|home| line.contains(home)) {
            findings.push(format!("{name}:{number}: a path of somebody's machine"));
        }
    }
    findings
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn code_is_held_against_its_room_and_prose_is_not() {
        let text = "//! Never kube.\nuse rtnetlink::Handle;\nlet kube_client = 1; // serde\n";
        assert_eq!(foreign_words("crates/engine/src/x.rs", text).len(), 2);
        assert_eq!(foreign_words("crates/operator/src/x.rs", text).len(), 0);
    }

    #[test]
    fn notes_and_paths_are_found() {
        let note = format!("// {}: later\n", NOTES[0]);
        assert_eq!(notes("x", &note, "/srv/a/b").len(), 1);
        assert_eq!(notes("x", "see /srv/a/b/c\n", "/srv/a/b").len(), 1);
        assert_eq!(notes("x", &format!("see {}me/x\n", HOMES[1]), "/srv/a/b").len(), 1);
        assert_eq!(notes("x", "see /srv/a/b/c and a HACKER\n", "/").len(), 0);
    }
}
