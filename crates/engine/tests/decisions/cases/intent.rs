//! Rows of the intent cases: topology, plans, generations. It refuses sampled orders without a seed.

use std::collections::BTreeSet;

use spanwire_engine::{LinkRole, NetworkName, Unreadable, controller, worker::Step};

use super::{at_rest, spec, split};
use crate::world::{World, name, net};

fn connected(world: &World, network: &NetworkName) -> BTreeSet<(String, String, LinkRole)> {
    let mut links = BTreeSet::new();
    for (me, local) in &world.hosts {
        for id in local.recorded.links.keys().filter(|id| id.network == *network && world.connects(me, id)) {
            links.insert((me.to_string(), id.peer.to_string(), id.role));
        }
    }
    links
}

#[test]
fn t1_a_mesh_of_n_has_a_link_for_every_pair() {
    for count in 0..=8_usize {
        let members: Vec<String> = (0..count).map(|n| format!("m{n}")).collect();
        let world = at_rest("", &members.join(","));
        let links = connected(&world, &net("net"));
        assert_eq!(links.len(), count * count.saturating_sub(1), "two ends a pair");
        assert!(
            links.iter().all(|(a, b, role)| *role == LinkRole::Mesh
                && links.contains(&(b.clone(), a.clone(), LinkRole::Mesh)))
        );
    }
}

/// The n-th order of a list: seeded, so that a failure comes again.
fn shuffled(list: &[String], seed: usize) -> Vec<String> {
    let mut left: Vec<String> = list.to_vec();
    let mut state = (seed as u64).wrapping_mul(2_862_933_555_777_941_757).wrapping_add(3_037_000_493);
    let mut out = Vec::new();
    while !left.is_empty() {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        out.push(left.swap_remove((state >> 33) as usize % left.len()));
    }
    out
}

/// A world of two networks whose objects arrive in some order.
fn arriving(seed: usize) -> World {
    let mut world = World::default();
    let members = split("a,b,c,d,e,f");
    for member in &members {
        world.gateway(&name(member));
    }
    let mut view = World::default().view;
    for member in shuffled(&members, seed) {
        let gateway = world.view.gateways[&name(&member)].clone();
        view.gateways.insert(name(&member), gateway);
    }
    world.view = view;
    for network in shuffled(&split("x,y"), seed) {
        let (hubs, cidr) = if network == "x" { ("a,b", "100.64.0.0/24") } else { ("", "100.65.0.0/24") };
        let mut declared = spec(hubs, "a,b,c,d,e,f");
        cidr.clone_into(&mut declared.cidr);
        world.declare(&net(&network), declared);
        for view in world.view.networks.values_mut() {
            view.meta.uid = spanwire_engine::Uid("one".to_owned());
        }
    }
    world
}

#[test]
fn t4_the_order_of_reading_changes_nothing() {
    let plan = |seed| format!("{:?}", controller::plan(&arriving(seed).view, &World::default().now(0)));
    let first = plan(0);
    for seed in 1..100 {
        assert_eq!(plan(seed), first);
    }
    let steps = |seed| {
        let mut world = arriving(seed);
        world.controller_pass();
        for view in world.view.intents.values_mut() {
            view.meta.uid = spanwire_engine::Uid("one".to_owned());
        }
        let view = world.worker_view(&name("a"));
        format!("{:?}", world.planned(&name("a"), Some(&view)).1)
    };
    let first = steps(0);
    for seed in 1..100 {
        assert_eq!(steps(seed), first);
    }
}

#[test]
fn t4_the_order_of_members_moves_no_link() {
    let members = split("a,b,c,d,e");
    let reference = connected(&at_rest("a,b", "a,b,c,d,e"), &net("net"));
    for seed in 0..20 {
        let world = at_rest("a,b", &shuffled(&members, seed).join(","));
        assert_eq!(connected(&world, &net("net")), reference);
    }
}

#[test]
fn t7_ten_switches_leave_nothing_behind() {
    let mut world = at_rest("", "a,b,c");
    let mut ends = Vec::new();
    for round in 0..10 {
        world.declare(&net("net"), spec(if round % 2 == 0 { "a" } else { "" }, "a,b,c"));
        world.rest();
        let counts = world.hosts.values().map(|local| {
            let routes = local.host.tables.values().map(|table| table.routes.len()).sum::<usize>();
            let rules = local.host.tables.values().map(|table| table.rules.len()).sum::<usize>();
            (local.recorded.links.len(), local.host.devices.len(), local.host.tables.len(), routes, rules)
        });
        ends.push(counts.collect::<Vec<_>>());
    }
    assert!(ends.iter().enumerate().all(|(round, counts)| *counts == ends[round % 2]), "{ends:#?}");
    assert_eq!(ends[1], vec![(2, 1, 1, 4, 1); 3], "two mesh links on one device, four routes");
}

