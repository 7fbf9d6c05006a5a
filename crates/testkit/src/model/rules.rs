//! The rules of the hub change that can be switched off, one at a time. It refuses to touch the engine: a rule is taken
//! away by lying to it, or by doing at once what it does late.

use std::str::FromStr;

use spanwire_engine::{
    LinkRole, LinkState, PeerStatus, Phase, Reason, Role, RouteState, WorkerStatus, port::IntentView,
    topology,
};

/// A rule that is switched off.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Rule {
    /// Adding waits for connected links.
    AddingBarrier,
    /// Adding waits for the new hub's routes.
    RoutesBeforeSwitching,
    /// Switching waits for the spokes' wide routes.
    SwitchingBarrier,
    /// There is a Demoting phase.
    Demoting,
    /// Demoting waits for the demoted hubs.
    DemotingBarrier,
    /// Only reports about this phase's intent count.
    FreshReports,
    /// What arrives on an uplink or mesh device, or on a trunk, does not leave by one.
    Horizon,
    /// A hub's wide route is never on an uplink.
    TrunkOnly,
    /// A demoted hub gives up its exact routes only when its wide route stands.
    DemoteInOrder,
    /// An edit during Removing waits.
    EditWaits,
    /// A wide route is given up only when mesh routes stand.
    MeshBeforeWide,
    /// Mesh routes go off only when the wide route stands.
    WideBeforeMesh,
}

impl Rule {
    /// All rules, with the names of the command line.
    pub const ALL: [(&'static str, Rule); 12] = [
        ("adding-barrier", Rule::AddingBarrier),
        ("routes-before-switching", Rule::RoutesBeforeSwitching),
        ("switching-barrier", Rule::SwitchingBarrier),
        ("demoting", Rule::Demoting),
        ("demoting-barrier", Rule::DemotingBarrier),
        ("fresh-reports", Rule::FreshReports),
        ("horizon", Rule::Horizon),
        ("trunk-only", Rule::TrunkOnly),
        ("demote-in-order", Rule::DemoteInOrder),
        ("edit-waits", Rule::EditWaits),
        ("mesh-before-wide", Rule::MeshBeforeWide),
        ("wide-before-mesh", Rule::WideBeforeMesh),
    ];
}

/// No rule of that name.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is not a rule")]
pub struct UnknownRule(pub String);

impl FromStr for Rule {
    type Err = UnknownRule;
    fn from_str(text: &str) -> Result<Self, UnknownRule> {
        let found = Rule::ALL.into_iter().find(|(name, _)| *name == text);
        found.map(|(_, rule)| rule).ok_or_else(|| UnknownRule(text.to_owned()))
    }
}

/// What the controller is made to believe of a worker when a barrier is switched off.
pub(super) fn lie(rule: Rule, phase: Phase, view: &IntentView) -> WorkerStatus {
    let truth = view.status.clone();
    match (rule, phase) {
        (Rule::AddingBarrier, Phase::Adding)
        | (Rule::SwitchingBarrier, Phase::Switching)
        | (Rule::DemotingBarrier, Phase::Demoting) => perfect(view),
        (Rule::RoutesBeforeSwitching, Phase::Adding) => {
            let role = if truth.role == Some(Role::Spoke) { view.intent.role } else { truth.role };
            let routed = |row: PeerStatus| PeerStatus { route: RouteState::Active, ..row };
            WorkerStatus { role, peers: truth.peers.into_iter().map(routed).collect(), ..truth }
        }
        (Rule::FreshReports, _) => WorkerStatus { observed_generation: view.meta.generation, ..truth },
        _ => truth,
    }
}

/// The report of a worker that has done everything.
fn perfect(view: &IntentView) -> WorkerStatus {
    let intent = &view.intent;
    let mut uplinks = 0;
    let mut peers = Vec::new();
    for peer in intent.peers.iter().flatten() {
        let Ok(name) = peer.parse() else { continue };
        for role in topology::roles(&intent.gateway, &name, &intent.hubs, intent.mesh_links) {
            let is_uplink = role == LinkRole::Uplink;
            uplinks += usize::from(is_uplink);
            let active = if is_uplink { uplinks == 1 && intent.role() == Role::Spoke } else { true };
            peers.push(row(peer, role, active));
        }
    }
    WorkerStatus {
        observed_generation: view.meta.generation,
        role: Some(intent.role()),
        peers,
        ..WorkerStatus::default()
    }
}

fn row(peer: &str, role: LinkRole, active: bool) -> PeerStatus {
    PeerStatus {
        peer: peer.to_owned(),
        role: Some(role),
        state: LinkState::Connected,
        route: if active { RouteState::Active } else { RouteState::Standby },
        reason: Reason::ProbeAnswered,
        message: String::new(),
        last_transition: String::new(),
    }
}
