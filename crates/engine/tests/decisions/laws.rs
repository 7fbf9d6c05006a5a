//! The laws of the worker's plan on generated states: planned twice is nothing, applied is as desired, order does not
//! matter, an older intent never wins. It refuses states that no history leads to: each is made by declarations, faults
//! and hands.

use std::collections::{BTreeMap, BTreeSet};

use proptest::{prelude::*, test_runner::FileFailurePersistence};
use spanwire_engine::{
    GatewayName, LinkRole, NetworkName, PublicKey, check, topology,
    worker::{self, ObservedPeer, Situation, Step},
};

use crate::world::{World, name, net, rebooted, restarted};

const MEMBERS: [&str; 5] = ["a", "b", "c", "d", "e"];

/// A declaration: which members, and how many of them are hubs.
#[derive(Debug, Clone)]
struct Declared {
    members: Vec<usize>,
    hubs: usize,
}

/// What happens between two passes.
#[derive(Debug, Clone)]
enum Event {
    Declare(Declared),
    Cut(usize, usize),
    Heal(usize, usize),
    Restart(usize),
    Reboot(usize),
    NewKey(usize),
    NewSubnet(usize),
    LoseRecords(usize),
    LoseDevice(usize, usize),
    LosePeers(usize),
    LoseRoutes(usize),
    LoseFilter(usize),
    Stranger(usize),
    Seconds(u8),
    Controller,
    Worker(usize),
    /// A worker that is killed after so many steps.
    Killed(usize, usize),
}

fn declared() -> impl Strategy<Value = Declared> {
    (Just((0..MEMBERS.len()).collect::<Vec<_>>()).prop_shuffle(), 2..=MEMBERS.len(), 0..=2_usize)
        .prop_map(|(order, count, hubs)| Declared { members: order[..count].to_vec(), hubs })
}

fn event() -> impl Strategy<Value = Event> {
    let one = || 0..MEMBERS.len();
    prop_oneof![
        2 => declared().prop_map(Event::Declare),
        1 => (one(), one()).prop_map(|(a, b)| Event::Cut(a, b)),
        1 => (one(), one()).prop_map(|(a, b)| Event::Heal(a, b)),
        1 => one().prop_map(Event::Restart),
        1 => one().prop_map(Event::Reboot),
        1 => one().prop_map(Event::NewKey),
        1 => one().prop_map(Event::NewSubnet),
        1 => one().prop_map(Event::LoseRecords),
        1 => (one(), 0..4_usize).prop_map(|(a, n)| Event::LoseDevice(a, n)),
        1 => one().prop_map(Event::LosePeers),
        1 => one().prop_map(Event::LoseRoutes),
        1 => one().prop_map(Event::LoseFilter),
        1 => one().prop_map(Event::Stranger),
        2 => (0..90_u8).prop_map(Event::Seconds),
        4 => Just(Event::Controller),
        6 => one().prop_map(Event::Worker),
        2 => (one(), 0..30_usize).prop_map(|(a, n)| Event::Killed(a, n)),
    ]
}

fn networks() -> [NetworkName; 2] {
    [net("x"), net("y")]
}

fn member(index: usize) -> GatewayName {
    name(MEMBERS[index])
}

fn declare(world: &mut World, network: &NetworkName, declared: &Declared) {
    let members: Vec<String> = declared.members.iter().map(|index| MEMBERS[*index].to_owned()).collect();
    let hubs = &members[..declared.hubs.min(members.len())];
    let spec = spanwire_engine::NetworkSpec {
        topology: if hubs.is_empty() { "mesh" } else { "hub-spoke" }.to_owned(),
        hub: hubs.first().cloned(),
        standby_hubs: hubs.iter().skip(1).cloned().collect(),
        members: members.clone(),
        cidr: if network.as_str() == "x" { "100.64.0.0/24" } else { "100.65.0.0/24" }.to_owned(),
        transit: spanwire_engine::Transit::Routed,
        ..spanwire_engine::NetworkSpec::default()
    };
    world.declare(network, spec);
}

/// Takes the first steps of a worker's plan, and no more.
fn killed(world: &mut World, me: &GatewayName, steps: usize) {
    let view = world.worker_view(me);
    let (desired, plan) = world.planned(me, Some(&view));
    for step in plan.steps.iter().take(steps) {
        world.take(me, &desired, step);
    }
    let local = restarted(&world.hosts[me]);
    world.hosts.insert(me.clone(), local);
}

