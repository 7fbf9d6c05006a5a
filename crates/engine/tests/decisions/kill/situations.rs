//! The situations in which a worker is killed. It refuses to share a start: each is built from nothing.

use std::collections::{BTreeMap, BTreeSet};

use spanwire_engine::{
    GatewayName, Intent, LinkRole, Listener, NetworkSpec, OnTimeout, PublicKey, Role,
    port::WorkerView,
    worker::{ObservedPeer, RecordedLink},
};

use super::{Case, Run, everywhere};
use crate::world::{Local, World, key, name, net, rebooted};

const MEMBERS: &str = "a,b,c,d,e";

fn split(text: &str) -> Vec<String> {
    text.split(',').filter(|part| !part.is_empty()).map(str::to_owned).collect()
}

/// A network at rest: the first of `hubs` is active. No hubs: a mesh.
fn spec(hubs: &str, members: &str) -> NetworkSpec {
    let mut hubs = split(hubs).into_iter();
    let hub = hubs.next();
    NetworkSpec {
        topology: if hub.is_some() { "hub-spoke" } else { "mesh" }.to_owned(),
        hub,
        standby_hubs: hubs.collect(),
        members: split(members),
        cidr: "100.64.0.0/16".to_owned(),
        ..NetworkSpec::default()
    }
}

/// What the worker of `me` reads when these networks are at rest, all keys and ports published.
fn view(me: &str, networks: &[(&str, NetworkSpec)], generation: i64) -> WorkerView {
    let mut world = World::default();
    let all: BTreeSet<String> = networks.iter().flat_map(|(_, spec)| spec.members.clone()).collect();
    for member in split(MEMBERS).into_iter().chain(all.iter().cloned()).chain([me.to_owned()]) {
        world.gateway(&name(&member));
    }
    for (offset, (network, spec)) in (0u16..).zip(networks) {
        let port = 51000 + offset;
        let listener = |role, port| Listener { network: net(network), role, peer: None, port };
        for gateway in world.view.gateways.values_mut() {
            let roles = [LinkRole::Downlink, LinkRole::Mesh, LinkRole::Trunk];
            gateway
                .facts
                .listeners
                .extend((0u16..).zip(roles).map(|(n, role)| listener(role, port + 100 * n)));
        }
        world.declare(&net(network), spec.clone());
    }
    world.controller_pass();
    let mut view = world.worker_view(&name(me));
    for (network, (stored, _)) in &mut view.intents {
        stored.meta.uid = spanwire_engine::Uid(format!("intent-{network}"));
        stored.meta.generation = generation;
    }
    view
}

fn intent<'a>(view: &'a mut WorkerView, network: &str) -> &'a mut Intent {
    let entry = view.intents.get_mut(&net(network));
    &mut entry.unwrap_or_else(|| panic!("no intent of {network}")).0.value
}

fn fresh(me: &str, view: WorkerView) -> Case {
    Case { me: name(me), start: Local::new(key(&name(me), 1)), view, silent: BTreeSet::new() }
}

/// The end of a case is the start of the next one.
fn then(case: &Case, view: WorkerView) -> Case {
    let start = Run::new(case, &[]).finish().local;
    Case { me: case.me.clone(), start, view, silent: BTreeSet::new() }
}

fn one(hubs: &str, members: &str) -> Vec<(&'static str, NetworkSpec)> {
    vec![("net", spec(hubs, members))]
}

fn rest(me: &str, hubs: &str, members: &str) -> Case {
    fresh(me, view(me, &one(hubs, members), 1))
}

/// From one network at rest to another, published straight away.
fn change(me: &str, from: (&str, &str), to: (&str, &str)) -> Case {
    then(&rest(me, from.0, from.1), view(me, &one(to.0, to.1), 2))
}

#[test]
fn a_fresh_start() {
    for (me, hubs) in [("a", "b"), ("a", "a"), ("a", "a,b"), ("b", "a,b"), ("c", "a,b"), ("a", "")] {
        everywhere(&rest(me, hubs, "a,b,c"), true);
    }
    everywhere(&rest("a", "a,b", MEMBERS), false);
}

#[test]
fn h1_h4_a_hub_change_by_the_worker_alone() {
    everywhere(&change("c", ("a", "a,b,c"), ("b", "a,b,c")), true);
    everywhere(&change("c", ("a,b", "a,b,c"), ("b,a", "a,b,c")), true);
    everywhere(&change("c", ("a,b", "a,b,c"), ("b,d", "a,b,c,d")), true);
}

