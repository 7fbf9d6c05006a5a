//! Nothing is written that is there already, and who may read what is written.

use std::{fs, os::unix::fs::PermissionsExt as _};

use spanwire_engine::{
    Class, NetworkStatus, WorkerStatus,
    port::{ControllerStore, Fault as _, LocalStore, WorkerStore, Written},
};
use spanwire_store::dir::{Error, Local};

use crate::sandbox::{Sandbox, intent, link, name, record};

#[tokio::test]
async fn w1_a_second_pass_over_the_control_store_writes_no_file() {
    let sandbox = Sandbox::declared();
    let (store, worker) = (sandbox.controller(), sandbox.worker());
    let (demo, spoke) = (name("demo"), name("spoke-1"));
    let said = WorkerStatus { observed_generation: 1, ..WorkerStatus::default() };
    let status = NetworkStatus { observed_generation: 1, ..NetworkStatus::default() };
    let facts = spanwire_engine::GatewayFacts { endpoint: Some("192.0.2.1".into()), ..Default::default() };
    let mut prints = None;
    for pass in 0..3 {
        let view = store.read().await.unwrap();
        store.write_network_status(&demo, &status, &view.networks[&demo].meta).await.unwrap();
        store.write_gateway_networks(&spoke, &[(name("demo"), None)].into()).await.unwrap();
        let expected = view.intents.get(&(demo.clone(), spoke.clone())).map(|view| view.meta.clone());
        store.write_intent(&intent("demo", "spoke-1"), expected.as_ref()).await.unwrap();
        worker.write_gateway_facts(&spoke, &facts).await.unwrap();
        let meta = worker.read(&spoke).await.unwrap().intents[&demo].0.meta.clone();
        worker.write_intent_status(&spoke, &demo, &said, &meta).await.unwrap();
        let now = (sandbox.prints(), store.writes(), worker.writes());
        if let Some(before) = prints.replace(now.clone()) {
            assert_eq!(now, before, "pass {pass}");
        }
    }
}

#[tokio::test]
async fn looking_writes_nothing_at_all() {
    let sandbox = Sandbox::declared();
    let store = sandbox.controller();
    let before = sandbox.prints();
    let view = store.look().await.unwrap();
    let mut after = sandbox.prints();
    after.remove(&sandbox.path(".lock"));
    assert_eq!((after, store.writes()), (before, 0));
    assert_eq!(view.networks[&name("demo")].meta.uid.0, "", "no controller has seen it yet");
    assert_eq!(view.gateways.len(), 2);
}

#[tokio::test]
async fn the_ledger_counts_what_was_written() {
    let sandbox = Sandbox::new();
    let local = sandbox.local();
    assert_eq!(local.writes(), 0);
    assert_eq!(local.apply(&record("hub-a")).await.unwrap(), Written::Changed);
    assert_eq!(local.writes(), 2, "a record and its status");
    let mut changed = link("hub-a");
    changed.status.message = "other".into();
    local.apply(&spanwire_engine::worker::RecordStep::Link(Box::new(changed.clone()))).await.unwrap();
    assert_eq!(local.writes(), 3, "the status alone");
    local.apply(&spanwire_engine::worker::RecordStep::ForgetLink(changed.id)).await.unwrap();
    assert_eq!(local.writes(), 5);
}

#[tokio::test]
async fn records_are_closed_to_other_accounts() {
    let sandbox = Sandbox::new();
    let path = sandbox.path("local");
    let local = Local::open(&path).unwrap();
    local.apply(&record("hub-a")).await.unwrap();
    let mode = |path: &std::path::Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode(&path), 0o700);
    assert_eq!(mode(&path.join("tunnellinks")), 0o700);
    assert_eq!(mode(&path.join("tunnellinks/demo.hub-a.mesh.yaml")), 0o600);
    assert_eq!(mode(&path.join("tunnellinks/demo.hub-a.mesh.status.worker.yaml")), 0o600);
    assert!(Local::open(sandbox.path("no/parent")).is_err());
}

#[tokio::test]
async fn a_full_or_closed_disk_leaves_the_old_content() {
    let sandbox = Sandbox::new();
    let local = sandbox.local();
    local.apply(&record("hub-a")).await.unwrap();
    let before = sandbox.text("tunnellinks/demo.hub-a.mesh.yaml");
    // A folder in the place of the file: the rename fails, for root as well.
    let blocked = sandbox.path("tunnellinks/demo.hub-b.mesh.yaml");
    fs::create_dir(&blocked).unwrap();
    assert!(local.apply(&record("hub-b")).await.is_err());
    assert_eq!(sandbox.text("tunnellinks/demo.hub-a.mesh.yaml"), before);
    let left = fs::read_dir(sandbox.path("tunnellinks")).unwrap();
    let left: Vec<_> = left.map(|entry| entry.unwrap().file_name()).collect();
    assert!(!left.iter().any(|name| name.to_string_lossy().starts_with(".tmp-")), "{left:?}");
    let recorded = local.read().await.unwrap();
    assert_eq!((recorded.links.len(), recorded.unreadable.len()), (1, 1));
}

/// A process that was stopped while it held the lock must not stop the others for ever.
#[tokio::test]
async fn a_lock_that_nobody_lets_go_of_is_an_error_and_not_a_hang() {
    let sandbox = Sandbox::declared();
    let store = sandbox.controller();
    store.read().await.unwrap();
    let holder = fs::File::open(sandbox.path(".lock")).unwrap();
    holder.lock().unwrap();
    let error = store.read().await.unwrap_err();
    assert!(matches!(error, Error::LockHeld { seconds: 5, .. }), "{error}");
    assert_eq!(error.class(), Class::Retry);
    drop(holder);
    store.read().await.unwrap();
}
