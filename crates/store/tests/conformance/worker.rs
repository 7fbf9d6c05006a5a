//! The control store as a worker sees it.

use spanwire_engine::{
    GatewayName, Intent, NetworkName, WorkerStatus,
    port::{Changes, ControllerStore, WorkerStore, Written},
};

use crate::support::{
    Place, eventually,
    values::{facts, gateway_fields, gateway_yaml, intent, intent_yaml, name, worker_status},
};

pub(crate) async fn worker_sees_its_own_intents_alone<P: Place>(place: &P) {
    let store = place.controller();
    let mut other = intent(None);
    other.gateway = name("hub-a");
    store.write_intent(&intent(None), None).await.unwrap();
    store.write_intent(&other, None).await.unwrap();
    let view = place.worker().read(&name("spoke-1")).await.unwrap();
    let intents: Vec<_> = view.intents.values().map(|(stored, _)| stored.value.clone()).collect();
    assert_eq!(intents, [intent(None)]);
    let meta = &view.intents[&name::<NetworkName>("demo")].0.meta;
    let listed = &store.read().await.unwrap().intents[&(name("demo"), name("spoke-1"))].meta;
    assert_eq!(meta, listed, "both roles see the same versions");
}

pub(crate) async fn facts_are_seen_by_everybody<P: Place>(place: &P) {
    let (worker, hub) = (place.worker(), name::<GatewayName>("hub-a"));
    place.apply(&gateway_yaml("hub-a", "10.1.0.0/24")).await;
    assert_eq!(worker.write_gateway_facts(&hub, &facts()).await.unwrap(), Written::Changed);
    assert_eq!(worker.write_gateway_facts(&hub, &facts()).await.unwrap(), Written::Same);
    let expected = (vec!["10.1.0.0/24".to_owned()], facts());
    let controller = place.controller().read().await.unwrap();
    assert_eq!(gateway_fields(&controller.gateways[&hub]), expected);
    let peer = place.worker().read(&name("spoke-1")).await.unwrap();
    assert_eq!(gateway_fields(&peer.gateways[&hub]), expected);
    assert_eq!(peer.gateways[&hub], controller.gateways[&hub], "both roles see the same");
}

pub(crate) async fn facts_of_an_unknown_gateway_are_refused<P: Place>(place: &P) {
    place.controller().read().await.unwrap();
    assert!(place.worker().write_gateway_facts(&name("ghost"), &facts()).await.is_err());
    assert!(place.controller().read().await.unwrap().gateways.is_empty());
}

pub(crate) async fn status_round_trips_and_is_joined<P: Place>(place: &P) {
    let (store, worker) = (place.controller(), place.worker());
    let (demo, spoke) = (name::<NetworkName>("demo"), name::<GatewayName>("spoke-1"));
    store.write_intent(&intent(None), None).await.unwrap();
    let seen = worker.read(&spoke).await.unwrap().intents[&demo].clone();
    assert_eq!(seen.1, WorkerStatus::default());
    let write = || worker.write_intent_status(&spoke, &demo, &SAID, &seen.0.meta);
    assert_eq!(write().await.unwrap(), Written::Changed);
    assert_eq!(write().await.unwrap(), Written::Same);
    assert_eq!(worker.read(&spoke).await.unwrap().intents[&demo].1, *SAID);
    let joined = store.read().await.unwrap().intents[&(demo.clone(), spoke.clone())].clone();
    assert_eq!((joined.status, joined.meta.generation), (SAID.clone(), 1));
}

static SAID: std::sync::LazyLock<WorkerStatus> = std::sync::LazyLock::new(|| worker_status(1));

pub(crate) async fn status_of_another_object_is_a_conflict<P: Place>(place: &P) {
    let (store, worker) = (place.controller(), place.worker());
    let (demo, spoke) = (name::<NetworkName>("demo"), name::<GatewayName>("spoke-1"));
    store.write_intent(&intent(None), None).await.unwrap();
    let old = worker.read(&spoke).await.unwrap().intents[&demo].0.meta.clone();
    store.delete_intent(&demo, &spoke, &old).await.unwrap();
    let gone = worker.write_intent_status(&spoke, &demo, &SAID, &old).await.unwrap_err();
    assert!(P::is_conflict(&gone), "{gone}");
    store.write_intent(&intent(None), None).await.unwrap();
    let another = worker.write_intent_status(&spoke, &demo, &SAID, &old).await.unwrap_err();
    assert!(P::is_conflict(&another), "{another}");
}

/// P9, and the identity of what people or other controllers write.
pub(crate) async fn bare_intent_of_another_controller_is_read<P: Place>(place: &P) {
    let (worker, spoke, demo) = (place.worker(), name::<GatewayName>("spoke-1"), name::<NetworkName>("demo"));
    place.apply(&intent_yaml("demo", "spoke-1", "[hub-a, hub-b]")).await;
    let first = worker.read(&spoke).await.unwrap().intents[&demo].0.clone();
    let peers = Some(vec!["hub-a".to_owned(), "hub-b".to_owned()]);
    assert_eq!(first.value, Intent::bare(demo.clone(), spoke.clone(), peers));
    assert_eq!(first.meta.generation, 1);
    assert!(!first.meta.uid.0.is_empty());
    assert_eq!(worker.read(&spoke).await.unwrap().intents[&demo].0, first, "reading again changes nothing");
    worker.write_intent_status(&spoke, &demo, &SAID, &first.meta).await.unwrap();
    place.apply(&intent_yaml("demo", "spoke-1", "[]")).await;
    let (second, status) = worker.read(&spoke).await.unwrap().intents[&demo].clone();
    assert_eq!((second.meta.uid, second.meta.generation), (first.meta.uid, 2));
    assert_eq!(second.value.peers, Some(Vec::new()));
    assert_eq!(status, *SAID, "what was said before stays until it is said anew");
    place.apply(&intent_yaml("demo", "spoke-1", "null")).await;
    let third = worker.read(&spoke).await.unwrap().intents[&demo].0.clone();
    assert_eq!((third.value.peers, third.meta.generation), (None, 3), "P7");
}

pub(crate) async fn deleted_intent_disappears<P: Place>(place: &P) {
    let (worker, spoke, demo) = (place.worker(), name::<GatewayName>("spoke-1"), name::<NetworkName>("demo"));
    place.apply(&intent_yaml("demo", "spoke-1", "[hub-a]")).await;
    let first = worker.read(&spoke).await.unwrap().intents[&demo].0.meta.clone();
    place.delete("workersliceconfigs", "demo.spoke-1").await;
    eventually("the intent counts as deleted", async || {
        let view = worker.read(&spoke).await.unwrap();
        (view.intents.is_empty() && view.unreadable.is_empty()).then_some(())
    })
    .await;
    place.apply(&intent_yaml("demo", "spoke-1", "[hub-a]")).await;
    let again = worker.read(&spoke).await.unwrap().intents[&demo].0.meta.clone();
    assert!(again.uid.is_another_than(&first.uid));
}

pub(crate) async fn watches_wake<P: Place>(place: &P) {
    let (store, worker) = (place.controller(), place.worker());
    let mut watch = place.watch(&worker);
    for round in 0..3u32 {
        let peers = (0..round).map(|peer| format!("peer-{peer}")).collect();
        let view = store.read().await.unwrap();
        let meta = view.intents.values().next().map(|view| view.meta.clone());
        store.write_intent(&intent(Some(peers)), meta.as_ref()).await.unwrap();
        let woken = tokio::time::timeout(std::time::Duration::from_secs(60), watch.changed()).await;
        assert!(woken.is_ok(), "round {round}");
    }
}
