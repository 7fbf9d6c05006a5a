//! Switches that `conf.all` holds for every interface, ours too: reverse-path filtering (1 or 2) and sending of redirects.
//! They move to each interface that is not ours, and back on an uninstall. It refuses to change what holds for any other
//! interface.
//!
//! A reverse-path filter, strict or loose, drops what a link carries before its routes stand: the way back is an
//! unreachable route then. Redirects would tell spokes to leave out the hub.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs, io,
    path::{Path, PathBuf},
};

use serde::{Deserialize, Serialize};

use crate::sysctl::{self, Sysctl};

use super::Error;

/// The switches; of both the kernel uses the larger of the value of `all` and that of the interface.
const SWITCHES: [&str; 2] = ["rp_filter", "send_redirects"];
const OFF: &str = "0";

/// What was changed, in a folder with the lifetime of the switches.
#[derive(Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
struct Note {
    /// The boot that the values belong to.
    boot: String,
    moved: BTreeMap<String, Moved>,
}

/// Of one switch.
#[derive(Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
struct Moved {
    /// Value of `all` before.
    all: String,
    /// Value before, by interface (and `default`).
    before: BTreeMap<String, String>,
}

fn key(interface: &str, switch: &str) -> String {
    format!("ipv4/conf/{interface}/{switch}")
}

fn note_path(run_dir: &Path) -> PathBuf {
    run_dir.join("switches.json")
}

fn get(sysctl: &Sysctl, interface: &str, switch: &str) -> Result<Option<String>, Error> {
    sysctl.get(&key(interface, switch)).map_err(Error::Switch)
}

/// Whether no switch holds for all interfaces.
pub(super) fn are_off(sysctl: &Sysctl) -> Result<bool, sysctl::Error> {
    for switch in SWITCHES {
        if sysctl.get(&key("all", switch))?.is_some_and(|all| all != OFF) {
            return Ok(false);
        }
    }
    Ok(true)
}

/// Moves what has to be moved. Returns what was changed, for people.
pub(super) fn move_away(
    sysctl: &Sysctl,
    run_dir: &Path,
    ours: &BTreeSet<String>,
) -> Result<Vec<String>, Error> {
    let mut changed = Vec::new();
    for switch in SWITCHES {
        let Some(all) = get(sysctl, "all", switch)?.filter(|all| all != OFF) else { continue };
        let mut moved = Moved { all, before: BTreeMap::new() };
        for interface in sysctl.names("ipv4/conf").map_err(Error::Switch)? {
            if interface != "all" && !ours.contains(&interface) {
                let value = get(sysctl, &interface, switch)?;
                moved.before.extend(value.filter(|value| *value < moved.all).map(|value| (interface, value)));
            }
        }
        let (all, others) = (moved.all.clone(), moved.before.keys().cloned().collect::<Vec<_>>());
        keep(run_dir, switch, moved)?;
        for interface in others {
            changed.extend(set(sysctl, &interface, switch, &all)?);
        }
        // Last, so that no interface is without its own in between.
        changed.extend(set(sysctl, "all", switch, OFF)?);
    }
    Ok(changed)
}

/// Puts everything back that still stands as it was left.
pub(super) fn undo(sysctl: &Sysctl, run_dir: &Path) -> Result<Vec<String>, Error> {
    let path = note_path(run_dir);
    let fault = |source| Error::Note { path: path.clone(), source };
    let Some(note) = read(&path).map_err(fault)? else { return Ok(Vec::new()) };
    let mut changed = Vec::new();
    for (switch, Moved { all, before }) in &note.moved {
        if get(sysctl, "all", switch)?.as_deref() == Some(OFF) {
            changed.extend(set(sysctl, "all", switch, all)?);
        }
        for (interface, before) in before {
            if get(sysctl, interface, switch)?.as_ref() == Some(all) {
                changed.extend(set(sysctl, interface, switch, before)?);
            }
        }
    }
    fs::remove_file(&path).map_err(fault)?;
    Ok(changed)
}

/// Sets a switch. Returns what was changed, for people.
fn set(sysctl: &Sysctl, interface: &str, switch: &str, value: &str) -> Result<Option<String>, Error> {
    let before = sysctl.set(&key(interface, switch), value).map_err(Error::Switch)?;
    Ok(before.map(|before| format!("net.ipv4.conf.{interface}.{switch} {before} -> {value}")))
}

/// The note of this boot; one of another boot speaks of switches that are gone.
fn read(path: &Path) -> io::Result<Option<Note>> {
    let text = match fs::read_to_string(path) {
        Ok(text) => text,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(error),
    };
    let note: Note = serde_json::from_str(&text).map_err(io::Error::other)?;
    Ok((note.boot == boot_id()).then_some(note))
}

/// An earlier entry stays: it knows the values before ours.
fn keep(run_dir: &Path, switch: &str, moved: Moved) -> Result<(), Error> {
    let path = note_path(run_dir);
    let fault = |source| Error::Note { path: path.clone(), source };
    let unreadable = |error| {
        tracing::warn!(%error, path = %path.display(), "starting the note of changed switches afresh");
        None
    };
    let mut note =
        read(&path).unwrap_or_else(unreadable).unwrap_or_else(|| Note { boot: boot_id(), ..Note::default() });
    note.moved.entry(switch.to_owned()).or_insert(moved);
    let text = serde_json::to_string(&note).map_err(|error| fault(io::Error::other(error)))?;
    fs::create_dir_all(run_dir).map_err(fault)?;
    fs::write(&path, text).map_err(fault)
}

fn boot_id() -> String {
    fs::read_to_string("/proc/sys/kernel/random/boot_id")
        .map(|text| text.trim().to_owned())
        .unwrap_or_default()
}
