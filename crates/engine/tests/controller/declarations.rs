//! Topology and verdicts: rows T and V. It refuses to look at members one by one.

use std::time::Duration;

use spanwire_engine::{
    NetworkSpec, Now, Phase, Transit, Unreadable,
    controller::{self, Plan},
    port::NetworkView,
};

use crate::store::{Store, gateway, has, name, net, pairs, spec};

#[test]
fn t1_a_mesh_of_n_has_each_pair_with_one_link_at_both_ends() {
    let all = ["a", "b", "c", "d", "e", "f", "g", "h"];
    for n in 0..=8 {
        let mut store = Store::new(&all, spec("mesh", &[], &all[..n]));
        store.pass();
        let pairs = pairs(&store);
        assert_eq!(pairs.len(), n * n.saturating_sub(1) / 2);
        assert!(pairs.values().all(|ends| *ends == 2));
    }
}

#[test]
fn t2_hub_and_spoke_has_no_spoke_to_spoke_pair() {
    for hub in ["w1", "w2"] {
        let mut store = Store::new(&["w1", "w2", "w3"], spec("hub-spoke", &[hub], &["w1", "w2", "w3"]));
        store.pass();
        let pairs = pairs(&store);
        assert_eq!(pairs.len(), 2);
        assert!(pairs.keys().all(|(a, b)| a == hub || b == hub));
    }
}

#[test]
fn t3_a_standby_hub_has_links_to_all_and_a_trunk_to_the_hub() {
    let mut store =
        Store::new(&["h1", "h2", "s1", "s2"], spec("hub-spoke", &["h1", "h2"], &["h1", "h2", "s1", "s2"]));
    store.pass();
    let pairs = pairs(&store);
    assert_eq!(pairs.len(), 5);
    assert_eq!(pairs[&("h1".to_owned(), "h2".to_owned())], 6, "up, down and trunk at both ends");
    assert!(!pairs.contains_key(&("s1".to_owned(), "s2".to_owned())));
}

#[test]
fn t5_one_member_or_none_is_valid_and_not_ready() {
    for members in [&["a"][..], &[]] {
        let mut store = Store::new(&["a"], spec("mesh", &[], members));
        assert_eq!(store.state(), "Valid");
        let ready = store.status().conditions.iter().find(|condition| condition.kind == "Ready").unwrap();
        assert_eq!((ready.status.as_str(), ready.reason.as_str()), ("False", "NothingToConnect"));
    }
}

#[test]
fn v1_v2_v3_a_topology_is_named_and_known_and_has_its_hub() {
    let state = |spec| Store::new(&["a", "b"], spec).state();
    has(&state(spec("", &[], &["a", "b"])), &["Invalid: ", "spec.topology", "mesh", "hub-spoke"]);
    has(&state(spec("ring", &[], &["a", "b"])), &["Invalid: ", "\"ring\"", "mesh", "hub-spoke"]);
    has(&state(spec("hub-spoke", &[], &["a", "b"])), &["Invalid: ", "spec.hub"]);
}

#[test]
fn v4_v5_a_hub_must_exist_on_any_topology() {
    for topology in ["mesh", "hub-spoke"] {
        let state = Store::new(&["a", "b"], spec(topology, &["ghost"], &["a", "b"])).state();
        has(&state, &["Invalid: ", "ghost", "no Gateway"]);
    }
    assert_eq!(Store::new(&["a", "b"], spec("mesh", &["a"], &["a", "b"])).state(), "Valid");
}

#[test]
fn v6_a_hub_that_can_not_be_looked_up_gives_no_verdict() {
    let mut store = Store::new(&["a", "b"], spec("hub-spoke", &["a"], &["a", "b"]));
    store.0.gateways.remove(&name("a"));
    let cause = "gateways/a.yaml:3: half written".to_owned();
    store.0.unreadable.push(Unreadable { kind: "gateways".to_owned(), name: "a".to_owned(), cause });
    let plan = store.plan();
    assert_eq!((plan.status, plan.intents.len()), (None, 0));
    has(&plan.report.unknown.unwrap(), &["a", "can't be read"]);
}

#[test]
fn v8_a_second_pass_writes_nothing() {
    let mut store = Store::new(&["a", "b", "c"], spec("hub-spoke", &["a"], &["a", "b", "c"]));
    store.pass();
    store.pass();
    assert_eq!(controller::plan(&store.0, &Now::default()).networks[&net()], Plan::default());
}

#[test]
fn v9_v10_h11_what_runs_is_left_alone_while_the_hub_is_missing() {
    let mut store = Store::new(&["a", "b"], spec("hub-spoke", &["a"], &["a", "b"]));
    store.pass();
    let before = store.0.intents.clone();
    let gateway = store.0.gateways.remove(&name("a")).unwrap();
    has(&store.state(), &["Invalid: ", "a"]);
    assert_eq!(store.0.intents, before);
    store.0.gateways.insert(name("a"), gateway);
    assert_eq!(store.state(), "Valid");
    store.declare(spec("hub-spoke", &["c"], &["a", "b"]));
    store.0.gateways.insert(name("c"), self::gateway(3));
    has(&store.state(), &["Invalid: ", "c", "not in spec.members"]);
    assert_eq!(store.0.intents, before);
}

