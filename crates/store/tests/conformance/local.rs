//! A worker's own records.

use spanwire_engine::{
    LinkRole,
    port::{LocalStore, Written},
    worker::{RecordStep, Recorded},
};

use crate::support::{
    Place,
    values::{applied, link, name},
};

async fn filled<P: Place>(place: &P) -> P::Local {
    let store = place.local();
    for step in steps() {
        assert_eq!(store.apply(&step).await.unwrap(), Written::Changed);
    }
    store
}

fn steps() -> Vec<RecordStep> {
    let links = LinkRole::ALL.map(|role| RecordStep::Link(Box::new(link("hub-a", role))));
    [RecordStep::Intent(Box::new(applied()))].into_iter().chain(links).collect()
}

fn expected() -> Recorded {
    let links = LinkRole::ALL.map(|role| link("hub-a", role));
    Recorded {
        intents: [(name("demo"), applied())].into(),
        links: links.into_iter().map(|link| (link.id.clone(), link)).collect(),
        unreadable: Vec::new(),
    }
}

pub(crate) async fn records_round_trip<P: Place>(place: &P) {
    assert_eq!(place.local().read().await.unwrap(), Recorded::default());
    let store = filled(place).await;
    assert_eq!(store.read().await.unwrap(), expected());
    assert_eq!(place.local().read().await.unwrap(), expected(), "after a restart, too");
}

pub(crate) async fn repeated_steps_write_nothing<P: Place>(place: &P) {
    let store = filled(place).await;
    for step in steps() {
        assert_eq!(store.apply(&step).await.unwrap(), Written::Same, "{step:?}");
    }
}

pub(crate) async fn forgotten_records_are_gone<P: Place>(place: &P) {
    let store = filled(place).await;
    let forget = RecordStep::ForgetLink(link("hub-a", LinkRole::Mesh).id);
    assert_eq!(store.apply(&forget).await.unwrap(), Written::Changed);
    assert_eq!(store.apply(&forget).await.unwrap(), Written::Same);
    let mut left = expected();
    left.links.remove(&link("hub-a", LinkRole::Mesh).id);
    assert_eq!(store.read().await.unwrap(), left);
    let forget = RecordStep::ForgetIntent(name("demo"));
    assert_eq!(store.apply(&forget).await.unwrap(), Written::Changed);
    assert_eq!(store.apply(&forget).await.unwrap(), Written::Same);
    left.intents.clear();
    assert_eq!(store.read().await.unwrap(), left);
}

pub(crate) async fn link_status_moves_alone<P: Place>(place: &P) {
    let store = filled(place).await;
    let mut changed = link("hub-a", LinkRole::Uplink);
    changed.status.connected_once = false;
    changed.status.unwanted_since = None;
    let step = RecordStep::Link(Box::new(changed.clone()));
    assert_eq!(store.apply(&step).await.unwrap(), Written::Changed);
    assert_eq!(store.read().await.unwrap().links[&changed.id], changed);
    changed.endpoint = None;
    changed.allowed_ips.clear();
    assert_eq!(store.apply(&RecordStep::Link(Box::new(changed.clone()))).await.unwrap(), Written::Changed);
    assert_eq!(store.read().await.unwrap().links[&changed.id], changed);
}