#[test]
fn n2_a_wanted_link_without_a_record_is_adopted() {
    let mut world = at_rest("a", "a,b,c");
    let me = name("a");
    let before = world.hosts[&me].host.clone();
    world.hosts.get_mut(&me).unwrap().recorded.links.retain(|id, _| id.peer != name("b"));
    let pass = world.worker_pass(&me);
    assert!(pass.steps.iter().all(|step| matches!(step, Step::Record(_))), "{:?}", pass.steps);
    assert_eq!(world.hosts[&me].host.devices, before.devices);
    assert!(world.hosts[&me].recorded.links.keys().any(|id| id.peer == name("b")));
}

#[test]
fn n3_an_unwanted_link_without_a_record_is_removed() {
    let mut world = at_rest("a", "a,b,c");
    world.declare(&net("net"), spec("a", "a,c"));
    world.controller_pass();
    let me = name("a");
    world.hosts.get_mut(&me).unwrap().recorded.links.retain(|id, _| id.peer != name("b"));
    world.rest();
    let device = world.hosts[&me].host.devices.values().next().unwrap();
    assert_eq!(device.peers.len(), 1);
}

#[test]
fn n4_a_recorded_link_that_is_gone_is_made_again() {
    let mut world = at_rest("a,b", "a,b,c");
    let me = name("c");
    let before = world.hosts[&me].clone();
    let id = before.host.devices.keys().next().cloned().unwrap();
    let host = &mut world.hosts.get_mut(&me).unwrap().host;
    let gone = host.devices.remove(&id).unwrap();
    host.used_ports.remove(&gone.port);
    world.worker_pass(&me);
    let after = &world.hosts[&me];
    assert_eq!(after.host.devices[&id].port, gone.port, "on the recorded port");
    world.rest();
    assert_eq!(world.hosts[&me].recorded.links.len(), before.recorded.links.len());
    for (id, link) in &world.hosts[&me].recorded.links {
        let was = &before.recorded.links[id];
        assert_eq!((link.listen_port, link.intent_generation), (was.listen_port, was.intent_generation));
    }
}

#[test]
fn n5_a_partial_list_removes_nothing_and_says_why() {
    let mut world = at_rest("a", "a,b,c,d");
    let me = name("a");
    world.declare(&net("net"), spec("a", "a,b"));
    world.controller_pass();
    let unreadable = Unreadable {
        kind: "tunnellinks".to_owned(),
        name: "net.c.downlink".to_owned(),
        cause: "line 3: not a port".to_owned(),
    };
    world.hosts.get_mut(&me).unwrap().recorded.unreadable.push(unreadable);
    let pass = world.worker_pass(&me);
    assert!(!pass.steps.iter().any(Step::is_destructive), "{:?}", pass.steps);
    assert!(pass.report.kept[&net("net")].contains("line 3: not a port"), "{:?}", pass.report.kept);
    world.hosts.get_mut(&me).unwrap().recorded.unreadable.clear();
    world.rest();
    assert_eq!(world.hosts[&me].recorded.links.len(), 1);
}

#[test]
fn n5_a_device_that_cannot_be_read_is_left_alone() {
    let mut world = at_rest("a", "a,b,c,d");
    let me = name("a");
    let host = &mut world.hosts.get_mut(&me).unwrap().host;
    let (id, device) = host.devices.pop_first().unwrap();
    host.unreadable.insert(id.clone(), "the socket does not answer".to_owned());
    let pass = world.worker_pass(&me);
    assert!(!pass.steps.iter().any(|step| matches!(step, Step::Host(_))), "{:?}", pass.steps);
    assert!(pass.report.kept[&net("net")].contains("does not answer"));
    let host = &mut world.hosts.get_mut(&me).unwrap().host;
    host.unreadable.clear();
    host.devices.insert(id, device);
    world.rest();
    assert!(world.worker_pass(&me).steps.is_empty());
}

/// The view of `me` with its intent at another generation.
fn at_generation(world: &World, me: &str, generation: i64, peers: &str) -> spanwire_engine::port::WorkerView {
    let mut view = world.worker_view(&name(me));
    let (stored, _) = view.intents.get_mut(&net("net")).unwrap();
    stored.meta.generation = generation;
    stored.value.peers = Some(split(peers));
    view
}

