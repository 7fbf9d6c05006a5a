//! Validation of a network (6): the rows V1 to V15 of cases/reconcile.md on a real API server, with faults that a proxy
//! makes. A fault is never shown as a verdict.

use spanwire_api::{GatewayNetworkSpec, GatewaySpec, WorkerSliceConfigSpec};
use spanwire_testkit::control_plane::{Call, Fault, Request};

use super::second_pass::NETWORK;
use crate::site::{Site, wait_until};

fn network(name: &str, spec: &str) -> String {
    format!(
        "apiVersion: spanwire.dev/v1alpha1\nkind: GatewayNetwork\nmetadata:\n  name: {name}\nspec:\n  members: [a, b]\n  \
         cidr: 100.80.0.0/24\n{spec}"
    )
}

fn gateway(name: &str, number: u8) -> String {
    format!(
        "apiVersion: spanwire.dev/v1alpha1\nkind: Gateway\nmetadata:\n  name: {name}\nspec:\n  subnets: \
         [10.74.{number}.0/24]\n"
    )
}

/// The gateways `a` and `b`, without hosts.
fn begin(namespace: &str) -> Option<Site> {
    let site = Site::new(namespace, &[], &[])?;
    site.apply(&gateway("a", 1));
    site.apply(&gateway("b", 2));
    Some(site)
}

fn state(site: &Site, name: &str) -> String {
    site.field::<GatewayNetworkSpec>(name, "/status/state").as_str().unwrap_or_default().to_owned()
}

fn version(site: &Site, name: &str) -> String {
    site.field::<GatewayNetworkSpec>(name, "/metadata/resourceVersion").to_string()
}

/// Name, what is declared, and the words that the state must hold.
const VERDICTS: &[(&str, &str, &[&str])] = &[
    ("v1", "  topology: \"\"\n", &["Invalid: ", "topology", "mesh, hub-spoke"]),
    ("v2", "  topology: ring\n", &["Invalid: ", "ring", "mesh, hub-spoke"]),
    ("v3", "  topology: hub-spoke\n", &["Invalid: ", "hub"]),
    ("v4", "  topology: mesh\n  hub: ghost\n", &["Invalid: ", "ghost"]),
    ("v4-hub", "  topology: hub-spoke\n  hub: ghost\n", &["Invalid: ", "ghost"]),
    ("v5", "  topology: mesh\n  hub: a\n", &["Valid"]),
    ("v5-hub", "  topology: hub-spoke\n  hub: a\n", &["Valid"]),
];

#[test]
fn acceptance_6_v1_to_v5_and_v8_verdicts_are_right_and_written_once() {
    let Some(site) = begin("verdicts") else { return };
    for (name, spec, _) in VERDICTS {
        site.apply(&network(name, spec));
    }
    let marks = site.marks();
    let _controller = site.start_controller();
    for (name, _, words) in VERDICTS {
        wait_until(&format!("{name}: {words:?}"), || {
            let state = state(&site, name);
            words.iter().all(|word| state.contains(word)) && state.starts_with(words[0])
        });
    }
    wait_until("each verdict is told", || {
        let events = site.writes_since(marks).into_iter().filter(|request| request.resource == "events");
        events.count() == VERDICTS.len()
    });
    let role = |request: &Request| request.resource == "roles";
    let passes_for = |name: &str, number: u8, marks| {
        // An event that means nothing to any network.
        site.apply(&gateway(name, number));
        let is_its = |request: &Request| role(request) && request.name.ends_with(name);
        wait_until("the controller has passed", || site.writes_since(marks).iter().any(is_its));
    };
    passes_for("c", 3, marks);
    let (marks, versions) = (site.marks(), site.versions::<GatewayNetworkSpec>());
    let run = site.controller();
    assert_eq!(run.code, 75, "another controller acts: {run:#?}");
    passes_for("d", 4, marks);
    assert_eq!(site.writes_since(marks).into_iter().filter(|it| !role(it)).collect::<Vec<_>>(), []);
    assert_eq!(site.versions::<GatewayNetworkSpec>(), versions);
}

/// Faults of a look-up, and how often each comes before the server is well again.
const FAULTS: &[(&str, Fault, usize)] = &[
    ("refused", Fault::Refuse(500), 4),
    ("unavailable", Fault::Refuse(503), 4),
    ("too-many", Fault::TooMany(1), 2),
    ("reset", Fault::Reset, 4),
    ("stalled", Fault::Stall, 1),
    ("half-a-list", Fault::CutShort, 4),
];

