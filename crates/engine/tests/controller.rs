//! The controller's answers to declarations, by case id: topology, validation, members, addresses. It refuses a store:
//! views are values.
#![allow(clippy::panic, clippy::unwrap_used, reason = "helpers of tests fail by panic")]

use std::collections::BTreeMap;

use spanwire_engine::{
    Gateway, GatewayName, Intent, Meta, NetworkName, NetworkSpec, NetworkStatus, Now, PublicKey, Role, Uid,
    Unreadable,
    controller::{self, Plan},
    port::{ControlView, IntentView, NetworkView},
    topology,
};

fn name(text: &str) -> GatewayName {
    text.parse().unwrap()
}

fn net() -> NetworkName {
    "net".parse().unwrap()
}

fn gateway(index: u8) -> Gateway {
    let mut gateway = Gateway::default();
    gateway.meta = Meta { uid: Uid(format!("uid-{index}")), generation: 1, resource_version: "1".to_owned() };
    gateway.subnets = vec![format!("10.{index}.0.0/16")];
    gateway.facts.public_key = Some(PublicKey([index; 32]).to_string());
    gateway.facts.endpoint = Some(format!("192.0.2.{index}"));
    gateway
}

fn spec(topology: &str, hub: &[&str], members: &[&str]) -> NetworkSpec {
    let strings = |names: &[&str]| names.iter().map(ToString::to_string).collect::<Vec<_>>();
    NetworkSpec {
        topology: topology.to_owned(),
        hub: hub.first().map(ToString::to_string),
        standby_hubs: strings(hub.get(1..).unwrap_or_default()),
        members: strings(members),
        cidr: "100.64.0.0/24".to_owned(),
        ..NetworkSpec::default()
    }
}

struct Store(ControlView);

impl Store {
    fn new(gateways: &[&str], spec: NetworkSpec) -> Self {
        let mut view = ControlView::default();
        for (index, gateway_name) in gateways.iter().enumerate() {
            view.gateways.insert(name(gateway_name), gateway(u8::try_from(index).unwrap() + 1));
        }
        let meta = Meta { uid: Uid("net".to_owned()), generation: 1, resource_version: "1".to_owned() };
        view.networks.insert(net(), NetworkView { meta, spec, status: NetworkStatus::default() });
        Self(view)
    }

    fn declare(&mut self, spec: NetworkSpec) {
        self.0.networks.get_mut(&net()).unwrap().spec = spec;
    }

    fn gateway(&mut self, gateway: &str) -> &mut Gateway {
        self.0.gateways.get_mut(&name(gateway)).unwrap()
    }

    fn plan(&self) -> Plan {
        controller::plan(&self.0, &Now::default()).networks.remove(&net()).unwrap_or_default()
    }

    /// One pass with everything written; what it waits for.
    fn pass(&mut self) -> Vec<String> {
        let plans = controller::plan(&self.0, &Now::default());
        for (gateway, networks) in &plans.gateways {
            self.0.gateways.get_mut(gateway).unwrap().networks = networks.clone();
        }
        let plan = plans.networks.get(&net()).cloned().unwrap_or_default();
        if let Some((status, _)) = &plan.status {
            self.0.networks.get_mut(&net()).unwrap().status = status.clone();
        }
        for write in &plan.intents {
            let generation = write.expected.as_ref().map_or(1, |meta| meta.generation + 1);
            let meta = Meta { uid: Uid("i".to_owned()), generation, resource_version: String::new() };
            let key = (net(), write.intent.gateway.clone());
            let status = self.0.intents.get(&key).map(|view| view.status.clone()).unwrap_or_default();
            self.0
                .intents
                .insert(key, IntentView { meta, intent: write.intent.clone(), status, managed: true });
        }
        for delete in &plan.deletes {
            self.0.intents.remove(&(net(), delete.gateway.clone()));
        }
        plan.report.waits
    }

    fn status(&self) -> &NetworkStatus {
        &self.0.networks[&net()].status
    }

    fn state(&mut self) -> String {
        self.pass();
        self.status().state.clone()
    }

    fn intent(&self, gateway: &str) -> &Intent {
        &self.0.intents[&(net(), name(gateway))].intent
    }

    fn reason(&self, gateway: &str) -> (String, String) {
        let member = self.status().members.iter().find(|member| member.gateway == name(gateway)).unwrap();
        assert!(!member.accepted, "{gateway} is accepted");
        member.reason.clone().unwrap()
    }

    fn address(&self, gateway: &str) -> Option<String> {
        let member = self.status().members.iter().find(|member| member.gateway == name(gateway))?;
        member.tunnel_address.map(|address| address.to_string())
    }
}

/// Pairs of gateways that the intents connect, with the roles at both ends.
fn pairs(store: &Store) -> BTreeMap<(String, String), usize> {
    let mut pairs = BTreeMap::new();
    for view in store.0.intents.values() {
        let intent = &view.intent;
        for peer in intent.peers.iter().flatten() {
            let links = topology::roles(&intent.gateway, &name(peer), &intent.hubs, intent.mesh_links).len();
            let (a, b) =
                (intent.gateway.to_string().min(peer.clone()), intent.gateway.to_string().max(peer.clone()));
            *pairs.entry((a, b)).or_default() += links;
        }
    }
    pairs
}

fn has(text: &str, words: &[&str]) {
    for word in words {
        assert!(text.contains(word), "{word:?} is not in {text:?}");
    }
}

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

impl Store {
    fn pass_without_network(&mut self) {
        let plan = self.plan();
        for write in plan.intents {
            let view = self.0.intents.get_mut(&(net(), write.intent.gateway.clone())).unwrap();
            view.intent = write.intent;
            view.meta.generation += 1;
        }
        for delete in plan.deletes {
            self.0.intents.remove(&(net(), delete.gateway));
        }
    }
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
    let view = IntentView { meta, intent: intent.clone(), status: Default::default(), managed: false };
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