#[test]
fn n7_a_stale_read_is_ignored_and_a_restored_store_is_accepted() {
    let mut world = at_rest("", "a,b,c");
    let newer = at_generation(&world, "a", 7, "b,c");
    world.pass_with(&name("a"), Some(&newer));
    let older = at_generation(&world, "a", 3, "b");
    let local = world.hosts[&name("a")].clone();
    let stale = spanwire_engine::worker::desire(&spanwire_engine::worker::Situation {
        me: &name("a"),
        own_key: local.key,
        view: Some(&older),
        consistent: false,
        recorded: &local.recorded,
        host: &local.host,
        settings: &world.settings,
    });
    assert!(stale.stale.contains(&net("net")));
    let now = world.host_now(&name("a"));
    let plan = spanwire_engine::worker::plan(&stale, &local.recorded, &local.host, &now);
    assert_eq!(plan.steps, [], "a stale read changes nothing");
    world.pass_with(&name("a"), Some(&older));
    world.since_boot += std::time::Duration::from_secs(2);
    let pass = world.pass_with(&name("a"), Some(&older));
    let status = &pass.statuses.intents[&net("net")];
    let kinds: Vec<&str> = status.conditions.iter().map(|condition| condition.kind.as_str()).collect();
    assert_eq!(status.observed_generation, 3);
    assert_eq!(world.hosts[&name("a")].recorded.links.len(), 1, "the older list holds");
    assert!(kinds.contains(&"Ready"), "{kinds:?}");
}

#[test]
fn n7_w12_the_restore_is_said() {
    let mut world = at_rest("", "a,b,c");
    let newer = at_generation(&world, "a", 7, "b,c");
    world.pass_with(&name("a"), Some(&newer));
    let older = at_generation(&world, "a", 3, "b");
    let desired = world.desire(&name("a"), Some(&older));
    assert!(desired.networks[&net("net")].restored);
    let local = &world.hosts[&name("a")];
    let now = world.host_now(&name("a"));
    let report = |desired: &_, previous: &std::collections::BTreeMap<_, _>| {
        let failed = std::collections::BTreeMap::new();
        let (recorded, host) = (&local.recorded, &local.host);
        spanwire_engine::worker::report(desired, recorded, host, &now, previous, &failed).intents
    };
    let says = |statuses: &std::collections::BTreeMap<_, spanwire_engine::WorkerStatus>| {
        let conditions = &statuses[&net("net")].conditions;
        conditions.iter().any(|condition| condition.kind == "ControlClusterRestored")
    };
    let first = report(&desired, &std::collections::BTreeMap::new());
    assert!(says(&first));
    let mut later = desired.clone();
    later.networks.get_mut(&net("net")).unwrap().restored = false;
    assert!(says(&report(&later, &first)), "it stays said");
    later.networks.get_mut(&net("net")).unwrap().applied.as_mut().unwrap().generation += 1;
    assert!(!says(&report(&later, &first)), "until the next intent");
}

#[test]
fn n8_an_older_generation_of_another_object_is_accepted() {
    let mut world = at_rest("", "a,b,c");
    let newer = at_generation(&world, "a", 7, "b,c");
    world.pass_with(&name("a"), Some(&newer));
    let mut other = at_generation(&world, "a", 1, "b");
    other.intents.get_mut(&net("net")).unwrap().0.meta.uid = spanwire_engine::Uid("re-created".to_owned());
    let desired = world.desire(&name("a"), Some(&other));
    assert!(desired.stale.is_empty() && !desired.networks[&net("net")].restored);
    world.pass_with(&name("a"), Some(&other));
    assert_eq!(world.hosts[&name("a")].recorded.intents[&net("net")].generation, 1);
}

#[test]
fn n9_the_order_of_a_long_list_does_not_matter() {
    let members: Vec<String> = (0..400).map(|n| format!("m{n:03}")).collect();
    let plan = |peers: Vec<String>| {
        let mut world = World::default();
        for member in &members {
            world.gateway(&name(member));
        }
        let intent = spanwire_engine::Intent::bare(net("net"), name("m000"), Some(peers));
        world.write_intent(intent, false);
        let view = world.worker_view(&name("m000"));
        let (_, plan) = world.planned(&name("m000"), Some(&view));
        let without_intent = plan
            .steps
            .iter()
            .filter(|step| !matches!(step, Step::Record(spanwire_engine::worker::RecordStep::Intent(_))));
        without_intent.cloned().collect::<Vec<Step>>()
    };
    let sorted = plan(members[1..].to_vec());
    assert_eq!(plan(shuffled(&members[1..], 1)), sorted);
    assert_eq!(plan(shuffled(&members[1..], 2)), sorted);
}
