//! What each gateway is told in each phase. It refuses to depend on the order in which anything was read.

use std::collections::BTreeSet;

use ipnet::IpNet;

use crate::{
    Change, GatewayName, Intent, MemberStatus, NetworkName, Phase, Published, Role, Topology, Transit,
    Tunnel, port::IntentView,
};

use super::{TEARDOWN_DEADLINE, phase::Context};

/// What is published at one moment: between changes, or in a phase of one.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Stage {
    /// The topology that decides where routes go.
    pub topology: Topology,
    /// Hubs, the active one first.
    pub hubs: Vec<GatewayName>,
    /// Hubs that already send through the active one and still accept.
    pub demoted: Vec<GatewayName>,
    /// Mesh links besides those that `hubs` gives.
    pub mesh_links: bool,
    /// Gateways that stay members of this stage although they left `members`.
    pub kept: Vec<GatewayName>,
    /// A phase of a change: an edit of `transit` or `tunnel` waits for its end.
    pub changing: bool,
}

impl Stage {
    /// Between changes.
    pub fn rest(published: &Published) -> Self {
        let Published { topology, hubs } = published.clone();
        Self { topology, kept: hubs.clone(), hubs, demoted: Vec::new(), mesh_links: false, changing: false }
    }

    /// In a phase.
    pub fn of(change: &Change) -> Self {
        let Change { from, to, phase, .. } = change;
        let added = to.hubs.iter().filter(|hub| !from.hubs.contains(hub));
        let union: Vec<GatewayName> = from.hubs.iter().chain(added).cloned().collect();
        if *phase == Phase::Removing {
            return Self { kept: union, changing: true, ..Self::rest(to) };
        }
        let lacking: Vec<GatewayName> = union.iter().filter(|hub| !to.hubs.contains(hub)).cloned().collect();
        let demoted = if *phase == Phase::Demoting { lacking.clone() } else { Vec::new() };
        if from.topology != to.topology {
            let topology = if *phase == Phase::Adding { from.topology } else { to.topology };
            return Self {
                topology,
                hubs: union.clone(),
                demoted,
                mesh_links: true,
                kept: union,
                changing: true,
            };
        }
        let hubs = match phase {
            Phase::Adding => union.clone(),
            Phase::Switching | Phase::Demoting | Phase::Removing => {
                to.hubs.iter().chain(&lacking).cloned().collect()
            }
        };
        Self { topology: to.topology, hubs, demoted, mesh_links: false, kept: union, changing: true }
    }

    /// The role of a gateway.
    pub fn role(&self, gateway: &GatewayName) -> Role {
        if self.hubs.contains(gateway) && !self.demoted.contains(gateway) { Role::Hub } else { Role::Spoke }
    }
}

/// Who takes part in a stage: accepted members, then leavers that are still needed as hubs.
pub(super) fn active<'a>(context: &Context<'a>, stage: &Stage) -> Vec<&'a MemberStatus> {
    let takes_part =
        |entry: &&MemberStatus| entry.accepted && (!entry.leaving || stage.kept.contains(&entry.gateway));
    context.members.entries.iter().filter(takes_part).collect()
}

/// The peers of one gateway in a stage.
fn peers(context: &Context<'_>, stage: &Stage, all: &[&MemberStatus], me: &GatewayName) -> Vec<String> {
    let is_hub = stage.hubs.contains(me);
    let everybody = stage.topology == Topology::Mesh || stage.mesh_links || is_hub;
    let present = |hub: &&GatewayName| all.iter().any(|entry| entry.gateway == **hub);
    let hubs = stage.hubs.iter().filter(present).filter(|hub| *hub != me);
    let others = all
        .iter()
        .map(|entry| &entry.gateway)
        .filter(|name| everybody && *name != me && !stage.hubs.contains(name));
    let linkable = |peer: &&GatewayName| {
        let pair =
            |a: &GatewayName, b: &GatewayName| context.members.unlinkable.contains(&(a.clone(), b.clone()));
        !pair(me, peer) && !pair(peer, me)
    };
    hubs.chain(others).filter(linkable).map(ToString::to_string).collect()
}

/// All intents of a stage: those of active members, then the teardowns of leavers.
pub fn publish(context: &Context<'_>, stage: &Stage) -> Vec<Intent> {
    let all = active(context, stage);
    let (transit, tunnel) = transit_and_tunnel(context, stage);
    let wide_cidrs = wide_cidrs(context, &all);
    let members: Vec<GatewayName> = all.iter().map(|entry| entry.gateway.clone()).collect();
    let hubs: Vec<GatewayName> = stage.hubs.iter().filter(|hub| members.contains(hub)).cloned().collect();
    let intent = |entry: &&MemberStatus| Intent {
        network: context.name.clone(),
        gateway: entry.gateway.clone(),
        peers: Some(peers(context, stage, &all, &entry.gateway)),
        topology: Some(stage.topology),
        role: Some(stage.role(&entry.gateway)),
        hubs: hubs.clone(),
        mesh_links: stage.mesh_links,
        members: members.clone(),
        tunnel_address: entry.tunnel_address,
        wide_cidrs: wide_cidrs.clone(),
        transit,
        hub_change: context.network.spec.hub_change,
        tunnel,
    };
    let mut intents: Vec<Intent> = all.iter().map(intent).collect();
    for ((_, gateway), standing) in standing(context) {
        if !members.contains(gateway) {
            intents.push(standing.intent.teardown());
        }
    }
    intents
}

