//! `gateway`, `network`, `intent` and `delete`: what people write. It refuses a word that it does not know.

use std::{str::FromStr, time::Duration};

use spanwire_engine::{GatewayName, Intent, NetworkSpec, OnTimeout, Role, Transit};

use super::Args;
use crate::world::{World, key, net};

fn list(text: &str) -> Vec<String> {
    text.split(',').filter(|part| !part.is_empty()).map(str::to_owned).collect()
}

fn parsed<T: FromStr>(text: &str) -> Vec<T>
where
    T::Err: std::fmt::Display,
{
    list(text).iter().map(|part| part.parse().unwrap_or_else(|fault| panic!("{part:?}: {fault}"))).collect()
}

fn refuse_unknown(args: &Args<'_>, known: &[&str]) {
    let unknown = args.named.keys().find(|key| !known.contains(*key));
    assert!(unknown.is_none(), "{unknown:?} is not one of {known:?}");
}

/// `gateway NAME… [subnets=…] [host=…] [key=none|TEXT|NUMBER|of:NAME] [dial-only=yes] [maintenance=yes] [tunnel=NET:ADDRESS]`
pub(super) fn gateway(world: &mut World, args: &Args<'_>) -> Vec<String> {
    refuse_unknown(args, &["subnets", "host", "key", "dial-only", "maintenance", "tunnel"]);
    for word in &args.words {
        let name: GatewayName = super::name(word);
        let own_key = |generation| key(&name, generation).to_string();
        let published = match args.named("key") {
            None => None,
            Some("none") => Some((None, 0)),
            Some(text) => Some(match (text.strip_prefix("of:"), text.parse::<i64>()) {
                (Some(other), _) => (Some(key(&super::name(other), 1).to_string()), 1),
                (None, Ok(generation)) => (Some(own_key(generation)), generation),
                (None, Err(_)) => (Some(text.to_owned()), 1),
            }),
        };
        let gateway = world.gateway(&name);
        if let Some(subnets) = args.named("subnets") {
            gateway.subnets = list(subnets);
        }
        if let Some(host) = args.named("host") {
            gateway.facts.endpoint = Some(host.to_owned());
        }
        if let Some((network, address)) = args.named("tunnel").and_then(|text| text.split_once(':')) {
            gateway.networks.insert(net(network), address.parse().ok());
        }
        gateway.dial_only |= args.named("dial-only") == Some("yes");
        if let Some(maintenance) = args.named("maintenance") {
            gateway.maintenance = maintenance == "yes";
        }
        if let Some((text, generation)) = published {
            let real = text.as_ref().and_then(|text| text.parse().ok());
            (gateway.facts.public_key, gateway.facts.key_generation) = (text, generation);
            if let (Some(real), Some(local)) = (real, world.hosts.get_mut(&name)) {
                local.key = real;
            }
        }
    }
    Vec::new()
}

/// `network NAME [TOPOLOGY] [hub=…] [standby=…] [members=…] [cidr=…] [transit=…] [connect-timeout=…] [on-timeout=…]`: what is
/// not said stays as it was.
pub(super) fn network(world: &mut World, args: &Args<'_>) -> Vec<String> {
    refuse_unknown(
        args,
        &[
            "topology",
            "hub",
            "standby",
            "members",
            "cidr",
            "transit",
            "connect-timeout",
            "on-timeout",
            "keepalive",
        ],
    );
    let name = net(args.word(0));
    let standing = world.view.networks.get(&name).map(|network| network.spec.clone());
    let fresh = NetworkSpec { cidr: "100.64.0.0/24".to_owned(), ..NetworkSpec::default() };
    let mut spec = standing.unwrap_or(fresh);
    if let Some(topology) = args.words.get(1) {
        spec.topology = (*topology).to_owned();
    }
    if let Some(hub) = args.named("hub") {
        spec.hub = (!hub.is_empty()).then(|| hub.to_owned());
    }
    let put = |place: &mut Vec<String>, key: &str| {
        if let Some(text) = args.named(key) {
            *place = list(text);
        }
    };
    put(&mut spec.standby_hubs, "standby");
    put(&mut spec.members, "members");
    if let Some(cidr) = args.named("cidr") {
        spec.cidr = cidr.to_owned();
    }
    match args.named("transit") {
        None => {}
        Some("Routed") => spec.transit = Transit::Routed,
        Some(_) => spec.transit = Transit::Isolated,
    }
    if let Some(seconds) =
        args.named("connect-timeout").and_then(|text| text.trim_end_matches('s').parse().ok())
    {
        spec.hub_change.connect_timeout = Duration::from_secs(seconds);
    }
    if let Some(seconds) = args.named("keepalive").and_then(|text| text.trim_end_matches('s').parse().ok()) {
        spec.tunnel.keepalive = Duration::from_secs(seconds);
    }
    match args.named("on-timeout") {
        None => {}
        Some("Hold") => spec.hub_change.on_timeout = OnTimeout::Hold,
        Some(_) => spec.hub_change.on_timeout = OnTimeout::Proceed,
    }
    world.declare(&name, spec);
    Vec::new()
}

/// `intent NETWORK GATEWAY [peers=[a,b]] [topology=…] [hubs=…] [members=…] [role=…] [address=…] [wide=…] [on-timeout=Hold]`: an
/// intent written by another hand. Without `peers=` the list is absent.
pub(super) fn intent(world: &mut World, args: &Args<'_>) -> Vec<String> {
    refuse_unknown(
        args,
        &["peers", "topology", "hubs", "members", "role", "address", "wide", "on-timeout", "connect-timeout"],
    );
    let peers = args.named("peers").filter(|text| *text != "null");
    let peers = peers.map(|text| list(text.trim_start_matches('[').trim_end_matches(']')));
    let mut intent = Intent::bare(net(args.word(0)), super::name(args.word(1)), peers);
    intent.topology = args.named("topology").and_then(|text| text.parse().ok());
    intent.hubs = parsed(args.named("hubs").unwrap_or_default());
    intent.members = parsed(args.named("members").unwrap_or_default());
    intent.wide_cidrs = parsed(args.named("wide").unwrap_or_default());
    intent.wide_cidrs.sort();
    intent.tunnel_address = args.named("address").and_then(|text| text.parse().ok());
    intent.role = args.named("role").map(|text| if text == "hub" { Role::Hub } else { Role::Spoke });
    if args.named("on-timeout") == Some("Hold") {
        intent.hub_change.on_timeout = OnTimeout::Hold;
    }
    if let Some(seconds) =
        args.named("connect-timeout").and_then(|text| text.trim_end_matches('s').parse().ok())
    {
        intent.hub_change.connect_timeout = Duration::from_secs(seconds);
    }
    world.write_intent(intent, false);
    Vec::new()
}

/// `delete gateway NAME`, `delete network NAME`, `delete intent NETWORK GATEWAY`.
pub(super) fn delete(world: &mut World, args: &Args<'_>) -> Vec<String> {
    match args.word(0) {
        "gateway" => {
            world.view.gateways.remove(&args.gateway(1));
        }
        "network" => {
            world.view.networks.remove(&net(args.word(1)));
        }
        "intent" => {
            world.view.intents.remove(&(net(args.word(1)), args.gateway(2)));
        }
        other => panic!("{other:?} can't be deleted"),
    }
    Vec::new()
}
