//! The prober over plain veth: nothing is lost where nothing happens, and what is cut off is counted.
#![allow(clippy::unwrap_used, reason = "an error here is a failed test")]

use std::time::Duration;

use spanwire_testkit::{
    lab::{Host, Lab},
    prober::{Pair, Prober, Rate},
    streams::Streams,
};

fn hosts(names: &[&str]) -> Option<Vec<Host>> {
    if let Some(why) = Lab::why_not() {
        eprintln!("skipped: {why}");
        return None;
    }
    let mut lab = Lab::new().unwrap();
    Some(names.iter().map(|name| lab.host(name).unwrap()).collect())
}

fn pairs(hosts: &[Host]) -> Vec<Pair> {
    let mut pairs = Vec::new();
    for from in hosts {
        for to in hosts.iter().filter(|to| to.name() != from.name()) {
            let (source, target) = (from.address(), to.address());
            pairs.push(Pair { from: from.clone(), source, to: to.clone(), target });
        }
    }
    pairs
}

fn run_for(prober: &Prober, time: Duration) {
    let end = prober.now() + time;
    while prober.now() < end {
        std::thread::park_timeout(end.saturating_sub(prober.now()));
    }
}

#[test]
fn twelve_pairs_at_a_kilohertz_lose_nothing() {
    let Some(hosts) = hosts(&["a", "b", "c", "d"]) else { return };
    let prober = Prober::start(&pairs(&hosts), Rate::default()).unwrap();
    run_for(&prober, Duration::from_secs(2));
    let report = prober.finish().unwrap();
    let total = report.total();
    assert_eq!(report.pairs.len(), 12);
    assert!(total.sent > 12 * 500, "{total:?}");
    assert_eq!((total.lost, total.duplicated, total.reordered), (0, 0, 0), "{total:?}");
}

#[test]
fn what_is_cut_off_is_lost_and_the_window_says_when() {
    let Some(hosts) = hosts(&["a", "b"]) else { return };
    let prober = Prober::start(&pairs(&hosts), Rate::default()).unwrap();
    run_for(&prober, Duration::from_millis(300));
    let cut = prober.now();
    hosts[1].cut_off().unwrap();
    run_for(&prober, Duration::from_millis(300));
    hosts[1].reconnect().unwrap();
    run_for(&prober, Duration::from_millis(300));
    let report = prober.finish().unwrap();
    assert_eq!(report.window(Duration::ZERO, cut - Duration::from_millis(20)).lost, 0);
    let after = report.window(cut, Duration::MAX);
    assert!(after.lost > 100 && after.received > 100, "{after:?}");
    assert!(after.longest_gap > Duration::from_millis(250), "{after:?}");
    assert!(!report.pairs[0].outages().is_empty());
}

#[test]
fn streams_say_how_long_they_stood_still() {
    let Some(hosts) = hosts(&["a", "b"]) else { return };
    let steady = Streams::start(&pairs(&hosts)).unwrap();
    let clock = Prober::start(&[], Rate::default()).unwrap();
    run_for(&clock, Duration::from_millis(500));
    for report in steady.finish().unwrap() {
        assert!(report.received > 20_000 && report.broken.is_none(), "{report:?}");
        assert!(report.longest_stall < Duration::from_millis(250), "{report:?}");
    }
    let cut = Streams::start(&pairs(&hosts)).unwrap();
    hosts[0].cut_off().unwrap();
    run_for(&clock, Duration::from_millis(400));
    for report in cut.finish().unwrap() {
        assert!(report.longest_stall > Duration::from_millis(350), "{report:?}");
    }
}
