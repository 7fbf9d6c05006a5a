//! What is shown when something did not happen in time. It refuses to interpret: statuses and ends of logs as they are.

use std::{fmt::Write as _, fs, path::Path};

use super::{Fleet, Member};

/// The last status of the network and of every link, and the end of every log.
pub(crate) fn last_words(fleet: &Fleet) -> String {
    let mut text = String::new();
    match fleet.network() {
        Ok(Some(status)) => {
            let _ = writeln!(text, "network: state {}, edges {:?}", status.state, status.edges);
            for condition in &status.conditions {
                let (kind, status) = (&condition.type_, condition.status);
                let _ = writeln!(text, "  {kind}={status:?} {}: {}", condition.reason, condition.message);
            }
            if let Some(change) = &status.change {
                let _ = writeln!(text, "  change to {:?} in phase {:?}", change.to.hubs, change.phase);
            }
        }
        Ok(None) => text.push_str("network: the controller has not written a status\n"),
        Err(error) => {
            let _ = writeln!(text, "network: {error:#}");
        }
    }
    for member in fleet.members() {
        links(fleet, member, &mut text);
    }
    for process in fleet.processes() {
        let _ = writeln!(text, "--- {} ---\n{}", process.program().name, tail(process.log(), 12));
    }
    text
}

fn links(fleet: &Fleet, member: &Member, text: &mut String) {
    let rows = match fleet.links(member.name()) {
        Ok(status) => status.map(|status| status.peer_statuses).unwrap_or_default(),
        Err(error) => {
            let _ = writeln!(text, "{}: {error:#}", member.name());
            return;
        }
    };
    for row in rows {
        let _ = writeln!(
            text,
            "{}: {:?} to {}: {:?}, route {:?}, {}: {}",
            member.name(),
            row.role,
            row.peer,
            row.state,
            row.route,
            row.reason,
            row.message
        );
    }
}

/// The last lines of a file.
pub(crate) fn tail(path: &Path, lines: usize) -> String {
    let text = fs::read(path).map(|bytes| String::from_utf8_lossy(&bytes).into_owned()).unwrap_or_default();
    let all: Vec<&str> = text.lines().collect();
    all[all.len().saturating_sub(lines)..].join("\n")
}
