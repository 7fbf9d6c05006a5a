//! Two of a kind where one should act, and a host that lost everything: rows W8, W13, W14 and W16 of cases/reconcile.md on
//! real API servers.

use std::sync::atomic::{AtomicBool, Ordering};

use nix::sys::signal::Signal;
use spanwire_api::{GatewayNetworkSpec, GatewaySpec, TunnelLinkSpec, WorkerSliceConfigSpec};
use spanwire_testkit::{
    control_plane::{Call, Fault, Request},
    process::Process,
};

use super::{admit, fake, is_connected, pair};
use crate::site::{Gateway, Site, intent, wait_until};

/// `me` and `c`, connected, and a host that may act for `me`.
fn begin(namespace: &str) -> Option<(Site, Gateway, [Process; 2])> {
    let mut site = Site::new(namespace, &["me", "c", "spare"], &["demo"])?;
    let spare = site.members.pop()?;
    admit(&site, "me", 1);
    admit(&site, "c", 2);
    site.apply(&intent("me", "topology: mesh\npeers: [c]\ntunnelAddress: 100.90.0.1"));
    site.apply(&intent("c", "peers: [me]\ntunnelAddress: 100.90.0.2"));
    let [me, c] = &site.members[..] else { panic!("two members") };
    let workers = [me.start(), c.start()];
    wait_until("me and c are connected", || {
        is_connected(&site, "me", &["c"]) && is_connected(&site, "c", &["me"])
    });
    Some((site, spare, workers))
}

/// Events of what was before may still be on their way.
fn but_events(requests: Vec<Request>) -> Vec<Request> {
    requests.into_iter().filter(|request| request.resource != "events").collect()
}

fn published(site: &Site) -> serde_json::Value {
    site.field::<GatewaySpec>("me", "/status/publicKey")
}

#[test]
fn w8_of_two_workers_on_two_hosts_one_acts_and_the_other_says_that_it_stands_by() {
    let Some((site, spare, [mut first, _c])) = begin("w8") else { return };
    let second = site.move_to(spare, &site.members[0]);
    let (key, marks) = (published(&site), site.marks());
    let run = second.once();
    assert_eq!(run.code, 75, "{run:#?}");
    assert!(run.verdict["waitsFor"].to_string().contains("the other worker"), "{run:#?}");
    let _second = second.start();
    wait_until("it says that it stands by", || second.log().contains("standing by"));
    assert!(second.devices().is_empty());
    assert_eq!(but_events(site.writes_since(marks)), [], "and writes nothing");
    first.kill().unwrap();
    wait_until("it acts when the first one is gone", || !second.devices().is_empty());
    wait_until("with the same key", || is_connected(&site, "me", &["c"]) && published(&site) == key);
}

#[test]
fn w13_a_host_rebooted_while_the_control_cluster_is_down_is_rebuilt_from_its_records() {
    let Some((mut site, [mut worker, _c])) = pair("w13") else { return };
    let names = |gateway: &Gateway| {
        gateway.devices().into_iter().map(|device| (device.name, device.peers.len())).collect::<Vec<_>>()
    };
    let (before, records) = (names(&site.members[0]), site.versions::<TunnelLinkSpec>());
    site.control.proxy.inject(Fault::Reset, usize::MAX, |_| true);
    site.control.proxy.cut();
    worker.kill().unwrap();
    site.members[0].reboot();
    let [me, c] = &site.members[..] else { panic!("two members") };
    assert!(me.devices().is_empty() && !me.reaches(c));
    let met = site.control.proxy.hits().len();
    worker.restart().unwrap();
    wait_until("its links and routes are there again", || me.reaches(c));
    assert_eq!(names(me), before);
    assert!(site.control.proxy.hits().len() > met, "the control cluster was asked in vain");
    let uids = |versions: Vec<(String, String, String)>| {
        versions.into_iter().map(|(name, uid, _)| (name, uid)).collect::<Vec<_>>()
    };
    assert_eq!(uids(site.versions::<TunnelLinkSpec>()), uids(records), "from the records as they were");
}

