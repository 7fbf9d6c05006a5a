//! Passes: what is wanted gets made, a second one writes nothing, a kill at any step is repaired, and nothing is taken
//! away after a failure. They refuse real devices.

use std::time::Duration;

use spanwire::{driver::Reconciler as _, ledger::Target};
use spanwire_engine::{Backend, Intent, LinkRole, port::WorkerView};

use crate::world::{World, gateway, intent, key, link};

const LIMIT: Duration = Duration::from_secs(5);

#[tokio::test]
async fn w1_the_second_pass_writes_nothing_and_a_restart_neither() {
    let world = World::new();
    world.intend(Some(intent(&["hub-a"])), 1);
    world.connect(&[link("hub-a", LinkRole::Uplink)]);
    let mut worker = world.worker();
    let first = worker.pass().await;
    assert!(first.faults.is_empty(), "{:?}", first.faults);
    assert!(first.ledger.count(Target::Device) > 0 && first.ledger.count(Target::Record) > 0);
    world.settle().await;
    for mut worker in [worker, world.worker()] {
        let outcome = worker.pass().await;
        assert_eq!((outcome.ledger.entries(), &outcome.waits[..]), (&[][..], &[][..]));
    }
    assert_eq!(world.status().summary.ready, 1);
    assert_eq!(world.probes.1.lock().unwrap().len(), 1);
}

/// The first pass after a start has no evidence yet: what was found before stands until something else is seen.
#[tokio::test]
async fn w2_a_restart_without_evidence_yet_changes_nothing() {
    let world = World::new();
    world.intend(Some(intent(&["hub-a", "hub-b"])), 1);
    world.connect(&[link("hub-a", LinkRole::Uplink), link("hub-b", LinkRole::Uplink)]);
    world.settle().await;
    world.connect(&[]);
    let outcome = world.worker().pass().await;
    assert_eq!(outcome.ledger.entries(), []);
}

#[tokio::test]
async fn w15_facts_are_published_before_there_is_any_network() {
    let world = World::new();
    let outcome = world.worker().pass().await;
    assert_eq!(outcome.ledger.count(Target::Status), 1, "{outcome:?}");
    let view = world.control.0.lock().unwrap().clone().unwrap();
    assert_eq!(view.gateways[&gateway("spoke-1")].facts.public_key, Some(key(1).to_string()));
}

#[tokio::test]
async fn after_a_failed_step_nothing_is_taken_away_and_the_rest_is_made() {
    let world = World::new();
    world.intend(Some(intent(&["hub-a"])), 1);
    world.connect(&[link("hub-a", LinkRole::Uplink)]);
    world.settle().await;
    let before = world.host();
    world.intend(Some(Intent { peers: Some(vec![]), ..intent(&["hub-a"]) }), 2);
    world.disturbance.lock().unwrap().fail = Some("Intent(");
    let outcome = world.worker().pass().await;
    assert_eq!(outcome.faults.len(), 1, "{outcome:?}");
    assert_eq!((world.host().devices, world.host().firewall), (before.devices, before.firewall));
    world.disturbance.lock().unwrap().fail = None;
    world.settle().await;
    assert!(world.host().devices.is_empty() && world.recorded().links.is_empty());
}

#[tokio::test]
async fn without_the_packet_filter_no_device_is_made() {
    let world = World::new();
    world.intend(Some(intent(&["hub-a"])), 1);
    world.disturbance.lock().unwrap().fail = Some("Firewall");
    let outcome = world.worker().pass().await;
    assert_eq!(outcome.faults.len(), 1);
    assert!(world.host().devices.is_empty(), "{:?}", world.host.taken.lock().unwrap());
}

#[tokio::test]
async fn a_failed_peer_is_named_and_the_other_is_made() {
    let world = World::new();
    let both = Intent { hubs: vec![gateway("hub-a"), gateway("hub-b")], ..intent(&["hub-a", "hub-b"]) };
    world.intend(Some(both), 1);
    let bad = link("hub-a", LinkRole::Uplink).device().name(&gateway("spoke-1"), Backend::Userspace);
    let text: &'static str =
        Box::leak(format!("Peer(PeerConfig {{ device: DeviceName(\"{bad}\")").into_boxed_str());
    world.disturbance.lock().unwrap().fail = Some(text);
    let outcome = world.worker().pass().await;
    assert_eq!(outcome.faults.len(), 1, "{outcome:?}");
    let status = world.status();
    let row = status.peers.iter().find(|row| row.peer == "hub-a").unwrap();
    assert_eq!(row.reason, spanwire_engine::Reason::StepFailed);
    let made = link("hub-b", LinkRole::Uplink).device();
    assert_eq!(world.host().devices[&made].peers.len(), 1);
}

#[tokio::test]
async fn w5_an_unreadable_control_store_removes_nothing_and_drift_is_still_repaired() {
    let world = World::new();
    world.intend(Some(intent(&["hub-a"])), 1);
    world.connect(&[link("hub-a", LinkRole::Uplink)]);
    world.settle().await;
    let before = world.host();
    *world.control.0.lock().unwrap() = None;
    world.host.host.lock().unwrap().devices.clear();
    let mut worker = world.worker();
    for _ in 0..3 {
        let outcome = tokio::time::timeout(LIMIT, worker.pass()).await.unwrap();
        assert!(outcome.faults[0].message.contains("cannot read the control store"), "{outcome:?}");
    }
    assert_eq!(world.host().devices.keys().collect::<Vec<_>>(), before.devices.keys().collect::<Vec<_>>());
    assert_eq!(world.host().tables, before.tables);
}

#[tokio::test]
async fn w11_an_emptied_control_store_removes_nothing() {
    let world = World::new();
    world.intend(Some(intent(&["hub-a"])), 1);
    world.connect(&[link("hub-a", LinkRole::Uplink)]);
    world.settle().await;
    let before = world.host();
    *world.control.0.lock().unwrap() = Some(WorkerView::default());
    let outcome = world.worker().pass().await;
    assert!(outcome.waits.iter().any(|wait| wait.contains("GatewayNotFound")), "{outcome:?}");
    assert_eq!(world.host(), before);
}

#[tokio::test]
async fn w16_a_gateway_taken_over_keeps_its_links_and_publishes_nothing() {
    let world = World::new();
    world.intend(Some(intent(&["hub-a"])), 1);
    world.connect(&[link("hub-a", LinkRole::Uplink)]);
    world.settle().await;
    let host = world.host();
    {
        let mut view = world.control.0.lock().unwrap();
        let own = view.as_mut().unwrap().gateways.get_mut(&gateway("spoke-1")).unwrap();
        (own.facts.public_key, own.facts.key_generation) = (Some(key(9).to_string()), 2);
    }
    world.intend(Some(intent(&["hub-b"])), 2);
    let view = world.control.0.lock().unwrap().clone();
    let outcome = world.worker().pass().await;
    assert!(outcome.waits.iter().any(|wait| wait.contains("GatewayTakenOver")), "{outcome:?}");
    assert_eq!((world.host(), world.control.0.lock().unwrap().clone()), (host, view));
}