/// What is declared; in a phase of a change what was published before it began.
fn transit_and_tunnel(context: &Context<'_>, stage: &Stage) -> (Transit, Tunnel) {
    let mut published = standing(context).map(|(_, view)| &view.intent);
    let before = published.find(|intent| stage.changing && !intent.members.is_empty());
    let spec = &context.network.spec;
    before.map_or((spec.transit, spec.tunnel), |intent| (intent.transit, intent.tunnel))
}

/// Managed intents of the network.
fn standing<'a>(
    context: &Context<'a>,
) -> impl Iterator<Item = (&'a (NetworkName, GatewayName), &'a IntentView)> + use<'a> {
    let name = context.name;
    context.view.intents.iter().filter(move |((network, _), view)| network == name && view.managed)
}

/// The network's cidr and the subnets of all its members. While a member's Gateway can't be read, what was published
/// before stays in.
fn wide_cidrs(context: &Context<'_>, all: &[&MemberStatus]) -> Vec<IpNet> {
    let mut wide = BTreeSet::from([context.valid.cidr]);
    let mut unknown = false;
    for entry in all {
        match context.view.gateways.get(&entry.gateway) {
            Some(gateway) => wide.extend(gateway.valid_subnets()),
            None => unknown = true,
        }
    }
    if unknown {
        wide.extend(standing(context).flat_map(|(_, view)| view.intent.wide_cidrs.iter().copied()));
    }
    wide.into_iter().collect()
}

/// Whether an intent of the stage is not published yet. Objects that are not ours, or can't be read, don't count.
pub(super) fn differs(context: &Context<'_>, stage: &Stage) -> bool {
    publish(context, stage).into_iter().any(|intent| {
        let standing = context.view.intents.get(&(context.name.clone(), intent.gateway.clone()));
        match standing {
            Some(standing) => standing.managed && standing.intent != intent,
            None => !super::is_unreadable(context.view, "workersliceconfigs", &intent.object_name()),
        }
    })
}

/// What the standing intents say is published, for a status that was lost: the union of their hubs.
pub(super) fn rebuilt(context: &Context<'_>) -> Option<Published> {
    let mut intents = standing(context)
        .map(|(_, view)| &view.intent)
        .filter(|intent| !intent.members.is_empty())
        .peekable();
    let topology = intents.peek()?.topology?;
    let mut hubs = Vec::new();
    for hub in intents.flat_map(|intent| &intent.hubs) {
        if !hubs.contains(hub) {
            hubs.push(hub.clone());
        }
    }
    Some(Published { topology, hubs })
}

/// Whether a worker has confirmed that it has no link of a teardown any more.
pub(super) fn is_torn_down(standing: &IntentView) -> bool {
    let confirmed = standing.status.observed_generation == standing.meta.generation;
    standing.intent.is_teardown() && confirmed && standing.status.peers.iter().all(|row| row.role.is_none())
}

/// Whether nobody waits for an intent any more that somebody deleted: its worker has no link of it, or its time is over.
pub(super) fn is_released(standing: &IntentView) -> bool {
    standing.deleting.is_some_and(|age| is_torn_down(standing) || age >= TEARDOWN_DEADLINE)
}

/// Gateways without a part whose teardown is confirmed, whose Gateway is gone, or whose time is over.
pub(super) fn finished_leavers(context: &Context<'_>, stage: &Stage) -> Vec<GatewayName> {
    let active: Vec<&GatewayName> = active(context, stage).into_iter().map(|entry| &entry.gateway).collect();
    let leavers =
        context.members.entries.iter().filter(|entry| entry.leaving && !active.contains(&&entry.gateway));
    let finished = |entry: &&MemberStatus| {
        let over = entry.leaving_since.as_ref().and_then(|since| context.now.boot.since(since));
        let gone = super::is_gone(context.view, &entry.gateway);
        let key = (context.name.clone(), entry.gateway.clone());
        let unreadable =
            super::is_unreadable(context.view, "workersliceconfigs", &format!("{}.{}", key.0, key.1));
        let torn_down = context.view.intents.get(&key).map_or(!unreadable, is_torn_down);
        torn_down || gone || over.is_some_and(|age| age >= TEARDOWN_DEADLINE)
    };
    let mut done: Vec<GatewayName> = leavers.filter(finished).map(|entry| entry.gateway.clone()).collect();
    let strays = standing(context).filter(|((_, gateway), view)| {
        context.members.get(gateway).is_none_or(|entry| !entry.accepted) && is_torn_down(view)
    });
    done.extend(strays.map(|((_, gateway), _)| gateway.clone()));
    done.sort();
    done.dedup();
    done
}
