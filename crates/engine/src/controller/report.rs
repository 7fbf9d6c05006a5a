//! The status of a network, from what is published and what the workers say. It refuses to call an empty network ready.

use std::collections::BTreeMap;

use crate::{
    Condition, GatewayName, LinkRole, LinkState, MemberStatus, NetworkStatus, Now, RouteState,
    network::Edges, port::NetworkView, status::ConditionStatus,
};

use super::{
    Stage,
    intents::active,
    phase::{Context, Outcome},
};

/// The status of a network that can't be carried out: the verdict; everything else stays as it was.
pub fn invalid(network: &NetworkView, reason: &str, now: &Now) -> NetworkStatus {
    let generation = network.meta.generation;
    let verdict =
        Condition::new("Valid", ConditionStatus::False, "InvalidSpec", reason.to_owned(), generation);
    let mut status = NetworkStatus {
        observed_generation: generation,
        state: format!("Invalid: {reason}"),
        ..network.status.clone()
    };
    let mut conditions = vec![verdict];
    conditions.extend(network.status.conditions.iter().filter(|old| old.kind != "Valid").cloned());
    status.conditions = keep_transitions(conditions, &network.status.conditions, now);
    status
}

/// The status after a pass. `done`: leavers whose entries go.
pub fn status(
    context: &Context<'_>,
    outcome: &Outcome,
    done: &[GatewayName],
    waits: &[String],
) -> NetworkStatus {
    let generation = context.network.meta.generation;
    let count = Count::new(context, &outcome.stage);
    let valid = Condition::new(
        "Valid",
        ConditionStatus::True,
        "Valid",
        "the declaration can be carried out".to_owned(),
        generation,
    );
    let conditions =
        vec![valid, converged(outcome, &count, waits, generation), ready(context, &count, generation)];
    let members = context.members.entries.iter().filter(|entry| !done.contains(&entry.gateway));
    NetworkStatus {
        observed_generation: generation,
        state: "Valid".to_owned(),
        active_hub: outcome.stage.hubs.first().cloned(),
        published: Some(outcome.published.clone()),
        change: outcome.change.clone(),
        edges: count.edges,
        members: members.map(|entry| member(context, entry, outcome)).collect(),
        conditions: keep_transitions(conditions, &context.network.status.conditions, context.now),
    }
}

/// A joiner has joined when it first reports its routes.
fn member(context: &Context<'_>, entry: &MemberStatus, outcome: &Outcome) -> MemberStatus {
    let view = context.view.intents.get(&(context.name.clone(), entry.gateway.clone()));
    let routed = view.is_some_and(|view| {
        let confirmed = view.status.observed_generation == view.meta.generation;
        confirmed && view.status.peers.iter().any(|row| row.route == RouteState::Active)
    });
    let kept = entry.leaving && outcome.stage.kept.contains(&entry.gateway);
    let leaving_since = entry.leaving_since.clone();
    MemberStatus {
        joining: entry.joining && !routed,
        leaving_since: if kept {
            Some(context.now.boot.clone()).filter(|_| leaving_since.is_none()).or(leaving_since)
        } else {
            leaving_since
        },
        ..entry.clone()
    }
}

/// Links of a stage, both ends joined.
struct Count {
    edges: Edges,
    /// The first one that is not ready: who, to whom, and whether only one end sees it.
    first: Option<String>,
    unconfirmed: Option<GatewayName>,
    extra: Option<GatewayName>,
}

impl Count {
    fn new(context: &Context<'_>, stage: &Stage) -> Self {
        let members = active(context, stage);
        let mut states: BTreeMap<(&GatewayName, &str, LinkRole), LinkState> = BTreeMap::new();
        let mut count = Self { edges: Edges::default(), first: None, unconfirmed: None, extra: None };
        for entry in &members {
            let Some(view) = context.view.intents.get(&(context.name.clone(), entry.gateway.clone())) else {
                count.unconfirmed.get_or_insert(entry.gateway.clone());
                continue;
            };
            if view.status.observed_generation != view.meta.generation {
                count.unconfirmed.get_or_insert(entry.gateway.clone());
            }
            for row in &view.status.peers {
                if let Some(role) = row.role {
                    states.insert((&entry.gateway, row.peer.as_str(), role), row.state);
                }
            }
        }
        for a in &members {
            for b in members.iter().filter(|b| b.gateway > a.gateway) {
                count.pair(context, stage, &states, &a.gateway, &b.gateway);
            }
        }
        let desired = usize::try_from(count.edges.desired).unwrap_or(usize::MAX).saturating_mul(2);
        if states.len() > desired {
            count.extra = members.first().map(|entry| entry.gateway.clone());
        }
        count
    }

