//! Kubernetes Events on real API servers: each thing that happened is told once, on its object.

use std::collections::BTreeSet;

use k8s_openapi::api::events::v1::Event;
use spanwire_api::{GatewayNetworkSpec, TunnelLinkSpec};
use spanwire_testkit::control_plane::{Call, Fault};

use super::{fake, pair};
use crate::site::{Site, wait_until};

fn network(spec: &str) -> String {
    format!(
        "apiVersion: spanwire.dev/v1alpha1\nkind: GatewayNetwork\nmetadata:\n  name: demo\nspec:\n  members: [a, b]\n  \
         cidr: 100.80.0.0/24\n  hubChange: {{connectTimeout: 1s}}\n{spec}"
    )
}

/// The gateways `a` and `b`, whose workers never answer.
fn begin(namespace: &str) -> Option<Site> {
    let site = Site::new(namespace, &[], &[])?;
    fake(&site, "a", 8);
    fake(&site, "b", 9);
    Some(site)
}

/// The reasons told of objects of a kind, sorted; those in `notes` with their note.
fn told(events: &[Event], kind: &str, name: &str, uid: &serde_json::Value) -> Vec<String> {
    let on = |event: &&Event| {
        let on = event.regarding.clone().unwrap_or_default();
        on.kind.as_deref() == Some(kind)
            && on.name.as_deref() == Some(name)
            && on.uid.as_deref() == uid.as_str()
    };
    let mut reasons: Vec<String> =
        events.iter().filter(on).filter_map(|event| event.reason.clone()).collect();
    reasons.sort();
    reasons
}

#[test]
fn events_tell_of_a_network_what_was_decided_and_how_far_a_change_is() {
    let Some(site) = begin("events") else { return };
    let mut controller = site.start_controller();
    site.apply(&network("  topology: ring\n"));
    let uid = || site.field::<GatewayNetworkSpec>("demo", "/metadata/uid");
    let told = || told(&site.events(), "GatewayNetwork", "demo", &uid());
    wait_until("Invalid is told", || told() == ["Invalid"]);
    site.apply(&network("  topology: hub-spoke\n  hub: a\n"));
    wait_until("Valid is told", || told() == ["Invalid", "Valid"]);
    let hub = || site.field::<GatewayNetworkSpec>("demo", "/status/activeHub");
    wait_until("a is the hub", || hub() == "a");
    site.apply(&network("  topology: hub-spoke\n  hub: b\n"));
    wait_until("the end of the change is told", || told().contains(&"ChangeEnded".to_owned()));
    let all: BTreeSet<String> = told().into_iter().collect();
    let expected = ["ChangeEnded", "ChangeStarted", "Invalid", "PhaseEntered", "PhaseTimedOut", "Valid"];
    assert_eq!(all.into_iter().collect::<Vec<_>>(), expected);
    let notes: Vec<String> = site.events().into_iter().filter_map(|event| event.note).collect();
    for words in [
        "ring",
        "Adding went on after 1 s without ",
        "Removing: from hub-spoke around a to hub-spoke around b",
    ] {
        assert!(notes.iter().any(|note| note.contains(words)), "{words}: {notes:#?}");
    }
    controller.kill().unwrap();
    let before = told();
    while !site.controller().writes().is_empty() {}
    let marks = site.marks();
    site.controller();
    assert_eq!(site.writes_since(marks), [], "another pass tells nothing");
    assert_eq!(told(), before);
}

#[test]
fn events_that_can_not_be_written_hold_up_no_pass() {
    for (name, fault) in [("refused", Fault::Refuse(403)), ("stalled", Fault::Stall)] {
        let Some(site) = begin(&format!("events-{name}")) else { return };
        site.control.proxy.inject(fault, usize::MAX, |call: &Call| call.uri.contains("/events.k8s.io/"));
        site.apply(&network("  topology: hub-spoke\n  hub: a\n"));
        let run = site.controller();
        assert_eq!(run.code, 0, "{name}: {run:#?}");
        assert!(run.writes().iter().any(|write| write.contains("intent demo.b")), "{name}: {run:#?}");
        assert!(!site.control.proxy.hits().is_empty(), "{name}: it was tried");
        assert_eq!(site.events().len(), 0, "{name}");
    }
}

#[test]
fn events_tell_of_a_link_that_it_is_connected_and_that_it_is_lost() {
    let Some((site, _workers)) = pair("link-events") else { return };
    let [me, c] = &site.members[..] else { panic!("two members") };
    let record = me.records::<TunnelLinkSpec>(&site).remove(0);
    let name = record.metadata.name.unwrap();
    let uid = record.metadata.uid.map(Into::into).unwrap_or_default();
    let told = || told(&me.events(&site), "TunnelLink", &name, &uid);
    wait_until("the connection is told", || told() == ["Connected"]);
    c.host.deafen(me.host.address()).unwrap();
    wait_until("its loss is told", || told().contains(&"ConnectionLost".to_owned()));
    c.host.hear_again().unwrap();
    let counted = || {
        let mut events = me.events(&site).into_iter();
        let connected = events.find(|event| event.reason.as_deref() == Some("Connected"));
        connected.and_then(|event| event.series).map(|series| series.count)
    };
    wait_until("that it is back is counted on the first Event", || counted() == Some(2));
    assert_eq!(told().iter().filter(|reason| *reason == "Connected").count(), 1);
}
