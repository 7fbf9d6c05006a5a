//! What is known, against answers and events in any order. It refuses a server.

use serde_json::json;
use spanwire_api::GatewaySpec;

use super::*;

fn gateway(version: u32) -> DynamicObject {
    let text = json!({
        "apiVersion": "spanwire.dev/v1alpha1", "kind": "Gateway", "spec": {"subnets": ["10.1.0.0/24"]},
        "metadata": {"name": "a", "uid": "u", "resourceVersion": version.to_string()},
    });
    serde_json::from_value(text).unwrap()
}

fn shared() -> Shared<GatewaySpec> {
    let state = State {
        objects: BTreeMap::new(),
        listed: None,
        complete: true,
        fault: None,
        removals: BTreeMap::new(),
        lists: 1,
    };
    let (settled, news) = (watch::Sender::new(()), watch::Sender::new(()));
    Shared { state: Mutex::new(state), settled, news }
}

fn version(shared: &Shared<GatewaySpec>) -> Option<String> {
    shared.lock().objects.get("a").map(|held| held.version().to_owned())
}

#[test]
fn an_answer_does_not_bring_back_what_was_seen_to_go() {
    let shared = shared();
    shared.take(watcher::Event::Apply(gateway(5)));
    let since = shared.lock().moment("a");
    shared.take(watcher::Event::Delete(gateway(7)));
    shared.put(gateway(6), Freshness::Answer(since));
    assert_eq!(version(&shared), None);
    let since = shared.lock().moment("a");
    shared.take(watcher::Event::Init);
    shared.take(watcher::Event::InitDone);
    shared.put(gateway(8), Freshness::Answer(since));
    assert_eq!(version(&shared), None, "nor what a list lacks that was made meanwhile");
    let since = shared.lock().moment("a");
    shared.put(gateway(9), Freshness::Answer(since));
    assert_eq!(version(&shared), Some("9".to_owned()), "what is made anew counts at once");
}

#[test]
fn an_answer_counts_until_the_watch_shows_something_newer() {
    let shared = shared();
    shared.take(watcher::Event::Apply(gateway(5)));
    let since = shared.lock().moment("a");
    shared.put(gateway(6), Freshness::Answer(since));
    shared.take(watcher::Event::Apply(gateway(5)));
    assert_eq!(version(&shared), Some("6".to_owned()));
    shared.take(watcher::Event::Apply(gateway(10)));
    assert_eq!(version(&shared), Some("10".to_owned()));
}
