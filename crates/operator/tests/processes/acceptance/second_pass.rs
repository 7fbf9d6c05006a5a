//! The second identical pass writes nothing (2): not on either API server, not on a device; nor does time alone.

use std::time::Instant;

use spanwire_api::{
    AppliedIntentSpec, GatewayNetworkSpec, GatewaySpec, TunnelLinkSpec, WorkerSliceConfigSpec,
};

use super::{admit, key};
use crate::{
    fleet::{LIMIT, far_key},
    site::{Site, intent},
};

/// Versions of all objects of the product.
fn versions(site: &Site) -> Vec<(String, String, String)> {
    let mut all = site.versions::<GatewaySpec>();
    all.extend(site.versions::<GatewayNetworkSpec>());
    all.extend(site.versions::<WorkerSliceConfigSpec>());
    all.extend(site.versions::<TunnelLinkSpec>());
    all.extend(site.versions::<AppliedIntentSpec>());
    all
}

pub(super) const NETWORK: &str = "apiVersion: spanwire.dev/v1alpha1\nkind: GatewayNetwork\nmetadata:\n  name: demo\nspec:\n  \
     topology: hub-spoke\n  hub: hub-a\n  members: [hub-a, spoke-1]\n  cidr: 100.80.0.0/24\n";

#[test]
fn acceptance_2_a_second_identical_pass_writes_nothing() {
    let Some(site) = Site::new("again", &["hub-a", "spoke-1"], &[]) else { return };
    site.apply(NETWORK);
    let all = || {
        let mut runs = vec![site.controller()];
        runs.extend(site.members.iter().map(|member| member.once()));
        runs
    };
    let end = Instant::now() + LIMIT;
    loop {
        let runs = all();
        if runs.iter().all(|run| run.code == 0 && run.writes().is_empty()) {
            break;
        }
        assert!(Instant::now() < end, "still not done: {runs:#?}");
    }
    let (marks, before) = (site.marks(), versions(&site));
    for run in all() {
        assert_eq!((run.code, run.writes()), (0, vec![]), "{run:#?}");
    }
    assert_eq!(site.writes_since(marks), []);
    assert_eq!(versions(&site), before);
    assert!(before.len() >= 9, "2 gateways, 1 network, 2 intents, 2 links, 2 records: {before:?}");
}

const SPOKES: usize = 1_000;

/// A thousand spokes in one text.
fn spokes() -> (String, String) {
    use std::fmt::Write as _;
    let (mut gateways, mut peers) = (String::new(), String::new());
    for number in 0..SPOKES {
        let (high, low) = (100 + number / 250, number % 250);
        let _ = write!(
            gateways,
            "---\napiVersion: spanwire.dev/v1alpha1\nkind: Gateway\nmetadata:\n  name: far-{number}\nspec:\n  subnets: \
             [10.{high}.{low}.0/24]\n"
        );
        let _ = write!(peers, "far-{number}, ");
    }
    (gateways, peers)
}

#[test]
fn acceptance_2_nor_does_one_with_a_thousand_links() {
    let Some(site) = Site::new("thousand", &["hub-a"], &["demo"]) else { return };
    let (gateways, peers) = spokes();
    site.apply(&gateways);
    for number in 0..SPOKES {
        let status = serde_json::json!({"publicKey": far_key(number).to_string(), "keyGeneration": 1});
        site.patch_status::<GatewaySpec>(&format!("far-{number}"), status);
    }
    admit(&site, "hub-a", 1);
    let hub = &site.members[0];
    let lines = format!("topology: hub-spoke\nhubs: [hub-a]\ntunnelAddress: 100.90.0.1\npeers: [{peers}]");
    site.apply(&intent("hub-a", &lines));
    let begun = Instant::now();
    let first = hub.once();
    eprintln!("first: {} writes in {:?}", first.writes().len(), begun.elapsed());
    assert_eq!(hub.keys().len(), SPOKES);
    hub.once();
    let (marks, before, begun) = (site.marks(), versions(&site), Instant::now());
    let second = hub.once();
    eprintln!("again: {} writes in {:?}", second.writes().len(), begun.elapsed());
    assert_eq!(second.writes(), Vec::<String>::new());
    assert_eq!(site.writes_since(marks), []);
    assert_eq!(versions(&site), before);
    assert!(!hub.keys().contains(&key(1)));
}
