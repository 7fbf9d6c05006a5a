//! People's files: never rewritten, and counted by what they mean.

use std::fs;

use spanwire_engine::port::{ControllerStore, WorkerStore};

use crate::sandbox::{NETWORK, Sandbox, eventually, gateway, intent, name};

async fn generation(sandbox: &Sandbox) -> i64 {
    sandbox.view().await.networks[&name("demo")].meta.generation
}

#[tokio::test]
async fn white_space_comments_and_order_are_no_edits() {
    let sandbox = Sandbox::declared();
    assert_eq!(generation(&sandbox).await, 1);
    for text in [
        format!("# the demo\n{NETWORK}\n"),
        NETWORK.replace("[hub-a, spoke-1]", "\n  - hub-a\n  - \"spoke-1\"  # the spoke"),
        NETWORK.replace("  hub: hub-a\n", "").replace("  cidr:", "  hub: hub-a\n  cidr:"),
        NETWORK.replace("  hub: hub-a\n", "  hub: hub-a\n  standbyHubs: []\n  transit: Isolated\n"),
        NETWORK.replace('\n', "\r\n"),
        NETWORK.replace("{name: demo}", "{name: demo, annotations: {note: x}, labels: {a: b}}"),
    ] {
        sandbox.put("gatewaynetworks/demo.yaml", &text);
        assert_eq!(generation(&sandbox).await, 1, "{text}");
        assert_eq!(sandbox.text("gatewaynetworks/demo.yaml"), text, "people's files are not rewritten");
    }
    sandbox.put("gatewaynetworks/demo.yaml", &NETWORK.replace("[hub-a, spoke-1]", "[spoke-1, hub-a]"));
    assert_eq!(generation(&sandbox).await, 2, "the order of members means something");
}

#[tokio::test]
async fn an_object_pasted_from_an_api_server_is_read() {
    let sandbox = Sandbox::new();
    let pasted = gateway("hub-a").replace(
        "{name: hub-a}",
        "{name: hub-a, namespace: x, uid: theirs, resourceVersion: \"7\", generation: 9, creationTimestamp: \
         \"2026-01-01T00:00:00Z\", managedFields: [{manager: kubectl, fieldsV1: {\"f:spec\": {}}}]}",
    );
    sandbox.put("gateways/hub-a.yaml", &format!("{pasted}status: {{publicKey: theirs}}\n"));
    let view = sandbox.view().await;
    assert_eq!(view.unreadable, []);
    let gateway = &view.gateways[&name("hub-a")];
    assert_ne!(gateway.meta.uid.0, "theirs", "a pasted identity belongs to another object");
    assert_eq!((gateway.meta.generation, gateway.facts.public_key.as_deref()), (1, None));
}

/// Some editors move the old file away before they write the new one.
#[tokio::test]
async fn saving_by_moving_away_is_no_deletion() {
    let sandbox = Sandbox::declared();
    let store = sandbox.controller();
    let before = store.read().await.unwrap().networks[&name("demo")].clone();
    let (file, backup) =
        (sandbox.path("gatewaynetworks/demo.yaml"), sandbox.path("gatewaynetworks/demo.yaml~"));
    fs::rename(&file, &backup).unwrap();
    let between = store.read().await.unwrap();
    assert!(between.networks.is_empty());
    let [unknown] = &between.unreadable[..] else { panic!("{between:?}") };
    assert_eq!((unknown.kind.as_str(), unknown.name.as_str()), ("gatewaynetworks", "demo"));
    assert!(unknown.cause.contains("was there and is gone"), "{unknown:?}");
    fs::write(&file, NETWORK).unwrap();
    assert_eq!(store.read().await.unwrap().networks[&name("demo")], before);
}

#[tokio::test]
async fn the_status_of_a_deleted_object_is_cleaned_up_by_its_owner() {
    let sandbox = Sandbox::declared();
    let (store, worker, spoke) = (sandbox.controller(), sandbox.worker(), name("spoke-1"));
    store.read().await.unwrap();
    worker.write_gateway_facts(&spoke, &Default::default()).await.unwrap();
    fs::remove_file(sandbox.path("gateways/spoke-1.yaml")).unwrap();
    let (mine, theirs) = ("gateways/spoke-1.status.controller.yaml", "gateways/spoke-1.status.worker.yaml");
    eventually("the controller's part is gone", async || {
        store.read().await.unwrap();
        (!sandbox.has(mine)).then_some(())
    })
    .await;
    assert!(sandbox.has(theirs), "the worker's part is the worker's");
    worker.read(&name("hub-a")).await.unwrap();
    assert!(sandbox.has(theirs), "another worker's, too");
    eventually("the worker's part is gone", async || {
        worker.read(&spoke).await.unwrap();
        (!sandbox.has(theirs)).then_some(())
    })
    .await;
}

