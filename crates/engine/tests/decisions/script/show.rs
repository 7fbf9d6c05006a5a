//! `show pairs | links | routes | status | network | intents | lost | devices`: what stands, in words. It refuses moments, numbers of
//! tables and names of devices: nobody may depend on them.

use std::collections::{BTreeMap, BTreeSet};

use spanwire_engine::{GatewayName, LinkRole, NetworkName, status::ConditionStatus};

use super::{Args, network_of};
use crate::world::{Words, World, words};

/// Each network's phase, or what it came to.
pub(super) fn phases(world: &World) -> BTreeMap<NetworkName, String> {
    let phase =
        |view: &spanwire_engine::port::NetworkView| match (&view.status.change, &view.status.published) {
            (Some(change), _) => change.phase.as_str().to_owned(),
            (None, Some(published)) => format!("at rest with {}", words::list(&published.hubs)),
            (None, None) => "nothing published".to_owned(),
        };
    world.view.networks.iter().map(|(name, view)| (name.clone(), phase(view))).collect()
}

pub(super) fn show(world: &World, args: &Args<'_>) -> Vec<String> {
    match args.word(0) {
        "pairs" => pairs(world, &network_of(world, args.words.get(1))),
        "links" => links(world, args.words.get(1).map(|word| super::name(word))),
        "routes" => routes(world, &args.gateway(1)),
        "devices" => devices(world, &args.gateway(1)),
        "status" => status(world, &args.gateway(1), &network_of(world, args.words.get(2))),
        "network" => network(world, &network_of(world, args.words.get(1))),
        "intents" => intents(world, &network_of(world, args.words.get(1))),
        "lost" => lost(world),
        other => panic!("{other:?} can't be shown"),
    }
}

fn or_none(lines: Vec<String>, none: &str) -> Vec<String> {
    if lines.is_empty() { vec![none.to_owned()] } else { lines }
}

/// Pairs with a link at both ends, each with the roles that the first one plays.
fn pairs(world: &World, network: &NetworkName) -> Vec<String> {
    let mut pairs: BTreeMap<(&GatewayName, &GatewayName), BTreeSet<LinkRole>> = BTreeMap::new();
    for (me, local) in &world.hosts {
        for id in local.recorded.links.keys().filter(|id| id.network == *network && *me < id.peer) {
            if world.connects(me, id) {
                pairs.entry((me, &id.peer)).or_default().insert(id.role);
            }
        }
    }
    or_none(
        pairs.into_iter().map(|((a, b), roles)| format!("{a} - {b}: {}", words::list(roles))).collect(),
        "no pair",
    )
}

fn links(world: &World, only: Option<GatewayName>) -> Vec<String> {
    let hosts = world.hosts.iter().filter(|(name, _)| only.as_ref().is_none_or(|only| only == *name));
    let lines = hosts.flat_map(|(name, local)| {
        local.recorded.links.values().map(move |link| {
            let unwanted = if link.status.unwanted_since.is_some() { ", unwanted" } else { "" };
            let id = words::link(&link.id);
            format!(
                "{name}: {id}: {}{unwanted}, from generation {}",
                link.status.state.as_str(),
                link.intent_generation
            )
        })
    });
    or_none(lines.collect(), "no link")
}

fn routes(world: &World, me: &GatewayName) -> Vec<String> {
    let words = Words::new(world, me, &[]);
    let tables = world.hosts[me].host.tables.values();
    let lines = tables.flat_map(|table| {
        let routes = table.routes.iter().map(|((kind, prefix), route)| {
            let kind = format!("{kind:?}").to_lowercase();
            format!("{kind} {prefix} over {}", words.device(&route.device))
        });
        routes.collect::<Vec<_>>()
    });
    or_none(lines.collect(), "no route")
}

fn devices(world: &World, me: &GatewayName) -> Vec<String> {
    let words = Words::new(world, me, &[]);
    let devices = world.hosts[me].host.devices.iter();
    let lines = devices.map(|(id, device)| {
        let peers = device.peers.keys().map(|key| words.peer(key));
        format!("{} at port {}: {}", words::device(id), device.port, words::list(peers))
    });
    or_none(lines.collect(), "no device")
}

fn status(world: &World, me: &GatewayName, network: &NetworkName) -> Vec<String> {
    let Some(view) = world.view.intents.get(&(network.clone(), me.clone())) else {
        return vec!["no intent".to_owned()];
    };
    let status = &view.status;
    let role = status.role.map_or("nothing", |role| role.as_str());
    let mut lines =
        vec![format!("generation {} of {}, role {role}", status.observed_generation, view.meta.generation)];
    lines.extend(status.peers.iter().map(|row| {
        let role = row.role.map(|role| format!(" {role}")).unwrap_or_default();
        let (state, route, reason) = (row.state.as_str(), row.route.as_str(), row.reason.as_str());
        let message = if row.message.is_empty() { String::new() } else { format!(": {}", row.message) };
        format!("{}{role}: {state}, route {route}, {reason}{message}", row.peer)
    }));
    let summary = &status.summary;
    lines.push(format!("{} of {} ready, {} failing", summary.ready, summary.desired, summary.failing));
    lines.extend(conditions(&status.conditions));
    lines
}

fn conditions(conditions: &[spanwire_engine::Condition]) -> Vec<String> {
    let line = |condition: &spanwire_engine::Condition| {
        let status = if condition.status == ConditionStatus::True { "" } else { "not " };
        format!("{status}{}: {}: {}", condition.kind, condition.reason, condition.message)
    };
    conditions.iter().map(line).collect()
}

fn network(world: &World, name: &NetworkName) -> Vec<String> {
    let Some(view) = world.view.networks.get(name) else { return vec!["no network".to_owned()] };
    let status = &view.status;
    let mut lines = vec![format!("{}, {}", status.state, phases(world)[name])];
    lines.extend(status.members.iter().map(|member| {
        let address = member.tunnel_address.map_or("no address".to_owned(), |address| address.to_string());
        let word = |set: bool, word: &str| if set { format!(", {word}") } else { String::new() };
        let (joining, leaving) = (word(member.joining, "joining"), word(member.leaving, "leaving"));
        let left_out = word(!member.accepted, "left out");
        let reason = member.reason.as_ref().map(|(reason, message)| format!(": {reason}: {message}"));
        format!("{}: {address}{joining}{leaving}{left_out}{}", member.gateway, reason.unwrap_or_default())
    }));
    let edges = status.edges;
    lines.push(format!("{} edges, {} ready, {} failing", edges.desired, edges.ready, edges.failing));
    lines.extend(conditions(&status.conditions));
    lines
}

fn intents(world: &World, name: &NetworkName) -> Vec<String> {
    let ours = world.view.intents.iter().filter(|((network, _), _)| network == name);
    let lines = ours.map(|((_, gateway), view)| {
        let intent = &view.intent;
        let role = intent.role().as_str();
        let peers =
            intent.peers.as_ref().map_or("absent".to_owned(), |peers| format!("[{}]", peers.join(" ")));
        let hubs = words::list(&intent.hubs);
        format!("{gateway} (generation {}): {role}, hubs {hubs}, peers {peers}", view.meta.generation)
    });
    or_none(lines.collect(), "no intent")
}

fn lost(world: &World) -> Vec<String> {
    let lines =
        world.lost.iter().map(|(network, from, to)| format!("{network}: {from} to {to} was without a path"));
    or_none(lines.collect(), "no pair was without a path at any step")
}
