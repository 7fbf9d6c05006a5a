//! Intents as the controller writes them.

use spanwire_engine::{
    Intent, WorkerStatus,
    port::{ControllerStore, WorkerStore, Written, controller_store::IntentView},
};

use crate::support::{
    Place,
    values::{intent, intent_yaml, name, worker_status},
};

async fn only<P: Place>(store: &P::Controller) -> IntentView {
    let view = store.read().await.unwrap();
    assert_eq!(view.unreadable, []);
    view.intents.into_values().next().unwrap()
}

pub(crate) async fn intent_round_trips_in_every_form<P: Place>(place: &P) {
    let store = place.controller();
    let peers = |names: &[&str]| Some(names.iter().map(|&name| name.to_owned()).collect());
    let bare = Intent::bare(name("demo"), name("spoke-1"), None);
    let mut expected = None;
    let ghost = "no name, but somebody wrote it";
    for wanted in [intent(None), intent(peers(&[])), intent(peers(&["hub-a", ghost, "hub-a"])), bare] {
        assert_eq!(store.write_intent(&wanted, expected.as_ref()).await.unwrap(), Written::Changed);
        let view = only::<P>(&store).await;
        assert_eq!(view.intent, wanted);
        assert!(view.managed);
        expected = Some(view.meta);
    }
}

pub(crate) async fn intents_are_written_against_what_was_read<P: Place>(place: &P) {
    let store = place.controller();
    let (one, two) = (intent(None), intent(Some(vec!["hub-a".into()])));
    store.write_intent(&one, None).await.unwrap();
    let first = only::<P>(&store).await.meta;
    assert_eq!(first.generation, 1);
    assert!(P::is_conflict(&store.write_intent(&two, None).await.unwrap_err()), "it exists");
    assert_eq!(store.write_intent(&one, Some(&first)).await.unwrap(), Written::Same);
    assert_eq!(only::<P>(&store).await.meta, first);
    store.write_intent(&two, Some(&first)).await.unwrap();
    let second = only::<P>(&store).await.meta;
    assert_eq!((second.uid.clone(), second.generation), (first.uid.clone(), 2));
    let error = store.write_intent(&one, Some(&first)).await.unwrap_err();
    assert!(P::is_conflict(&error), "W14: what was planned from an older version is not written: {error}");
    assert_eq!(only::<P>(&store).await.intent, two);
}

pub(crate) async fn intents_are_deleted_against_their_uid<P: Place>(place: &P) {
    let store = place.controller();
    store.write_intent(&intent(None), None).await.unwrap();
    let meta = only::<P>(&store).await.meta;
    let mut other = meta.clone();
    other.uid.0.push('x');
    let (demo, spoke) = (name("demo"), name("spoke-1"));
    assert!(P::is_conflict(&store.delete_intent(&demo, &spoke, &other).await.unwrap_err()));
    assert_eq!(store.delete_intent(&demo, &spoke, &meta).await.unwrap(), Written::Changed);
    assert_eq!(
        store.delete_intent(&demo, &spoke, &meta).await.unwrap(),
        Written::Same,
        "V11: gone is no error"
    );
    assert!(store.read().await.unwrap().intents.is_empty());
    assert!(P::is_conflict(&store.write_intent(&intent(None), Some(&meta)).await.unwrap_err()));
}

/// N8 needs another UID, and a barrier must not take an old status for the new object's.
pub(crate) async fn recreated_intent_has_no_status<P: Place>(place: &P) {
    let (store, worker) = (place.controller(), place.worker());
    let (demo, spoke) = (name("demo"), name("spoke-1"));
    store.write_intent(&intent(None), None).await.unwrap();
    let old = only::<P>(&store).await.meta;
    worker.write_intent_status(&spoke, &demo, &worker_status(1), &old).await.unwrap();
    assert_eq!(only::<P>(&store).await.status, worker_status(1));
    store.delete_intent(&demo, &spoke, &old).await.unwrap();
    store.write_intent(&intent(None), None).await.unwrap();
    let new = only::<P>(&store).await;
    assert!(new.meta.uid.is_another_than(&old.uid));
    assert_eq!((new.meta.generation, new.status), (1, WorkerStatus::default()));
    let seen = worker.read(&spoke).await.unwrap();
    assert_eq!(seen.intents[&demo].1, WorkerStatus::default());
}

pub(crate) async fn intents_of_others_are_left_alone<P: Place>(place: &P) {
    let (store, worker) = (place.controller(), place.worker());
    place.apply(&intent_yaml("demo", "spoke-1", "[hub-a]")).await;
    worker.read(&name("spoke-1")).await.unwrap();
    let foreign = only::<P>(&store).await;
    assert!(!foreign.managed);
    assert!(store.write_intent(&intent(None), Some(&foreign.meta)).await.is_err());
    assert!(store.delete_intent(&name("demo"), &name("spoke-1"), &foreign.meta).await.is_err());
    assert_eq!(only::<P>(&store).await, foreign);
}
