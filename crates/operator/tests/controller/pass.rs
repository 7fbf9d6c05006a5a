//! Controller passes over a twin of the store: order of writes, conflicts, failures. They refuse to test what is decided:
//! the engine's tests do.

use spanwire::{
    clock::Clock,
    controller::{Controller, backends::Backends},
    driver::{Outcome, Reconciler as _},
    events::Events,
    health::Health,
    metrics::changes::Networks,
};
use spanwire_engine::{
    Gateway, GatewayName, LinkState, Meta, NetworkName, NetworkSpec, NetworkStatus, PeerStatus, PublicKey,
    Reason, RouteState, Uid,
    port::{ControlView, NetworkView},
};

use crate::store::ControlTwin;

fn meta(version: &str) -> Meta {
    Meta { uid: Uid(version.into()), generation: 1, resource_version: version.into() }
}

fn name(text: &str) -> NetworkName {
    text.parse().unwrap()
}

fn add_network(view: &mut ControlView, network: &str, cidr: &str, hub: &str) {
    let spec = NetworkSpec {
        topology: "hub-spoke".into(),
        hub: Some(hub.into()),
        members: ["hub-a", "hub-b", "spoke-1"].map(str::to_owned).into(),
        cidr: cidr.into(),
        ..NetworkSpec::default()
    };
    let network_view = NetworkView { meta: meta(network), spec, status: NetworkStatus::default() };
    view.networks.insert(name(network), network_view);
}

/// Three gateways, and the network `demo` around hub-a.
fn store() -> ControlTwin {
    let twin = ControlTwin::default();
    let mut state = twin.0.lock().unwrap();
    for (gateway, number) in ["hub-a", "hub-b", "spoke-1"].into_iter().zip(1u8..) {
        let mut object = Gateway { meta: meta(gateway), ..Gateway::default() };
        object.subnets = vec![format!("10.{number}.0.0/16")];
        object.facts.public_key = Some(PublicKey([number; 32]).to_string());
        object.facts.key_generation = 1;
        object.facts.endpoint = Some(format!("192.0.2.{number}"));
        state.view.gateways.insert(gateway.parse::<GatewayName>().unwrap(), object);
    }
    add_network(&mut state.view, "demo", "10.99.0.0/24", "hub-a");
    drop(state);
    twin
}

async fn pass(twin: &ControlTwin) -> Outcome {
    controller(twin, Events::none()).pass().await
}

fn controller(twin: &ControlTwin, events: Events) -> Controller<ControlTwin> {
    Controller {
        store: twin.clone(),
        clock: Clock::new().unwrap(),
        events,
        health: Health::of_controller(),
        networks: Networks::default(),
        backends: Backends::default(),
    }
}

fn log(twin: &ControlTwin) -> Vec<String> {
    std::mem::take(&mut twin.0.lock().unwrap().log)
}

/// What a worker does at any time: its status moves the object's version, not its generation.
fn worker_reports(view: &mut ControlView) {
    for standing in view.intents.values_mut() {
        standing.meta.resource_version.push('w');
        standing.status.peers = vec![PeerStatus {
            peer: "hub-b".into(),
            role: None,
            state: LinkState::Pending,
            route: RouteState::None,
            reason: Reason::WaitingForPeer,
            message: String::new(),
            last_transition: String::new(),
        }];
    }
}

#[tokio::test]
async fn status_comes_first_and_v8_the_second_pass_writes_nothing() {
    let twin = store();
    let first = pass(&twin).await;
    assert!(first.faults.is_empty(), "{:?}", first.faults);
    let writes = log(&twin);
    assert_eq!(writes[0], "status demo");
    assert_eq!(writes.iter().filter(|write| write.starts_with("intent")).count(), 3, "{writes:?}");
    let addresses = writes.iter().rposition(|write| write.starts_with("networks")).unwrap();
    assert!(addresses < writes.iter().position(|write| write.starts_with("intent")).unwrap(), "{writes:?}");
    for _ in 0..2 {
        let again = pass(&twin).await;
        assert!(again.faults.is_empty());
    }
    log(&twin);
    assert!(pass(&twin).await.ledger.is_empty());
    assert_eq!(log(&twin), Vec::<String>::new());
}

#[tokio::test]
async fn v6_a_store_that_does_not_answer_gives_no_verdict() {
    let twin = store();
    twin.0.lock().unwrap().down = true;
    let outcome = pass(&twin).await;
    assert!(outcome.faults[0].message.contains("does not answer"), "{outcome:?}");
    twin.0.lock().unwrap().down = false;
    assert_eq!(twin.0.lock().unwrap().view.networks[&name("demo")].status, NetworkStatus::default());
    assert!(pass(&twin).await.faults.is_empty());
}

