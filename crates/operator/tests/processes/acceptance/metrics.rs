//! Requests in metrics, against the ledger of a real API server.

use std::collections::BTreeMap;

use spanwire_testkit::control_plane::Request;

use super::second_pass::NETWORK;
use crate::{
    scrape::{ask, free_port},
    site::{Site, wait_until},
};

type Counts = BTreeMap<(String, String), u64>;

/// Writes of one user, by verb and resource.
fn asked(requests: &[Request], user: &str) -> Counts {
    let mut counts = Counts::new();
    for request in requests.iter().filter(|request| request.user.ends_with(user)) {
        *counts.entry((request.verb.clone(), request.target())).or_default() += 1;
    }
    counts
}

/// Writes that a page shows, but for leases.
fn shown(address: &str) -> Counts {
    let page = ask(None, address, "/metrics").unwrap();
    let mut counts = Counts::new();
    for (series, value) in page.series("spanwire_api_requests_total") {
        let labels: Vec<&str> = series.split('"').skip(1).step_by(2).collect();
        let [side, verb, resource, _] = labels[..] else { panic!("{series}") };
        assert_eq!(side, "control", "{series}");
        if ["create", "update", "patch", "delete"].contains(&verb) && resource != "leases" {
            *counts.entry((verb.to_owned(), resource.to_owned())).or_default() += value as u64;
        }
    }
    counts
}

#[test]
fn metrics_count_the_requests_that_the_server_was_sent() {
    let Some(site) = Site::new("metrics", &["hub-a", "spoke-1"], &[]) else { return };
    let marks = site.marks();
    let address = free_port();
    let _controller = site.start_controller_with(&["--metrics-listen", &address]);
    wait_until("the controller is ready", || {
        ask(None, &address, "/readyz").is_some_and(|page| page.status == 200)
    });
    site.apply(NETWORK);
    let mut counts = (Counts::new(), Counts::new());
    let mut settled = || {
        counts = (shown(&address), asked(&site.writes_since(marks), "spanwire-controller"));
        counts.0.len() >= 3 && counts.0 == counts.1
    };
    let end = std::time::Instant::now() + crate::fleet::LIMIT;
    while !settled() {
        assert!(std::time::Instant::now() < end, "shown and asked differ: {counts:#?}");
    }
    let page = ask(None, &address, "/metrics").unwrap();
    for series in [
        r#"spanwire_api_requests_total{side="control",verb="list",resource="gateways",answer="done"}"#,
        r#"spanwire_api_requests_total{side="control",verb="watch",resource="gateways",answer="done"}"#,
    ] {
        assert!(page.value(series).is_some_and(|count| count >= 1.0), "{series}\n{}", page.body);
    }
    assert!(page.body.contains(r#"resource="leases""#), "{}", page.body);
}
