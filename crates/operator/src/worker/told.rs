//! What people are told of links as Events: connected, and lost. It refuses to tell what was so before: without a word from
//! before nothing is told.

use std::collections::BTreeSet;

use spanwire_api::TunnelLinkSpec;
use spanwire_engine::{LinkId, LinkRole, LinkState, NetworkName, PeerStatus, WorkerStatus};

use crate::events::Happening;

/// A link that is connected now and was not, or the other way round.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Turn {
    /// Which.
    pub link: LinkId,
    /// Whether it is connected now.
    pub connected: bool,
    /// Words for people.
    pub words: String,
}

impl Turn {
    /// The turn on the record of the link.
    pub fn happening(self, uid: String) -> Happening {
        let Self { link, connected, words } = self;
        let reason = if connected { "Connected" } else { "ConnectionLost" };
        let happening = Happening::on::<TunnelLinkSpec>(link.to_string(), uid, reason, words);
        if connected { happening } else { happening.warning() }
    }
}

/// The links whose connection came or went between two reports.
pub fn turns(network: &NetworkName, before: &WorkerStatus, after: &WorkerStatus) -> Vec<Turn> {
    let connected = before.peers.iter().filter(|row| row.state == LinkState::Connected);
    let connected: BTreeSet<(&str, Option<LinkRole>)> =
        connected.map(|row| (row.peer.as_str(), row.role)).collect();
    let was = |row: &PeerStatus| connected.contains(&(row.peer.as_str(), row.role));
    after.peers.iter().filter_map(|row| turn(network, was(row), row)).collect()
}

fn turn(network: &NetworkName, was: bool, row: &PeerStatus) -> Option<Turn> {
    let link = || Some(LinkId { network: network.clone(), peer: row.peer.parse().ok()?, role: row.role? });
    match (was, row.state) {
        (false, LinkState::Connected) => {
            Some(Turn { words: format!("connected with {}", row.peer), link: link()?, connected: true })
        }
        (true, LinkState::NotConnected) => {
            let words =
                format!("no longer connected with {}: {} {}", row.peer, row.reason.as_str(), row.message);
            Some(Turn { words, link: link()?, connected: false })
        }
        (true, LinkState::Connected | LinkState::Pending)
        | (false, LinkState::NotConnected | LinkState::Pending) => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use spanwire_engine::{Reason, RouteState};

    fn status(states: &[(&str, LinkState)]) -> WorkerStatus {
        let row = |(peer, state): &(&str, LinkState)| PeerStatus {
            peer: (*peer).to_owned(),
            role: Some(LinkRole::Mesh),
            state: *state,
            route: RouteState::None,
            reason: Reason::NoEvidence,
            message: "no answer".to_owned(),
            last_transition: String::new(),
        };
        WorkerStatus { peers: states.iter().map(row).collect(), ..WorkerStatus::default() }
    }

    #[test]
    fn only_what_came_or_went_is_told() {
        let network = "demo".parse().unwrap();
        let before =
            status(&[("a", LinkState::Connected), ("b", LinkState::Pending), ("c", LinkState::Connected)]);
        let after = status(&[
            ("a", LinkState::NotConnected),
            ("b", LinkState::Connected),
            ("c", LinkState::Connected),
        ]);
        let told: Vec<_> = turns(&network, &before, &after)
            .into_iter()
            .map(|turn| (turn.link.peer.to_string(), turn.connected))
            .collect();
        assert_eq!(told, [("a".to_owned(), false), ("b".to_owned(), true)]);
        assert_eq!(turns(&network, &after, &after), []);
        assert_eq!(
            turns(&network, &before, &status(&[])),
            [],
            "a link that is not wanted any more is not lost"
        );
    }
}