#[tokio::test]
async fn nothing_is_cleaned_up_when_a_folder_cannot_be_listed() {
    let sandbox = Sandbox::declared();
    let store = sandbox.controller();
    store.read().await.unwrap();
    fs::remove_file(sandbox.path("gateways/spoke-1.yaml")).unwrap();
    fs::rename(sandbox.path("gatewaynetworks"), sandbox.path("elsewhere")).unwrap();
    sandbox.put("gatewaynetworks", "no folder");
    let start = std::time::Instant::now();
    eventually("the grace is over", async || {
        assert!(store.read().await.is_err());
        (start.elapsed().as_millis() > 1200).then_some(())
    })
    .await;
    assert!(sandbox.has("gateways/spoke-1.status.controller.yaml"));
}

/// Facts of a gateway outlive its file only for its worker, and count for nothing in a new one.
#[tokio::test]
async fn a_recreated_gateway_does_not_inherit_facts() {
    let sandbox = Sandbox::declared();
    let (store, worker, hub) = (sandbox.controller(), sandbox.worker(), name("hub-a"));
    store.read().await.unwrap();
    let facts = spanwire_engine::GatewayFacts { endpoint: Some("192.0.2.1".into()), ..Default::default() };
    worker.write_gateway_facts(&hub, &facts).await.unwrap();
    let old = store.read().await.unwrap().gateways[&hub].clone();
    assert_eq!(old.facts, facts);
    fs::remove_file(sandbox.path("gateways/hub-a.status.controller.yaml")).unwrap();
    let new = store.read().await.unwrap().gateways[&hub].clone();
    assert!(new.meta.uid.is_another_than(&old.meta.uid));
    assert_eq!(new.facts, Default::default());
    worker.write_gateway_facts(&hub, &facts).await.unwrap();
    assert_eq!(store.read().await.unwrap().gateways[&hub].facts, facts);
}

#[tokio::test]
async fn a_person_may_add_labels_to_what_the_controller_writes() {
    let sandbox = Sandbox::declared();
    let store = sandbox.controller();
    store.write_intent(&intent("demo", "spoke-1"), None).await.unwrap();
    let file = "workersliceconfigs/demo.spoke-1.yaml";
    let labelled = sandbox.text(file).replace("  labels:\n", "  labels:\n    team: net\n");
    sandbox.put(file, &labelled);
    let key = (name("demo"), name("spoke-1"));
    let meta = store.read().await.unwrap().intents[&key].meta.clone();
    assert_eq!(meta.generation, 1);
    let mut other = intent("demo", "spoke-1");
    other.mesh_links = true;
    store.write_intent(&other, Some(&meta)).await.unwrap();
    assert!(sandbox.text(file).contains("team: net"), "only owned fields are written");
}

#[tokio::test]
async fn an_intent_that_claims_to_be_managed_without_identity_is_unknown() {
    let sandbox = Sandbox::declared();
    let store = sandbox.controller();
    store.write_intent(&intent("demo", "spoke-1"), None).await.unwrap();
    let file = "workersliceconfigs/demo.spoke-1.yaml";
    let stripped: String =
        sandbox.text(file).lines().filter(|line| !line.contains("uid")).flat_map(|l| [l, "\n"]).collect();
    sandbox.put(file, &stripped);
    for unreadable in [
        store.read().await.unwrap().unreadable,
        sandbox.worker().read(&name("spoke-1")).await.unwrap().unreadable,
    ] {
        assert!(unreadable[0].cause.contains("without uid and generation"), "{unreadable:?}");
    }
}

#[tokio::test]
async fn files_behind_links_are_read() {
    let sandbox = Sandbox::new();
    sandbox.put("gateways/..v1/hub-a.yaml", &gateway("hub-a"));
    std::os::unix::fs::symlink("..v1", sandbox.path("gateways/..data")).unwrap();
    std::os::unix::fs::symlink("..data/hub-a.yaml", sandbox.path("gateways/hub-a.yaml")).unwrap();
    let view = sandbox.view().await;
    assert_eq!((view.gateways.len(), view.unreadable.len()), (1, 0));
}