#[test]
fn acceptance_6_v6_a_failed_look_up_is_no_verdict_and_is_retried_without_an_event() {
    for (name, fault, times) in FAULTS {
        let Some(site) = begin(&format!("v6-{name}")) else { return };
        site.apply(&network("demo", "  topology: hub-spoke\n  hub: a\n"));
        let lists = |call: &Call| call.uri.contains("/gateways") && !call.is_write();
        site.control.proxy.inject(*fault, usize::MAX, lists);
        let _controller = site.start_controller();
        assert!(site.control.proxy.wait_for_hits(*times, crate::fleet::LIMIT), "{name}");
        assert_eq!(state(&site, "demo"), "", "{name}: nothing is known, so nothing is said");
        site.control.proxy.heal();
        wait_until(&format!("{name}: the verdict comes by itself"), || state(&site, "demo") == "Valid");
    }
}

#[test]
fn acceptance_6_v6_a_verdict_that_stands_stays_while_nothing_can_be_looked_up() {
    let Some(site) = begin("v6-later") else { return };
    site.apply(&network("demo", "  topology: hub-spoke\n  hub: a\n"));
    let mut controller = site.start_controller();
    wait_until("it is valid", || state(&site, "demo") == "Valid");
    wait_until("the intents are there", || site.versions::<WorkerSliceConfigSpec>().len() == 2);
    controller.kill().unwrap();
    let before = (version(&site, "demo"), site.versions::<WorkerSliceConfigSpec>());
    site.control
        .proxy
        .inject(Fault::Refuse(500), usize::MAX, |call| call.uri.contains("/gateways") && !call.is_write());
    controller.restart().unwrap();
    assert!(site.control.proxy.wait_for_hits(3, crate::fleet::LIMIT));
    assert_eq!((version(&site, "demo"), site.versions::<WorkerSliceConfigSpec>()), before);
}

#[test]
fn acceptance_6_v7_a_status_that_can_not_be_written_is_written_later() {
    let faults = [Fault::Refuse(500), Fault::Refuse(409), Fault::TooMany(1), Fault::Reset, Fault::LoseAnswer];
    for (at, fault) in faults.into_iter().enumerate() {
        let Some(site) = begin(&format!("v7-{at}")) else { return };
        site.control.proxy.inject(fault, 2, |call: &Call| {
            call.is_write() && call.uri.contains("/gatewaynetworks/demo/status")
        });
        site.apply(&network("demo", "  topology: hub-spoke\n  hub: a\n"));
        let _controller = site.start_controller();
        wait_until(&format!("{fault:?}: the status is written"), || state(&site, "demo") == "Valid");
        wait_until("and the intents", || site.versions::<WorkerSliceConfigSpec>().len() == 2);
        assert!(!site.control.proxy.hits().is_empty(), "{fault:?} was met");
    }
}

#[test]
fn acceptance_6_v9_and_v10_the_gateway_of_the_hub_comes_and_goes() {
    let Some(site) = begin("v9") else { return };
    let declared = network("demo", "  topology: hub-spoke\n  hub: c\n").replace("[a, b]", "[a, b, c]");
    site.apply(&declared);
    let _controller = site.start_controller();
    wait_until("the hub is missing", || state(&site, "demo").starts_with("Invalid: "));
    site.apply(&gateway("c", 3));
    wait_until("V9: it is there", || state(&site, "demo") == "Valid");
    wait_until("the intents are there", || site.versions::<WorkerSliceConfigSpec>().len() == 3);
    let intents = site.versions::<WorkerSliceConfigSpec>();
    site.delete::<GatewaySpec>("c");
    wait_until("V10: it is gone", || state(&site, "demo").starts_with("Invalid: "));
    assert_eq!(site.versions::<WorkerSliceConfigSpec>(), intents, "what runs is left alone");
}

#[test]
fn acceptance_6_v11_a_deleted_network_leaves_nothing() {
    let Some(site) = Site::new("v11", &["hub-a", "spoke-1"], &[]) else { return };
    let [hub, spoke] = &site.members[..] else { panic!("two members") };
    site.apply(NETWORK);
    let _running = [site.start_controller(), hub.start(), spoke.start()];
    wait_until("the spoke reaches the hub", || spoke.reaches(hub));
    site.delete::<GatewayNetworkSpec>("demo");
    wait_until("all intents are gone", || site.versions::<WorkerSliceConfigSpec>().is_empty());
    assert_eq!([hub.devices().len(), spoke.devices().len()], [0, 0], "their links went first");
    let networks = || site.field::<GatewaySpec>("hub-a", "/status/networks");
    wait_until("no gateway lists it", || networks().as_array().is_none_or(Vec::is_empty));
}

