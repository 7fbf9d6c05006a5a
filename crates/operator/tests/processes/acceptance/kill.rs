//! A worker that is killed and started again (3): at rest, and at every single write to either API server, before the
//! server heard of it and after. Fault points are enumerated, not sampled.

use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering},
};

use spanwire_api::{AppliedIntentSpec, TunnelLinkSpec, WorkerSliceConfigSpec};
use spanwire_testkit::control_plane::{Call, Fault};

use super::{admit, fake, is_applied, is_connected, pair};
use crate::site::{Gateway, Site, intent, wait_until};

#[test]
fn acceptance_3_after_a_restart_links_devices_and_records_are_what_they_were() {
    let Some((site, [mut worker, _other])) = pair("restart") else { return };
    let [me, c] = &site.members[..] else { panic!("two members") };
    wait_until("the record says so", || {
        let links = me.records::<TunnelLinkSpec>(&site);
        links.iter().all(|link| link.data["status"]["state"] == "Connected")
    });
    wait_until("both have told it", || !me.events(&site).is_empty() && !c.events(&site).is_empty());
    let state = || {
        let status = site.field::<WorkerSliceConfigSpec>("demo.me", "/status");
        (me.devices(), site.versions::<TunnelLinkSpec>(), site.versions::<AppliedIntentSpec>(), status)
    };
    let before = state();
    worker.kill().unwrap();
    let marks = site.marks();
    worker.restart().unwrap();
    wait_until("the worker acts again and knows", || {
        me.log().matches("the worker acts").count() == 2 && is_connected(&site, "me", &["c"])
    });
    wait_until("c reaches me", || c.reaches(me));
    assert_eq!(state(), before, "devices with their sessions, records, what is said");
    assert_eq!(site.writes_since(marks), [], "a restart is no reason to write");
}

/// Everything that must be the same however often a worker was killed on the way there.
fn end_state(
    site: &Site,
    me: &Gateway,
) -> (Vec<String>, Vec<(String, serde_json::Value)>, serde_json::Value) {
    let without_moments = |mut object: kube::api::DynamicObject| {
        for part in ["status", "spec"] {
            for moment in ["lastTransitionTime", "wantedSince"] {
                object.data[part].as_object_mut().and_then(|part| part.remove(moment));
            }
        }
        // Another object of the same name has another UID, and the host of another run another port.
        object.data["spec"].as_object_mut().and_then(|spec| spec.remove("peerUID"));
        object.data["spec"].as_object_mut().and_then(|spec| spec.remove("uid"));
        (object.metadata.name.unwrap_or_default(), object.data)
    };
    let mut records: Vec<_> = me.records::<TunnelLinkSpec>(site).into_iter().map(without_moments).collect();
    records.extend(me.records::<AppliedIntentSpec>(site).into_iter().map(without_moments));
    let summary = site.field::<WorkerSliceConfigSpec>("demo.me", "/status/summary");
    (me.keys(), records, summary)
}

fn begin(namespace: &str) -> Option<Site> {
    let site = Site::new(namespace, &["me"], &["demo"])?;
    fake(&site, "a", 8);
    fake(&site, "b", 9);
    admit(&site, "me", 1);
    site.apply(&intent("me", "peers: [a, b]\ntunnelAddress: 100.90.0.1"));
    Some(site)
}

fn settle(site: &Site, me: &Gateway) {
    wait_until("the worker has nothing left to write", || {
        me.once().writes().is_empty() && is_applied(site, "me")
    });
}

#[test]
fn acceptance_3_killed_at_every_write_it_ends_where_an_undisturbed_one_ends() {
    let Some(site) = begin("goal") else { return };
    let marks = site.marks();
    settle(&site, &site.members[0]);
    let writes = site.writes_since(marks).len();
    let goal = end_state(&site, &site.members[0]);
    assert!(writes >= 8, "only {writes} fault points");
    for stop in 0..writes {
        for fault in [Fault::Stall, Fault::StallAnswer] {
            let name = format!("kill-{stop}-{fault:?}").to_lowercase();
            let site = begin(&name).unwrap();
            let me = &site.members[0];
            let met = Arc::new(AtomicUsize::new(0));
            for proxy in [&site.control.proxy, &site.own.proxy] {
                let met = Arc::clone(&met);
                let is_it = move |call: &Call| call.is_change() && met.fetch_add(1, Ordering::SeqCst) == stop;
                proxy.inject(fault, 1, is_it);
            }
            let mut worker = me.begin_once();
            let hit = || site.control.proxy.hits().len() + site.own.proxy.hits().len() == 1;
            wait_until(&format!("{name}: write {stop}"), || hit() || !worker.is_running());
            worker.kill().unwrap();
            for proxy in [&site.control.proxy, &site.own.proxy] {
                proxy.heal();
            }
            // A run that ended before needs more than one pass for all its writes: the next one makes them.
            settle(&site, me);
            assert_eq!(end_state(&site, me), goal, "{name}");
        }
    }
}
