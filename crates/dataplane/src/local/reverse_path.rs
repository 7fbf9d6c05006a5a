//! Reverse-path filtering of all interfaces (`conf.all.rp_filter` 1 or 2) would hold for our devices too: it moves to
//! each interface that is not ours, and back on an uninstall. It refuses to weaken the filter of any other interface.
//!
//! Strict or loose, it drops what a link carries before its routes stand: the way back is an unreachable route then.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs, io,
    path::{Path, PathBuf},
};

use serde::{Deserialize, Serialize};

use crate::sysctl;

use super::Error;

/// What was changed, in a folder with the lifetime of the switches.
#[derive(Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
struct Note {
    /// The boot that the values belong to.
    boot: String,
    /// Value of `all` before.
    all: String,
    /// Value before, by interface (and `default`).
    before: BTreeMap<String, String>,
}

const OFF: &str = "0";

fn key(interface: &str) -> String {
    format!("ipv4/conf/{interface}/rp_filter")
}

fn note_path(run_dir: &Path) -> PathBuf {
    run_dir.join("reverse-path.json")
}

/// Moves the filter if need be. Returns what was changed, for people.
pub(super) fn loosen(run_dir: &Path, ours: &BTreeSet<String>) -> Result<Vec<String>, Error> {
    let all = sysctl::get(&key("all")).map_err(Error::Switch)?;
    let Some(all) = all.filter(|all| all != OFF) else { return Ok(Vec::new()) };
    let mut note = Note { boot: boot_id(), all, before: BTreeMap::new() };
    for interface in sysctl::names("ipv4/conf").map_err(Error::Switch)? {
        if interface != "all" && !ours.contains(&interface) {
            let value = sysctl::get(&key(&interface)).map_err(Error::Switch)?;
            // The kernel uses the larger of the two values.
            note.before.extend(value.filter(|value| *value < note.all).map(|value| (interface, value)));
        }
    }
    keep(run_dir, &note)?;
    let mut changed = Vec::new();
    for interface in note.before.keys() {
        set(interface, &note.all, &mut changed)?;
    }
    // Last, so that no interface is without its filter in between.
    set("all", OFF, &mut changed)?;
    Ok(changed)
}

/// Puts everything back that still stands as it was left.
pub(super) fn undo(run_dir: &Path) -> Result<Vec<String>, Error> {
    let path = note_path(run_dir);
    let fault = |source| Error::Note { path: path.clone(), source };
    let text = match fs::read_to_string(&path) {
        Ok(text) => text,
        Err(source) if source.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(source) => return Err(fault(source)),
    };
    let note: Note = serde_json::from_str(&text).map_err(|error| fault(io::Error::other(error)))?;
    let mut changed = Vec::new();
    if note.boot == boot_id() {
        if sysctl::get(&key("all")).map_err(Error::Switch)?.as_deref() == Some(OFF) {
            set("all", &note.all, &mut changed)?;
        }
        for (interface, before) in &note.before {
            if sysctl::get(&key(interface)).map_err(Error::Switch)?.as_ref() == Some(&note.all) {
                set(interface, before, &mut changed)?;
            }
        }
    }
    fs::remove_file(&path).map_err(fault)?;
    Ok(changed)
}

fn set(interface: &str, value: &str, changed: &mut Vec<String>) -> Result<(), Error> {
    let before = sysctl::set(&key(interface), value).map_err(Error::Switch)?;
    changed.extend(before.map(|before| format!("net.ipv4.conf.{interface}.rp_filter {before} -> {value}")));
    Ok(())
}

/// An earlier note of the same boot stays: it knows the values before ours.
fn keep(run_dir: &Path, note: &Note) -> Result<(), Error> {
    let path = note_path(run_dir);
    let fault = |source| Error::Note { path: path.clone(), source };
    let earlier = fs::read_to_string(&path).ok().and_then(|text| serde_json::from_str::<Note>(&text).ok());
    if earlier.is_some_and(|earlier| earlier.boot == note.boot) {
        return Ok(());
    }
    let text = serde_json::to_string(note).map_err(|error| fault(io::Error::other(error)))?;
    fs::create_dir_all(run_dir).map_err(fault)?;
    fs::write(&path, text).map_err(fault)
}

fn boot_id() -> String {
    fs::read_to_string("/proc/sys/kernel/random/boot_id")
        .map(|text| text.trim().to_owned())
        .unwrap_or_default()
}