    fn pair(
        &mut self,
        context: &Context<'_>,
        stage: &Stage,
        states: &BTreeMap<(&GatewayName, &str, LinkRole), LinkState>,
        a: &GatewayName,
        b: &GatewayName,
    ) {
        let unlinkable =
            |x: &GatewayName, y: &GatewayName| context.members.unlinkable.contains(&(x.clone(), y.clone()));
        if unlinkable(a, b) || unlinkable(b, a) {
            return;
        }
        let mesh = stage.mesh_links;
        let roles = crate::topology::roles(a, b, &stage.hubs, mesh);
        let spokes = !stage.hubs.contains(a) && !stage.hubs.contains(b);
        if spokes && stage.topology == crate::Topology::HubSpoke && !mesh {
            return;
        }
        for role in roles {
            self.edges.desired += 1;
            let ours = states.get(&(a, b.as_str(), role)).copied();
            let theirs = states.get(&(b, a.as_str(), role.other_end())).copied();
            match (ours, theirs) {
                (Some(LinkState::Connected), Some(LinkState::Connected)) => self.edges.ready += 1,
                (Some(LinkState::Connected), other) | (other, Some(LinkState::Connected)) => {
                    self.edges.failing += u32::from(other == Some(LinkState::NotConnected));
                    self.first.get_or_insert(format!(
                        "OneWay: the {role} of {a} and {b} is Connected at one end only"
                    ));
                }
                (ours, theirs) => {
                    let failing = [ours, theirs].contains(&Some(LinkState::NotConnected));
                    self.edges.failing += u32::from(failing);
                    self.first.get_or_insert(format!("the {role} of {a} to {b} is not Connected"));
                }
            }
        }
    }
}

fn converged(outcome: &Outcome, count: &Count, waits: &[String], generation: i64) -> Condition {
    let (status, reason, message) = match &outcome.change {
        Some(change) if outcome.held => (
            ConditionStatus::False,
            "Held",
            format!("onTimeout is Hold; {}", waits_of(waits, change.phase.as_str())),
        ),
        Some(change) => {
            (ConditionStatus::False, change.phase.as_str(), waits_of(waits, change.phase.as_str()))
        }
        None => match (&count.unconfirmed, &count.extra) {
            (Some(member), _) => (
                ConditionStatus::False,
                "WaitingForWorkers",
                format!("{member} has not confirmed its intent"),
            ),
            (None, Some(_)) => (
                ConditionStatus::False,
                "LinksLeft",
                "links that are no longer wanted are being removed".to_owned(),
            ),
            (None, None) => {
                (ConditionStatus::True, "Converged", "every worker has the links it should have".to_owned())
            }
        },
    };
    Condition::new("TopologyConverged", status, reason, message, generation)
}

fn waits_of(waits: &[String], phase: &str) -> String {
    match waits {
        [] => format!("{phase}: intents are being published"),
        [only] => only.clone(),
        [first, rest @ ..] => format!("{first} (and {} more)", rest.len()),
    }
}

fn ready(context: &Context<'_>, count: &Count, generation: i64) -> Condition {
    let Edges { desired, ready, failing: _ } = count.edges;
    let left_out: Vec<&str> = context
        .members
        .entries
        .iter()
        .filter(|entry| !entry.accepted)
        .map(|entry| entry.gateway.as_str())
        .collect();
    let (status, reason, message) = match &count.first {
        _ if desired == 0 => (
            ConditionStatus::False,
            "NothingToConnect",
            "fewer than two members take part: there is nothing to connect".to_owned(),
        ),
        Some(first) => {
            let reason = if first.starts_with("OneWay") { "OneWay" } else { "NotConnected" };
            (ConditionStatus::False, reason, format!("{ready} of {desired} links ready; {first}"))
        }
        None if !left_out.is_empty() => (
            ConditionStatus::False,
            "MembersLeftOut",
            format!("all {desired} links ready; left out: {}", left_out.join(", ")),
        ),
        None => (ConditionStatus::True, "AllConnected", format!("all {desired} links ready")),
    };
    Condition::new("Ready", status, reason, message, generation)
}

fn keep_transitions(conditions: Vec<Condition>, before: &[Condition], now: &Now) -> Vec<Condition> {
    let keep = |mut condition: Condition| {
        let old = before.iter().find(|old| old.kind == condition.kind && old.status == condition.status);
        condition.last_transition = old.map_or_else(|| now.wall.clone(), |old| old.last_transition.clone());
        condition
    };
    conditions.into_iter().map(keep).collect()
}