fn happen(world: &mut World, event: &Event, network: &NetworkName) {
    match event {
        Event::Declare(declared) => declare(world, network, declared),
        Event::Cut(a, b) => {
            world.cuts.insert((member(*a), member(*b), None));
        }
        Event::Heal(a, b) => {
            world.cuts.remove(&(member(*a), member(*b), None));
        }
        Event::Seconds(seconds) => world.since_boot += std::time::Duration::from_secs(u64::from(*seconds)),
        Event::Controller => {
            world.controller_pass();
        }
        Event::Worker(index) => {
            world.worker_pass(&member(*index));
        }
        Event::Killed(index, steps) => killed(world, &member(*index), *steps),
        Event::NewKey(index) => new_key(world, &member(*index)),
        Event::NewSubnet(index) => {
            let round = world.since_boot.as_secs() % 200;
            world.gateway(&member(*index)).subnets = vec![format!("10.{}.{round}.0/24", 100 + index)];
        }
        Event::Restart(_)
        | Event::Reboot(_)
        | Event::LoseRecords(_)
        | Event::LoseDevice(..)
        | Event::LosePeers(_)
        | Event::LoseRoutes(_)
        | Event::LoseFilter(_)
        | Event::Stranger(_) => damage(world, event),
    }
}

/// A worker that lost its key makes another one, and its devices get it.
fn new_key(world: &mut World, me: &GatewayName) {
    let gateway = world.gateway(me);
    let generation = gateway.facts.key_generation + 1;
    let key = crate::world::key(me, generation);
    gateway.facts.public_key = Some(key.to_string());
    gateway.facts.key_generation = generation;
    if let Some(local) = world.hosts.get_mut(me) {
        local.key = key;
    }
}

fn damage(world: &mut World, event: &Event) {
    let (Event::Restart(index)
    | Event::Reboot(index)
    | Event::LoseRecords(index)
    | Event::LoseDevice(index, _)
    | Event::LosePeers(index)
    | Event::LoseRoutes(index)
    | Event::LoseFilter(index)
    | Event::Stranger(index)) = event
    else {
        return;
    };
    let Some(local) = world.hosts.get_mut(&member(*index)) else { return };
    match event {
        Event::Restart(_) => *local = restarted(local),
        Event::Reboot(_) => *local = rebooted(local),
        Event::LoseRecords(_) => local.recorded.links.clear(),
        Event::LoseDevice(_, at) => {
            if let Some(id) = local.host.devices.keys().nth(*at).cloned() {
                let lost = local.host.devices.remove(&id).and_then(|device| device.name);
                for table in local.host.tables.values_mut() {
                    table.routes.retain(|_, route| Some(&route.device) != lost.as_ref());
                }
            }
            local.host.used_ports = local.host.devices.values().map(|device| device.port).collect();
        }
        Event::LosePeers(_) => local.host.devices.values_mut().for_each(|device| device.peers.clear()),
        Event::LoseRoutes(_) => local.host.tables.values_mut().for_each(|table| table.routes.clear()),
        Event::LoseFilter(_) => local.host.firewall = None,
        _ => {
            if let Some(device) = local.host.devices.values_mut().next() {
                device.peers.insert(PublicKey([99; 32]), ObservedPeer::default());
            }
        }
    }
}

/// A world after some history.
fn history(events: &[(bool, Event)]) -> World {
    let mut world = World::default();
    for member in MEMBERS {
        world.gateway(&name(member));
    }
    for network in networks() {
        declare(&mut world, &network, &Declared { members: vec![0, 1, 2], hubs: 1 });
    }
    for (first, event) in events {
        happen(&mut world, event, &networks()[usize::from(!first)]);
    }
    world
}

/// Settles a world with everything healed, to its end.
fn healed(mut world: World) -> World {
    world.cuts.clear();
    world.judged = true;
    world.wait(3, |_| {});
    for _ in 0..6 {
        world.since_boot += std::time::Duration::from_secs(61);
        world.wait(2, |_| {});
    }
    world
}

fn histories() -> impl Strategy<Value = Vec<(bool, Event)>> {
    prop::collection::vec((any::<bool>(), event()), 0..40)
}

fn config(cases: u32) -> ProptestConfig {
    let file = FileFailurePersistence::Direct("tests/regressions/laws.txt");
    ProptestConfig { cases, failure_persistence: Some(Box::new(file)), ..ProptestConfig::default() }
}