#[test]
fn w6_an_intent_that_somebody_deletes_goes_when_its_links_are_gone_and_comes_back() {
    let Some(site) = Site::new("w6", &["hub-a", "spoke-1"], &[]) else { return };
    let [hub, spoke] = &site.members[..] else { panic!("two members") };
    site.apply(NETWORK);
    let _controller = site.start_controller();
    let (_hub, mut worker) = (hub.start(), spoke.start());
    wait_until("the spoke reaches the hub", || spoke.reaches(hub));
    let uid = || site.field::<WorkerSliceConfigSpec>("demo.spoke-1", "/metadata/uid");
    let first = uid();
    worker.kill().unwrap();
    site.delete::<WorkerSliceConfigSpec>("demo.spoke-1");
    wait_until("the controller says what it waits for", || {
        site.field::<GatewayNetworkSpec>("demo", "/status/conditions").to_string().contains("demo.spoke-1")
            || site.controller_log().contains("demo.spoke-1")
    });
    assert_eq!(uid(), first, "while its worker may have links it stays");
    assert!(!spoke.devices().is_empty());
    worker.restart().unwrap();
    wait_until("another one takes its place", || uid() != first && !uid().is_null());
    wait_until("and is applied", || spoke.reaches(hub));
}

#[test]
fn acceptance_6_v12_a_change_during_a_pass_is_seen_and_a_stale_verdict_is_not_published() {
    let Some(site) = begin("v12") else { return };
    site.control.proxy.inject(Fault::Hold, 1, |call: &Call| {
        call.is_write() && call.uri.contains("/gatewaynetworks/demo/status")
    });
    site.apply(&network("demo", "  topology: ring\n"));
    let _controller = site.start_controller();
    assert!(site.control.proxy.wait_for_hits(1, crate::fleet::LIMIT), "a pass is about to say Invalid");
    let seen = site.observe::<GatewayNetworkSpec>("demo", "/status/observedGeneration");
    site.apply(&network("demo", "  topology: mesh\n"));
    site.control.proxy.heal();
    wait_until("the new one is judged", || state(&site, "demo") == "Valid");
    let generation = site.field::<GatewayNetworkSpec>("demo", "/metadata/generation").as_i64().unwrap();
    assert!(seen.take().iter().all(|seen| *seen == generation), "nothing was said for the old one");
}

#[test]
fn acceptance_6_v13_what_happens_while_the_watch_is_cut_is_seen_afterwards() {
    let Some(site) = begin("v13") else { return };
    site.apply(&network("demo", "  topology: ring\n"));
    let _controller = site.start_controller();
    wait_until("it is invalid", || state(&site, "demo").starts_with("Invalid: "));
    site.control.proxy.cut();
    site.control.proxy.inject(Fault::Refuse(503), usize::MAX, |call: &Call| {
        call.uri.contains("/gatewaynetworks") && !call.is_write()
    });
    site.apply(&network("demo", "  topology: mesh\n"));
    assert!(site.control.proxy.wait_for_hits(2, crate::fleet::LIMIT), "it asks in vain");
    site.control.proxy.heal();
    wait_until("the change is seen", || state(&site, "demo") == "Valid");
}

#[test]
fn acceptance_6_v15_a_broken_network_holds_up_no_other() {
    let Some(site) = begin("v15") else { return };
    site.control.proxy.inject(Fault::Refuse(500), usize::MAX, |call: &Call| {
        call.is_write() && call.uri.contains("/gatewaynetworks/broken/status")
    });
    for name in ["aaa", "broken", "zzz"] {
        site.apply(&network(name, "  topology: mesh\n"));
    }
    let _controller = site.start_controller();
    for name in ["aaa", "zzz"] {
        wait_until(&format!("{name} is valid"), || state(&site, name) == "Valid");
    }
    let intents = || site.versions::<WorkerSliceConfigSpec>();
    wait_until("both have their intents", || intents().len() == 4);
    assert_eq!(state(&site, "broken"), "");
    site.control.proxy.heal();
    wait_until("the broken one follows", || state(&site, "broken") == "Valid" && intents().len() == 6);
}
