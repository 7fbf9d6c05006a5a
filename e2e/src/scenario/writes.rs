//! What a hub change writes, counted from the audit logs beside what it should be at most. It refuses traffic: with it the
//! machine is too busy for many members.

use std::collections::BTreeMap;

use anyhow::Result;
use spanwire_testkit::control_plane::Request;

use super::phases::Phases;
use crate::{Fleet, Outcome, Say, Setup, interrupt, measure};

/// Phases of a hub change; in each every member has another intent.
const PHASES: usize = 4;

/// One line of the table.
struct Line {
    what: &'static str,
    /// Resource with subresource, and verbs.
    counts: fn(&Request) -> bool,
    /// What it should be at most for so many members, where that can be said.
    bound: fn(usize) -> Option<usize>,
}

/// In a change from one hub to another each spoke, the old hub and the new one exchange an uplink, which has two ends, and
/// the hubs two trunks. A link is told of when it is made, when it is connected, and when it is no longer wanted.
const LINES: [Line; 8] = [
    Line {
        what: "intents, by the controller",
        counts: |it| it.target() == "workersliceconfigs",
        bound: |members| Some(PHASES * members),
    },
    Line {
        what: "statuses of intents, by workers",
        counts: |it| it.target() == "workersliceconfigs/status",
        bound: |members| Some(PHASES * members),
    },
    Line {
        what: "links made",
        counts: |it| it.target() == "tunnellinks" && is_creation(it),
        bound: |members| Some(2 * members),
    },
    Line {
        what: "links deleted",
        counts: |it| it.target() == "tunnellinks" && it.verb == "delete",
        bound: |members| Some(2 * members),
    },
    Line {
        what: "links changed",
        counts: |it| it.target() == "tunnellinks" && it.code == 200 && it.verb != "delete",
        bound: |_| Some(0),
    },
    Line {
        what: "statuses of links",
        counts: |it| it.target() == "tunnellinks/status",
        bound: |members| Some(3 * 2 * members),
    },
    Line {
        what: "applied intents",
        counts: |it| it.target() == "appliedintents",
        bound: |members| Some(PHASES * members),
    },
    Line {
        what: "statuses of the network",
        counts: |it| it.target() == "gatewaynetworks/status",
        bound: |_| None,
    },
];

fn is_creation(request: &Request) -> bool {
    request.verb == "create" || request.code == 201
}

/// Moves the hub, and counts.
pub(crate) fn run(setup: &Setup, fleet: &mut Fleet, say: Say) -> Result<Outcome> {
    let marks = fleet.servers()?.marks()?;
    let begun = std::time::Instant::now();
    say.line("Editing the network: hub: hub-a becomes hub: hub-b");
    fleet.declare(|network| network.hub = Some("hub-b".to_owned()))?;
    let mut phases = Phases::default();
    phases.follow_since(fleet, &|| begun.elapsed(), say, |_, _| Ok(()))?;
    // What is still on its way belongs to the change.
    interrupt::pause(std::time::Duration::from_secs(15))?;
    let requests = fleet.servers()?.requests_since(&marks)?;
    let counts = |request: &&Request| request.is_accepted_write() && request.resource != "leases";
    let writes: Vec<&Request> = requests.iter().filter(counts).collect();
    let members = usize::from(setup.members);
    say.line(format!("\n{:34} {:>8} {:>8}", format!("{members} members"), "written", "bound"));
    let mut rest: BTreeMap<String, usize> = BTreeMap::new();
    for request in &writes {
        if !LINES.iter().any(|line| (line.counts)(request)) {
            *rest.entry(format!("{} {}", request.verb, request.target())).or_default() += 1;
        }
    }
    for Line { what, counts, bound } in &LINES {
        let counted = writes.iter().filter(|request| counts(request)).count();
        let bound = bound(members).map(|bound| bound.to_string()).unwrap_or_default();
        say.line(format!("{what:34} {counted:>8} {bound:>8}"));
    }
    for (what, counted) in rest {
        say.line(format!("{what:34} {counted:>8}"));
    }
    let refused =
        requests.iter().filter(|request| request.is_write() && !request.is_accepted_write()).count();
    say.line(format!("{:34} {refused:>8}", "writes that were refused"));
    let quiet = measure::Quiet { rate: 0, sent: 0, lost: 0, longest_gap_ms: 0 };
    let mut outcome = Outcome::empty(setup, quiet);
    outcome.phases = phases.outcome();
    outcome.passed = true;
    outcome.verdict = format!("{} writes for {members} members, without leases", writes.len());
    Ok(outcome)
}