#[test]
fn v11_a_deleted_network_is_torn_down_and_forgotten() {
    let mut store = Store::new(&["a", "b"], spec("mesh", &[], &["a", "b"]));
    store.pass();
    store.0.networks.clear();
    store.pass_without_network();
    assert!(store.intent("a").is_teardown() && store.intent("b").is_teardown());
    for view in store.0.intents.values_mut() {
        view.status.observed_generation = view.meta.generation;
    }
    store.pass_without_network();
    assert!(store.0.intents.is_empty());
    assert_eq!(controller::plan(&store.0, &Now::default()).networks.len(), 0);
}

/// What a store shows of an intent that somebody deletes.
fn delete(store: &mut Store, gateway: &str, age: u64) {
    let view = store.0.intents.get_mut(&(net(), name(gateway))).unwrap();
    view.intent = view.intent.teardown();
    view.deleting = Some(std::time::Duration::from_secs(age));
}

#[test]
fn w6_a_deleted_intent_ends_when_its_worker_has_no_link_of_it_and_comes_back_if_it_is_wanted() {
    for declared in ["mesh", "ring"] {
        let mut store = Store::new(&["a", "b"], spec("mesh", &[], &["a", "b"]));
        store.pass();
        store.declare(spec(declared, &[], &["a", "b"]));
        delete(&mut store, "b", 5);
        let plan = store.plan();
        assert_eq!((plan.intents.len(), plan.deletes.len()), (0, 0), "{declared}: it is not written over");
        if declared == "mesh" {
            has(&plan.report.waits.concat(), &["net.b was deleted by somebody", "b to tear down"]);
        }
        let view = store.0.intents.get_mut(&(net(), name("b"))).unwrap();
        view.status.observed_generation = view.meta.generation;
        store.pass();
        assert!(!store.0.intents.contains_key(&(net(), name("b"))), "{declared}: its links are gone");
        store.pass();
        let came_back = store.0.intents.contains_key(&(net(), name("b")));
        assert_eq!(came_back, declared == "mesh");
    }
}

#[test]
fn w7_a_deletion_ends_also_if_the_worker_never_answers() {
    let mut store = Store::new(&["a", "b"], spec("mesh", &[], &["a", "b"]));
    store.pass();
    let ends = |store: &mut Store, age| {
        delete(store, "b", age);
        !store.plan().deletes.is_empty()
    };
    assert!(!ends(&mut store, 599));
    assert!(ends(&mut store, 600));
    delete(&mut store, "b", 0);
    store.0.networks.clear();
    store.0.gateways.remove(&name("b"));
    store.pass_without_network();
    assert!(!store.0.intents.contains_key(&(net(), name("b"))), "its gateway is gone");
}

#[test]
fn v15_one_broken_network_does_not_hold_up_another() {
    let mut store = Store::new(&["a", "b"], spec("mesh", &[], &["a", "b"]));
    let broken = NetworkView { spec: spec("ring", &[], &[]), ..store.0.networks[&net()].clone() };
    store.0.networks.insert("broken".parse().unwrap(), broken);
    let plans = controller::plan(&store.0, &Now::default());
    assert_eq!(plans.networks[&net()].intents.len(), 2);
    assert_eq!(plans.networks[&"broken".parse().unwrap()].intents.len(), 0);
}

#[test]
fn standbys_are_members_once_and_not_the_hub_and_can_be_dialled() {
    let state = |hubs: &[&str]| Store::new(&["a", "b", "c"], spec("hub-spoke", hubs, &["a", "b"])).state();
    has(&state(&["a", "a"]), &["Invalid: ", "remove it from standbyHubs"]);
    has(&state(&["a", "b", "b"]), &["Invalid: ", "twice"]);
    has(&state(&["a", "c"]), &["Invalid: ", "c", "spec.members"]);
    let mut store = Store::new(&["a", "b"], spec("hub-spoke", &["a"], &["a", "b"]));
    store.gateway("a").dial_only = true;
    has(&store.state(), &["Invalid: ", "dial-only"]);
}

#[test]
fn an_edit_of_transit_waits_for_the_end_of_a_change_also_of_one_in_the_same_edit() {
    let members = &["a", "b", "c"];
    let mut store = Store::new(members, spec("mesh", &[], members));
    store.pass();
    let edit = NetworkSpec { transit: Transit::Routed, ..spec("hub-spoke", &["a"], members) };
    store.declare(edit);
    let mut seen = Vec::new();
    for minute in 1..20 {
        store.pass_after(Duration::from_secs(61 * minute));
        let phase = store.status().change.as_ref().map(|change| change.phase);
        seen.push((phase, members.map(|member| store.intent(member).transit)));
    }
    let (during, after): (Vec<_>, Vec<_>) = seen.iter().partition(|(phase, _)| phase.is_some());
    assert!(during.iter().any(|(phase, _)| *phase == Some(Phase::Removing)), "{seen:?}");
    assert!(during.iter().all(|(_, transits)| *transits == [Transit::Isolated; 3]), "{seen:?}");
    assert!(after.last().is_some_and(|(_, transits)| *transits == [Transit::Routed; 3]), "{seen:?}");
}