/// The links that the declaration gives a member.
fn declared_links(
    world: &World,
    network: &NetworkName,
    me: &GatewayName,
) -> BTreeSet<(GatewayName, LinkRole)> {
    let view = &world.view.networks[network];
    let members: Vec<GatewayName> = view.spec.members.iter().map(|member| name(member)).collect();
    let hubs: Vec<GatewayName> =
        view.spec.hub.iter().chain(&view.spec.standby_hubs).map(|hub| name(hub)).collect();
    let mut links = BTreeSet::new();
    for peer in members.iter().filter(|peer| *peer != me && members.contains(me)) {
        let spokes = !hubs.is_empty() && !hubs.contains(me) && !hubs.contains(peer);
        let roles = topology::roles(me, peer, &hubs, false);
        links.extend(roles.into_iter().filter(|_| !spokes).map(|role| (peer.clone(), role)));
    }
    links
}

proptest! {
    #![proptest_config(config(200))]

    /// N1: after a plan is carried out, and nothing else happens, there is no further step.
    #[test]
    fn n1_planned_twice_is_nothing(events in histories(), index in 0..MEMBERS.len()) {
        let mut world = history(&events);
        let me = member(index);
        let view = world.worker_view(&me);
        let local = &world.hosts[&me];
        let (mut local, now) = (local.clone(), world.host_now(&me));
        let _planned = world.planned(&me, Some(&view));
        local.host.evidence.clone_from(&world.hosts[&me].host.evidence);
        let plan_of = |local: &crate::world::Local| {
            let desired = worker::desire(&Situation {
                me: &me,
                own_key: local.key,
                view: Some(&view),
                consistent: true,
                recorded: &local.recorded,
                host: &local.host,
                settings: &world.settings,
            });
            let plan = worker::plan(&desired, &local.recorded, &local.host, &now);
            (desired, plan)
        };
        for step in &plan_of(&local).1.steps {
            local.apply(step);
        }
        let links: Vec<_> = local.recorded.links.keys().cloned().collect();
        local.host.evidence.retain(|id, _| links.contains(id));
        let (desired, again) = plan_of(&local);
        prop_assert_eq!(&again.steps, &Vec::<Step>::new());
        let wrong = check::state(&desired, &local.recorded, &local.host);
        prop_assert!(wrong.is_empty(), "{:?}", wrong);
    }

    /// Whatever happened: once everything is healed, each host has the declared links and no others, and every pair
    /// that should deliver does.
    #[test]
    fn applied_is_as_desired(events in histories()) {
        let world = healed(history(&events));
        for network in networks() {
            for me in world.hosts.keys() {
                let links = world.hosts[me].recorded.links.keys().filter(|id| id.network == network);
                let links: BTreeSet<_> = links.map(|id| (id.peer.clone(), id.role)).collect();
                prop_assert_eq!(&links, &declared_links(&world, &network, me), "{} of {}", me, &network);
            }
            let members: Vec<_> = world.view.networks[&network].spec.members.iter().map(|m| name(m)).collect();
            for (from, to) in members.iter().flat_map(|a| members.iter().map(move |b| (a, b))) {
                prop_assert!(from == to || world.delivers(&network, from, to), "{from} to {to} in {network}");
            }
        }
    }

    /// T4, N9: the order in which objects were read and listed changes no step.
    #[test]
    fn order_changes_no_step(events in histories(), index in 0..MEMBERS.len()) {
        let mut world = history(&events);
        let me = member(index);
        let view = world.worker_view(&me);
        let straight = world.planned(&me, Some(&view)).1;
        let mut turned = view.clone();
        let backwards: BTreeMap<_, _> = view.gateways.iter().rev().map(|(k, v)| (k.clone(), v.clone())).collect();
        turned.gateways = backwards;
        for gateway in turned.gateways.values_mut() {
            gateway.subnets.reverse();
            gateway.facts.listeners.reverse();
        }
        turned.unreadable.reverse();
        prop_assert_eq!(world.planned(&me, Some(&turned)).1, straight);
    }

    /// An older generation of the same intent changes nothing unless a consistent read confirms it.
    #[test]
    fn an_old_generation_never_wins(events in histories(), index in 0..MEMBERS.len(), age in 1..5_i64) {
        let mut world = healed(history(&events));
        let me = member(index);
        world.worker_pass(&me);
        let mut view = world.worker_view(&me);
        for (stored, _) in view.intents.values_mut() {
            stored.meta.generation -= age;
            stored.value.peers = Some(Vec::new());
            stored.value.hubs.clear();
        }
        let local = &world.hosts[&me];
        let desired = worker::desire(&Situation {
            me: &me,
            own_key: local.key,
            view: Some(&view),
            consistent: false,
            recorded: &local.recorded,
            host: &local.host,
            settings: &world.settings,
        });
        let plan = worker::plan(&desired, &local.recorded, &local.host, &world.host_now(&me));
        prop_assert_eq!(plan.steps, Vec::<Step>::new());
        prop_assert_eq!(desired.stale.len(), view.intents.len());
    }
}
