//! A worker whose API servers misbehave: rows W of cases/reconcile.md. What it does not know removes nothing.

use spanwire_api::WorkerSliceConfigSpec;
use spanwire_testkit::control_plane::{Call, Fault};

use super::{is_applied, is_connected, pair};
use crate::{
    fleet::LIMIT,
    site::{Device, intent, wait_until},
};

fn names(devices: &[Device]) -> Vec<(String, u32, usize)> {
    devices.iter().map(|device| (device.name.clone(), device.index, device.peers.len())).collect()
}

#[test]
fn w4_gateways_that_can_not_be_listed_at_the_start_remove_no_link() {
    let Some((site, [mut worker, _c])) = pair("w4") else { return };
    let [me, c] = &site.members[..] else { panic!("two members") };
    let before = names(&me.devices());
    let faults = [
        (Fault::Refuse(500), 3),
        (Fault::TooMany(1), 2),
        (Fault::Reset, 3),
        (Fault::CutShort, 3),
        (Fault::Stall, 1),
    ];
    let mut met = 0;
    for (fault, times) in faults {
        worker.kill().unwrap();
        site.control
            .proxy
            .inject(fault, usize::MAX, |call: &Call| call.uri.contains("/gateways") && !call.is_write());
        worker.restart().unwrap();
        met += times;
        assert!(site.control.proxy.wait_for_hits(met, LIMIT), "{fault:?}");
        assert_eq!(names(&me.devices()), before, "{fault:?}");
        assert!(me.reaches(c), "{fault:?}");
        site.control.proxy.heal();
        met = site.control.proxy.hits().len();
    }
    wait_until("all is well again", || is_connected(&site, "me", &["c"]));
    assert_eq!(names(&me.devices()), before);
}

#[test]
fn w9_a_conflict_on_a_status_is_retried_and_touches_no_link() {
    let Some((site, _workers)) = pair("w9") else { return };
    let me = &site.members[0];
    let before = names(&me.devices());
    site.control.proxy.inject(Fault::Refuse(409), 3, |call: &Call| {
        call.is_write() && call.uri.contains("/workersliceconfigs/demo.me/status")
    });
    site.apply(&intent("me", "topology: mesh\npeers: [c]\ntunnelAddress: 100.90.0.1\ntransit: Routed"));
    assert!(site.control.proxy.wait_for_hits(3, LIMIT), "the status is tried again");
    wait_until("it is written", || is_applied(&site, "me"));
    assert_eq!(names(&me.devices()), before);
}

#[test]
fn w17_an_intent_that_may_not_be_read_is_unknown_and_a_teardown_removes() {
    let Some((site, [mut worker, _c])) = pair("w17") else { return };
    let [me, c] = &site.members[..] else { panic!("two members") };
    let before = names(&me.devices());
    worker.kill().unwrap();
    site.control.proxy.inject(Fault::Refuse(403), usize::MAX, |call: &Call| {
        call.uri.contains("/workersliceconfigs") && !call.is_write()
    });
    worker.restart().unwrap();
    assert!(site.control.proxy.wait_for_hits(2, LIMIT));
    assert!(me.reaches(c));
    assert_eq!(names(&me.devices()), before);
    site.control.proxy.heal();
    site.apply(&intent("me", "topology: mesh\npeers: []\ntunnelAddress: 100.90.0.1"));
    wait_until("the teardown is followed", || me.devices().is_empty());
    wait_until("and said", || {
        let rows = site.field::<WorkerSliceConfigSpec>("demo.me", "/status/peerStatuses");
        is_applied(&site, "me") && rows.as_array().is_none_or(Vec::is_empty)
    });
}