#[tokio::test]
async fn w9_an_intent_is_written_over_a_status_that_moved_under_it() {
    let twin = store();
    let _ = pass(&twin).await;
    let _ = pass(&twin).await;
    log(&twin);
    {
        let mut state = twin.0.lock().unwrap();
        let network = state.view.networks.get_mut(&name("demo")).unwrap();
        network.spec.hub = Some("hub-b".into());
        network.meta.generation += 1;
        network.meta.resource_version = "edited".into();
        state.before_intent = Some(Box::new(worker_reports));
    }
    let outcome = pass(&twin).await;
    assert!(outcome.faults.is_empty(), "{outcome:?}");
    assert!(log(&twin).iter().any(|write| write == "intent demo.spoke-1"));
}

#[tokio::test]
async fn w14_nothing_is_published_once_another_controller_moved_the_change() {
    let twin = store();
    let _ = pass(&twin).await;
    let _ = pass(&twin).await;
    log(&twin);
    {
        let mut state = twin.0.lock().unwrap();
        let network = state.view.networks.get_mut(&name("demo")).unwrap();
        network.spec.hub = Some("hub-b".into());
        network.meta.generation += 1;
        network.meta.resource_version = "edited".into();
        state.before_intent = Some(Box::new(|view: &mut ControlView| {
            worker_reports(view);
            view.networks.get_mut(&name("demo")).unwrap().status.change = None;
        }));
    }
    let outcome = pass(&twin).await;
    assert_eq!(outcome.faults.len(), 1, "{outcome:?}");
    assert_eq!(log(&twin), ["status demo"]);
}

#[tokio::test]
async fn v15_one_network_that_conflicts_does_not_hold_up_the_other() {
    let twin = store();
    {
        let mut state = twin.0.lock().unwrap();
        add_network(&mut state.view, "other", "10.98.0.0/24", "hub-b");
        state.before_intent = Some(Box::new(|view: &mut ControlView| {
            view.networks.get_mut(&name("demo")).unwrap().status.change = None;
            let mut foreign = view.networks[&name("demo")].clone();
            foreign.spec.members.clear();
            let intent = spanwire_engine::Intent::bare(name("demo"), "hub-a".parse().unwrap(), None);
            let standing = spanwire_engine::port::controller_store::IntentView {
                meta: meta("foreign"),
                intent,
                status: spanwire_engine::WorkerStatus::default(),
                managed: false,
                deleting: None,
            };
            view.intents.insert((name("demo"), "hub-a".parse().unwrap()), standing);
        }));
    }
    let outcome = pass(&twin).await;
    assert_eq!(outcome.faults.len(), 1, "{outcome:?}");
    let writes = log(&twin);
    assert_eq!(writes.iter().filter(|write| write.starts_with("intent other.")).count(), 3, "{writes:?}");
}

/// Passes of one controller until one writes nothing; what it told, as object and reason.
async fn told(twin: &ControlTwin) -> Vec<(String, &'static str)> {
    let (events, mut receiver) = Events::channel();
    let mut controller = controller(twin, events);
    while !controller.pass().await.ledger.is_empty() {}
    drop(controller);
    let mut told = Vec::new();
    while let Some(happening) = receiver.recv().await {
        told.push((format!("{} {}", happening.kind, happening.name), happening.reason));
    }
    told
}

#[tokio::test]
async fn a_deadline_of_a_teardown_that_passed_is_told_once_and_one_that_was_kept_is_not() {
    let twin = store();
    let network = || "GatewayNetwork demo".to_owned();
    assert_eq!(told(&twin).await, [(network(), "Valid")]);
    let deletes = |minutes: u64| {
        let mut state = twin.0.lock().unwrap();
        for ((_, gateway), standing) in &mut state.view.intents {
            if gateway.as_str() == "spoke-1" {
                standing.intent = standing.intent.teardown();
                standing.deleting = Some(std::time::Duration::from_secs(60 * minutes));
            }
        }
    };
    deletes(9);
    assert_eq!(told(&twin).await, []);
    deletes(11);
    assert_eq!(told(&twin).await, [(network(), "TeardownDeadlinePassed")]);
    deletes(9);
    {
        let mut state = twin.0.lock().unwrap();
        state.view.networks.clear();
        state.view.intents.retain(|(_, gateway), _| gateway.as_str() == "spoke-1");
    }
    deletes(11);
    let intent = "WorkerSliceConfig demo.spoke-1".to_owned();
    assert_eq!(told(&twin).await, [(intent, "TeardownDeadlinePassed")], "its network is gone");
}