#[test]
fn h1_a_hub_change_seen_by_the_old_and_the_new_hub() {
    everywhere(&change("a", ("a", "a,b,c"), ("b", "a,b,c")), true);
    everywhere(&change("b", ("a", "a,b,c"), ("b", "a,b,c")), true);
    everywhere(&change("a", ("a", MEMBERS), ("b", MEMBERS)), false);
}

#[test]
fn h2_h4_a_time_out_counted_over_kills() {
    let case = change("c", ("a", "a,b,c"), ("b", "a,b,c"));
    everywhere(&Case { silent: BTreeSet::from([name("b")]), ..case }, true);
}

#[test]
fn h3_hold_keeps_what_is_there() {
    let mut case = change("c", ("a", "a,b,c"), ("b", "a,b,c"));
    intent(&mut case.view, "net").hub_change.on_timeout = OnTimeout::Hold;
    let case = Case { silent: BTreeSet::from([name("b")]), ..case };
    everywhere(&case, true);
    let end = Run::new(&case, &[]).finish().local;
    assert_eq!(end.host.devices.len(), 2, "the link to a stays");
}

#[test]
fn h14_h17_the_phases_of_a_change() {
    let phases = |me: &str, role: Option<Role>| {
        let mut adding = view(me, &one("a,b", "a,b,c"), 2);
        intent(&mut adding, "net").role = role;
        let added = then(&rest(me, "a", "a,b,c"), adding);
        everywhere(&added, true);
        let mut switching = view(me, &one("b,a", "a,b,c"), 3);
        intent(&mut switching, "net").role = role;
        let switched = then(&added, switching.clone());
        everywhere(&switched, true);
        if me == "a" {
            intent(&mut switching, "net").role = Some(Role::Spoke);
            let demoted = then(&switched, switching);
            everywhere(&demoted, true);
            everywhere(&then(&demoted, view(me, &one("b", "a,b,c"), 4)), true);
        } else {
            everywhere(&then(&switched, view(me, &one("b", "a,b,c"), 4)), true);
        }
    };
    phases("a", None);
    phases("b", None);
    phases("c", None);
}

#[test]
fn members_join_and_leave() {
    for (me, hubs) in [("a", "a"), ("b", "a,b"), ("c", "")] {
        everywhere(&change(me, (hubs, "a,b,c,d"), (hubs, "a,b,c")), true);
        everywhere(&change(me, (hubs, "a,b,c"), (hubs, "a,b,c,d")), true);
        everywhere(&change(me, (hubs, "a,b,c,d"), (hubs, "a,b,c,e")), true);
    }
}

#[test]
fn t7_mesh_to_hub_and_back() {
    for me in ["a", "b"] {
        everywhere(&change(me, ("", "a,b,c"), ("a", "a,b,c")), true);
        everywhere(&change(me, ("a", "a,b,c"), ("", "a,b,c")), true);
        let mut both = view(me, &one("a", "a,b,c"), 2);
        let joined = intent(&mut both, "net");
        joined.mesh_links = true;
        joined.peers = Some(split("a,b,c").into_iter().filter(|peer| peer != me).collect());
        everywhere(&then(&rest(me, "", "a,b,c"), both), true);
    }
}

#[test]
fn p3_w6_a_teardown_and_a_deleted_intent() {
    for (me, hubs) in [("a", "a"), ("b", "a,b"), ("c", "a,b"), ("c", "")] {
        let mut torn = view(me, &one(hubs, "a,b,c"), 2);
        intent(&mut torn, "net").peers = Some(Vec::new());
        everywhere(&then(&rest(me, hubs, "a,b,c"), torn.clone()), true);
        torn.intents.clear();
        everywhere(&then(&rest(me, hubs, "a,b,c"), torn), true);
    }
}

#[test]
fn t6_one_network_goes_and_the_other_is_not_touched() {
    let both = [("x", spec("a", "a,b,c")), ("y", spec("b", "a,b,c"))];
    let start = fresh("a", view("a", &both, 1));
    everywhere(&start, true);
    let mut torn = view("a", &both, 1);
    let (stored, _) = torn.intents.get_mut(&net("y")).unwrap();
    stored.meta.generation = 2;
    stored.value.peers = Some(Vec::new());
    let case = then(&start, torn);
    let (before, mut expected) = (case.start.clone(), BTreeMap::new());
    expected.extend(before.host.devices.into_iter().filter(|(id, _)| id.network == net("x")));
    everywhere(&case, true);
    assert_eq!(Run::new(&case, &[]).finish().local.host.devices, expected);
}

