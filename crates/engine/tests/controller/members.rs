//! Who takes part, with which address: rows A and what is said of a member. It refuses to judge declarations.

use spanwire_engine::{Intent, Meta, NetworkStatus, Role, Uid, port::IntentView};

use crate::store::{Store, has, name, net, pairs, spec};

#[test]
fn a1_a2_a4_addresses_stay_reserved_and_come_back() {
    let mut store = Store::new(&["a", "b", "c", "d"], spec("mesh", &[], &["a", "b"]));
    store.pass();
    store.declare(spec("mesh", &[], &["a", "d"]));
    store.pass();
    let address = |store: &Store, member| store.address(member).unwrap();
    assert_eq!(
        (address(&store, "a"), address(&store, "b"), address(&store, "d")),
        ("100.64.0.1".to_owned(), "100.64.0.2".to_owned(), "100.64.0.3".to_owned())
    );
    assert!(store.intent("b").is_teardown());
    let view = store.0.intents.get_mut(&(net(), name("b"))).unwrap();
    view.status.observed_generation = view.meta.generation;
    store.pass();
    assert_eq!(store.address("b"), None);
    store.declare(spec("mesh", &[], &["a", "c", "d", "b"]));
    store.pass();
    assert_eq!(address(&store, "b"), "100.64.0.2", "its earlier address is still free");
    assert_eq!(address(&store, "d"), "100.64.0.3");
}

#[test]
fn a3_a_full_cidr_leaves_the_third_out_and_the_two_alone() {
    let mut declared = spec("mesh", &[], &["a", "b"]);
    declared.cidr = "100.64.0.0/30".to_owned();
    let mut store = Store::new(&["a", "b", "c"], declared.clone());
    store.pass();
    let before = store.0.intents.clone();
    declared.members.push("c".to_owned());
    store.declare(declared);
    store.pass();
    has(&store.reason("c").1, &["no free address", "100.64.0.0/30"]);
    assert_eq!(store.0.intents, before);
}

#[test]
fn a6_the_later_of_two_overlapping_members_is_left_out_whatever_the_read_order() {
    for (first, second) in [("10.10.0.0/16", "10.10.10.0/24"), ("fd00:1::/32", "fd00:1:2::/48")] {
        for subnets in [[first, second], [second, first]] {
            let mut store = Store::new(&["z", "a", "c"], spec("mesh", &[], &["z", "a", "c"]));
            store.gateway("z").subnets = vec![subnets[0].to_owned()];
            store.gateway("a").subnets = vec![subnets[1].to_owned()];
            store.pass();
            has(&store.reason("a").1, &[subnets[0], subnets[1], "z"]);
            assert_eq!(pairs(&store).len(), 1);
        }
    }
}

#[test]
fn a7_the_networks_cidr_and_a_subnet_may_not_overlap() {
    for cidr in ["10.1.2.0/24", "10.0.0.0/8"] {
        let mut declared = spec("mesh", &[], &["a", "b"]);
        declared.cidr = cidr.to_owned();
        has(&Store::new(&["a", "b"], declared).state(), &["Invalid: ", cidr, "10.1.0.0/16", "a"]);
    }
}

#[test]
fn a8_host_bits_are_refused_with_the_corrected_value() {
    let mut store = Store::new(&["a", "b"], spec("mesh", &[], &["a", "b"]));
    store.gateway("b").subnets = vec!["10.1.2.3/16".to_owned()];
    store.pass();
    has(&store.reason("b").1, &["10.1.2.3/16", "10.1.0.0/16"]);
    let mut declared = spec("mesh", &[], &["a", "b"]);
    declared.cidr = "100.64.0.9/24".to_owned();
    has(&Store::new(&["a", "b"], declared).state(), &["Invalid: ", "100.64.0.0/24"]);
}

#[test]
fn a_copied_key_or_endpoint_evicts_nobody() {
    let mut store = Store::new(&["a", "b", "c"], spec("mesh", &[], &["b", "c"]));
    store.pass();
    store.gateway("a").facts.public_key = store.gateway("b").facts.public_key.clone();
    store.declare(spec("mesh", &[], &["a", "b", "c"]));
    store.pass();
    assert_eq!(store.reason("a").0, "DuplicateKey");
    assert_eq!(pairs(&store).len(), 1);
}

#[test]
fn a_pair_of_dial_only_members_is_left_out_of_a_mesh_and_nobody_else() {
    let mut store = Store::new(&["a", "b", "c"], spec("mesh", &[], &["a", "b", "c"]));
    store.gateway("a").dial_only = true;
    store.gateway("b").dial_only = true;
    store.pass();
    assert_eq!(
        pairs(&store).keys().cloned().collect::<Vec<_>>(),
        [("a".to_owned(), "c".to_owned()), ("b".to_owned(), "c".to_owned())]
    );
}

#[test]
fn d17_an_endpoint_inside_the_overlay_leaves_the_member_out() {
    let mut store = Store::new(&["a", "b", "c"], spec("mesh", &[], &["a", "b", "c"]));
    store.gateway("c").facts.endpoint = Some("10.1.0.9".to_owned());
    store.pass();
    has(&store.reason("c").1, &["10.1.0.9", "10.1.0.0/16"]);
}

#[test]
fn a_member_without_a_gateway_waits_and_one_that_was_accepted_stays() {
    let mut store = Store::new(&["a", "b"], spec("mesh", &[], &["a", "b", "late"]));
    store.pass();
    assert_eq!(store.reason("late").0, "GatewayNotFound");
    store.0.gateways.remove(&name("b"));
    let before = store.0.intents.clone();
    store.pass();
    assert_eq!(store.0.intents, before);
}

#[test]
fn somebody_elses_intent_is_left_alone() {
    let mut store = Store::new(&["a", "b"], spec("mesh", &[], &["a", "b"]));
    let meta = Meta { uid: Uid("x".to_owned()), generation: 7, resource_version: String::new() };
    let intent = Intent::bare(net(), name("a"), None);
    let view = IntentView {
        meta,
        intent: intent.clone(),
        status: Default::default(),
        managed: false,
        deleting: None,
    };
    store.0.intents.insert((net(), name("a")), view);
    let waits = store.pass();
    assert_eq!(store.intent("a"), &intent);
    has(&waits.join(" "), &["net.a", "somebody else"]);
}

#[test]
fn a_lost_status_is_rebuilt_from_the_intents() {
    let mut store = Store::new(&["a", "b", "c"], spec("hub-spoke", &["a"], &["a", "b", "c"]));
    store.pass();
    store.0.networks.get_mut(&net()).unwrap().status = NetworkStatus::default();
    store.declare(spec("hub-spoke", &["b"], &["a", "b", "c"]));
    store.pass();
    let change = store.status().change.as_ref().unwrap();
    assert_eq!((change.phase.as_str(), &change.from.hubs[..]), ("Adding", &[name("a")][..]));
    assert_eq!(store.intent("a").role(), Role::Hub);
}
