//! What passes say for metrics and probes. The tests refuse a worker that is not ready because a peer is dead or the
//! control store away.

use spanwire::{
    driver::Reconciler as _,
    metrics::{Format, links::Measures, pass::Measured},
    worker::Worker,
};
use spanwire_engine::{LinkRole, worker::Evidence};

use crate::{
    host::HostTwin,
    stores::{ControlTwin, LocalTwin},
    world::{ProbesTwin, World, intent, link},
};

/// One pass as the loop makes it; the page afterwards.
async fn page(worker: &mut Worker<ControlTwin, LocalTwin, HostTwin, ProbesTwin>) -> String {
    let Measures { metrics, health, .. } = worker.measures.clone();
    drop(Measured::new(worker, &metrics, &health).pass().await);
    metrics.render(Format::Prometheus).await
}

fn has(page: &str, line: &str) {
    assert!(page.lines().any(|there| there == line), "{line}\n{page}");
}

#[tokio::test]
async fn every_step_is_counted_with_what_became_of_it() {
    let world = World::new();
    world.intend(Some(intent(&["hub-a"])), 1);
    world.connect(&[link("hub-a", LinkRole::Uplink)]);
    let mut worker = world.worker();
    let shown = page(&mut worker).await;
    has(&shown, r#"spanwire_steps_total{kind="device",outcome="changed"} 1"#);
    has(&shown, r#"spanwire_steps_total{kind="peer",outcome="changed"} 1"#);
    has(&shown, r#"spanwire_passes_total{outcome="waiting"} 1"#);
    world.intend(Some(spanwire_engine::Intent { peers: Some(vec![]), ..intent(&["hub-a"]) }), 2);
    world.disturbance.lock().unwrap().fail = Some("Intent(");
    let shown = page(&mut worker).await;
    has(&shown, r#"spanwire_steps_total{kind="record_intent",outcome="failed"} 1"#);
    has(&shown, r#"spanwire_passes_total{outcome="failed"} 1"#);
    assert!(shown.contains(r#"outcome="left""#), "removals are left:\n{shown}");
}

#[tokio::test]
async fn a_worker_is_ready_after_its_first_look_with_a_dead_peer_and_without_its_control_store() {
    let world = World::new();
    world.intend(Some(intent(&["hub-a"])), 1);
    world.connect(&[link("hub-a", LinkRole::Uplink)]);
    world.settle().await;
    let dead = Evidence::NotConnected { one_way: false };
    world.probes.0.lock().unwrap().insert(link("hub-a", LinkRole::Uplink), dead);
    *world.control.0.lock().unwrap() = None;
    let mut worker = world.worker();
    assert!(worker.measures.health.ready().is_err());
    let shown = page(&mut worker).await;
    has(&shown, r#"spanwire_passes_total{outcome="failed"} 1"#);
    assert!(worker.measures.health.ready().is_ok(), "{:?}", worker.measures.health.ready());
}

#[tokio::test]
async fn a_worker_that_can_not_read_its_records_is_not_ready() {
    let world = World::new();
    world.disturbance.lock().unwrap().unreadable = true;
    let mut worker = world.worker();
    page(&mut worker).await;
    let why = worker.measures.health.ready().unwrap_err();
    assert!(why.contains("no pass over records and host"), "{why}");
}