#[test]
fn w16_a_peer_has_another_key() {
    for (me, hubs) in [("a", "a"), ("b", "a"), ("c", "")] {
        let mut next = view(me, &one(hubs, "a,b,c"), 1);
        let peer = name(if me == "a" { "b" } else { "a" });
        let facts = &mut next.gateways.get_mut(&peer).unwrap().facts;
        facts.public_key = Some(key(&peer, 2).to_string());
        facts.key_generation = 2;
        everywhere(&then(&rest(me, hubs, "a,b,c"), next), true);
    }
}

#[test]
fn d4_d5_a_peer_has_other_prefixes_and_another_endpoint() {
    for (me, hubs) in [("a", "a"), ("b", "a"), ("c", "")] {
        let mut next = view(me, &one(hubs, "a,b,c"), 2);
        let peer = name(if me == "a" { "b" } else { "a" });
        let gateway = next.gateways.get_mut(&peer).unwrap();
        gateway.subnets = vec!["10.77.0.0/16".to_owned(), "fd77::/64".to_owned()];
        gateway.facts.endpoint = Some("198.51.100.7".to_owned());
        intent(&mut next, "net").wide_cidrs.push("10.77.0.0/16".parse().unwrap());
        everywhere(&then(&rest(me, hubs, "a,b,c"), next), true);
    }
}

/// Everything that somebody can do to a host by hand.
/// Something that somebody does to a host by hand.
type Drift = fn(&mut Local);

fn drifts() -> Vec<(&'static str, Drift)> {
    vec![
        ("a device is deleted", |local| {
            let id = local.host.devices.keys().next().cloned().unwrap();
            let name = local.host.devices.remove(&id).unwrap().name.unwrap();
            for table in local.host.tables.values_mut() {
                table.routes.retain(|_, route| route.device != name);
            }
        }),
        ("all peers are deleted", |local| {
            local.host.devices.values_mut().for_each(|device| device.peers.clear())
        }),
        ("a stranger is added", |local| {
            let peer = ObservedPeer::default();
            local.host.devices.values_mut().next().unwrap().peers.insert(PublicKey([99; 32]), peer);
        }),
        ("routes are deleted", |local| local.host.tables.values_mut().for_each(|table| table.routes.clear())),
        ("rules are deleted", |local| {
            local.host.tables.values_mut().for_each(|table| {
                table.rules.clear();
                table.host_rule = false;
            });
        }),
        ("the filter is deleted", |local| local.host.firewall = None),
        ("the tables are deleted", |local| local.host.tables.clear()),
        ("the host is rebooted", |local| *local = rebooted(local)),
        ("links are no longer recorded", |local| local.recorded.links.clear()),
        ("nothing is recorded any more", |local| local.recorded = Default::default()),
        ("a device has another port and MTU", |local| {
            local.host.devices.values_mut().for_each(|device| (device.port, device.mtu) = (50000, 1300));
        }),
    ]
}

#[test]
fn d7_n2_n4_w13_drift_is_repaired() {
    for (what, drift) in drifts() {
        for (me, hubs) in [("a", "a,b"), ("b", "a,b"), ("c", "a,b"), ("c", "")] {
            let mut case = then(&rest(me, hubs, "a,b,c"), view(me, &one(hubs, "a,b,c"), 1));
            if what.contains("port") && case.start.host.devices.len() > 1 {
                continue;
            }
            drift(&mut case.start);
            everywhere(&case, true);
        }
    }
}

#[test]
fn n3_a_link_that_nobody_wants_and_nobody_recorded() {
    for (me, hubs) in [("a", "a,b"), ("c", "a,b"), ("c", "")] {
        let mut case = change(me, (hubs, "a,b,c,d"), (hubs, "a,b,c"));
        case.start.recorded.links.retain(|id: &_, _: &mut RecordedLink| id.peer != name("d"));
        everywhere(&case, true);
    }
}

#[test]
fn hundred_links() {
    let members: Vec<String> = (0..101).map(|n| format!("m{n:03}")).collect();
    let names: Vec<GatewayName> = members.iter().map(|member| name(member)).collect();
    let all = members.join(",");
    let hub = rest("m000", "m000", &all);
    let runs = everywhere(&hub, false);
    assert!(runs > 300, "{runs}");
    let less = members[..100].join(",");
    let mut drifted = then(&hub, view("m000", &one("m000", &less), 2));
    let listener = drifted.start.host.devices.values_mut().next().unwrap();
    listener.peers.retain(|peer, _| *peer != key(&names[7], 1));
    everywhere(&drifted, false);
}