#[test]
fn w14_a_controller_that_slept_during_a_phase_publishes_nothing_of_it_when_it_wakes() {
    let Some(site) = Site::new("w14", &["other"], &[]) else { return };
    let other = &site.members[0];
    fake(&site, "a", 8);
    fake(&site, "b", 9);
    let network = |hub: &str| {
        site.apply(&format!(
            "apiVersion: spanwire.dev/v1alpha1\nkind: GatewayNetwork\nmetadata:\n  name: demo\nspec:\n  members: [a, b]\n  \
             cidr: 100.80.0.0/24\n  topology: hub-spoke\n  hub: {hub}\n  hubChange: {{connectTimeout: 1s}}\n"
        ));
    };
    network("a");
    let old = site.start_controller();
    wait_until("a is the hub", || site.field::<GatewayNetworkSpec>("demo", "/status/activeHub") == "a");
    let is_status = |call: &Call| call.is_write() && call.uri.contains("/gatewaynetworks/demo/status");
    let begun = AtomicBool::new(false);
    // The first write is that of the phase Adding, the second ends it: that one is on its way while its writer sleeps.
    site.control
        .proxy
        .inject(Fault::Hold, 1, move |call: &Call| is_status(call) && begun.swap(true, Ordering::SeqCst));
    network("b");
    let phase = || site.field::<GatewayNetworkSpec>("demo", "/status/change/phase");
    assert!(site.control.proxy.wait_for_hits(1, crate::fleet::LIMIT), "it is about to enter the next phase");
    assert_eq!(phase(), "Adding");
    old.signal(Signal::SIGSTOP).unwrap();
    let _new = site.start_controller_on(other);
    wait_until("the new one has ended the change", || {
        phase().is_null() && site.field::<GatewayNetworkSpec>("demo", "/status/activeHub") == "b"
    });
    let intents = || site.versions::<WorkerSliceConfigSpec>();
    let status = || site.field::<GatewayNetworkSpec>("demo", "/metadata/resourceVersion");
    let (before, marks) = ((intents(), status()), site.marks());
    site.control.proxy.heal();
    wait_until("what it had sent arrives, and comes too late", || {
        let writes = site.writes_since(marks);
        writes.iter().any(|request| request.target() == "gatewaynetworks/status" && request.code == 409)
    });
    old.signal(Signal::SIGCONT).unwrap();
    wait_until("the old one stands by", || site.controller_log().contains("standing by"));
    assert_eq!((intents(), status()), before);
    let mut accepted = but_events(site.writes_since(marks));
    accepted.retain(Request::is_accepted_write);
    assert_eq!(accepted, []);
}

#[test]
fn w16_peers_take_the_key_of_a_worker_that_is_installed_anew_when_the_old_host_is_gone() {
    let Some((site, spare, [mut old, _c])) = begin("w16-gone") else { return };
    old.kill().unwrap();
    take_over(&site, spare);
}

#[test]
fn w16_and_when_it_still_runs_the_old_one_says_so_and_publishes_nothing_more() {
    let Some((site, spare, [_old, _c])) = begin("w16") else { return };
    let me = &site.members[0];
    let devices = |me: &Gateway| me.devices().into_iter().map(|device| device.name).collect::<Vec<_>>();
    let before = devices(me);
    let _new = take_over(&site, spare);
    wait_until("the old one says so", || me.log().contains("GatewayTakenOver"));
    let seen = site.observe::<GatewaySpec>("me", "/status/keyGeneration");
    let key = published(&site);
    site.apply(&intent("me", "topology: mesh\npeers: [c]\ntunnelAddress: 100.90.0.1\ntransit: Routed"));
    wait_until("the new one follows the intent", || is_connected(&site, "me", &["c"]));
    assert_eq!((published(&site), devices(me)), (key, before));
    assert!(seen.take().iter().all(|generation| *generation == 2));
}

/// `me` is installed anew on the spare host; its peer takes the new key.
fn take_over(site: &Site, spare: Gateway) -> (Gateway, Process) {
    let [me, c] = &site.members[..] else { panic!("two members") };
    let key = published(site);
    assert_eq!(c.keys(), [key.as_str().unwrap_or_default()]);
    let new = site.install_on(spare, me);
    let worker = new.start();
    wait_until("a new key is published", || published(site) != key);
    assert_eq!(site.field::<GatewaySpec>("me", "/status/keyGeneration"), 2);
    let key = published(site);
    wait_until("c takes it", || c.keys() == [key.as_str().unwrap_or_default()]);
    wait_until("both are connected", || is_connected(site, "me", &["c"]) && is_connected(site, "c", &["me"]));
    (new, worker)
}
