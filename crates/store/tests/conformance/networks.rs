//! Networks and gateways as the controller sees them.

use std::collections::BTreeMap;

use spanwire_engine::{
    GatewayName, NetworkName, NetworkStatus,
    port::{ControllerStore, Written, controller_store::NetworkView},
};

use crate::support::{
    Place, eventually,
    values::{gateway_yaml, name, network_status, network_yaml},
};

async fn network<P: Place>(store: &P::Controller) -> NetworkView {
    store.read().await.unwrap().networks[&name::<NetworkName>("demo")].clone()
}

async fn declared<P: Place>(place: &P) -> P::Controller {
    place.apply(&gateway_yaml("hub-a", "10.1.0.0/24")).await;
    place.apply(&network_yaml("demo", "hub-a")).await;
    place.controller()
}

pub(crate) async fn empty_store_is_empty<P: Place>(place: &P) {
    let view = place.controller().read().await.unwrap();
    assert!(view.gateways.is_empty() && view.networks.is_empty() && view.intents.is_empty());
    assert_eq!(view.unreadable, []);
}

pub(crate) async fn declared_objects_get_an_identity_once<P: Place>(place: &P) {
    let store = declared(place).await;
    let first = store.read().await.unwrap();
    let gateway = &first.gateways[&name::<GatewayName>("hub-a")];
    let network = &first.networks[&name::<NetworkName>("demo")];
    assert_eq!((gateway.meta.generation, network.meta.generation), (1, 1));
    assert!(!gateway.meta.uid.0.is_empty() && gateway.meta.uid != network.meta.uid);
    assert_eq!(gateway.subnets, ["10.1.0.0/24"]);
    assert_eq!(network.spec.hub.as_deref(), Some("hub-a"));
    assert_eq!(store.read().await.unwrap(), first, "reading again changes nothing");
    assert_eq!(place.controller().read().await.unwrap(), first, "nor does a restart");
}

pub(crate) async fn edits_count_and_labels_do_not<P: Place>(place: &P) {
    let store = declared(place).await;
    let first = network::<P>(&store).await.meta;
    place.apply(&network_yaml("demo", "hub-b")).await;
    let second = network::<P>(&store).await.meta;
    assert_eq!((second.uid.clone(), second.generation), (first.uid.clone(), 2));
    assert_ne!(second.resource_version, first.resource_version);
    let labelled = network_yaml("demo", "hub-b").replace("{name: demo}", "{name: demo, labels: {a: b}}");
    place.apply(&labelled).await;
    assert_eq!(network::<P>(&store).await.meta.generation, 2, "a label is no change of the spec");
    place.apply(&network_yaml("demo", "hub-a")).await;
    assert_eq!(network::<P>(&store).await.meta.generation, 3, "going back is a change");
}

pub(crate) async fn status_round_trips_and_repeats_are_not_written<P: Place>(place: &P) {
    let store = declared(place).await;
    let demo = name("demo");
    let before = network::<P>(&store).await;
    assert_eq!(before.status, NetworkStatus::default());
    let written = store.write_network_status(&demo, &network_status(), &before.meta).await;
    assert_eq!(written.unwrap(), Written::Changed);
    let after = network::<P>(&store).await;
    assert_eq!(after.status, network_status());
    assert_eq!((after.meta.uid.clone(), after.meta.generation), (before.meta.uid, 1), "a status is no spec");
    let repeated = store.write_network_status(&demo, &network_status(), &after.meta).await;
    assert_eq!(repeated.unwrap(), Written::Same);
    assert_eq!(network::<P>(&store).await.meta, after.meta);
}

pub(crate) async fn stale_status_is_a_conflict<P: Place>(place: &P) {
    let store = declared(place).await;
    let stale = network::<P>(&store).await.meta;
    place.apply(&network_yaml("demo", "hub-b")).await;
    let error = store.write_network_status(&name("demo"), &network_status(), &stale).await.unwrap_err();
    assert!(P::is_conflict(&error), "{error}");
    let fresh = network::<P>(&store).await;
    assert_eq!(fresh.status, NetworkStatus::default(), "nothing was written");
    store.write_network_status(&name("demo"), &network_status(), &fresh.meta).await.unwrap();
    let missing =
        store.write_network_status(&name("ghost"), &network_status(), &fresh.meta).await.unwrap_err();
    assert!(P::is_conflict(&missing), "{missing}");
}

pub(crate) async fn recreated_network_is_another_one<P: Place>(place: &P) {
    let store = declared(place).await;
    let old = network::<P>(&store).await.meta;
    store.write_network_status(&name("demo"), &network_status(), &old).await.unwrap();
    place.delete("gatewaynetworks", "demo").await;
    eventually("the network counts as deleted", async || {
        let view = store.read().await.unwrap();
        (view.networks.is_empty() && view.unreadable.is_empty()).then_some(())
    })
    .await;
    place.apply(&network_yaml("demo", "hub-a")).await;
    let new = network::<P>(&store).await;
    assert!(new.meta.uid.is_another_than(&old.uid));
    assert_eq!((new.meta.generation, new.status), (1, NetworkStatus::default()));
    let error = store.write_network_status(&name("demo"), &network_status(), &old).await.unwrap_err();
    assert!(P::is_conflict(&error), "{error}");
}

pub(crate) async fn gateway_networks_are_published<P: Place>(place: &P) {
    let store = declared(place).await;
    let hub: GatewayName = name("hub-a");
    let uid = store.read().await.unwrap().gateways[&hub].meta.uid.clone();
    let networks: BTreeMap<NetworkName, _> =
        [(name("demo"), Some("10.9.0.1".parse().unwrap())), (name("waiting"), None)].into();
    assert_eq!(store.write_gateway_networks(&hub, &networks).await.unwrap(), Written::Changed);
    assert_eq!(store.write_gateway_networks(&hub, &networks).await.unwrap(), Written::Same);
    let gateway = store.read().await.unwrap().gateways[&hub].clone();
    assert_eq!((gateway.networks, gateway.meta.uid, gateway.meta.generation), (networks.clone(), uid, 1));
    assert!(store.write_gateway_networks(&name("ghost"), &networks).await.is_err());
}

/// Writers that all read before any writes: one wins, the others hear of it, and after reading again all get through.
pub(crate) async fn many_writers_lose_no_update<P: Place>(place: &P) {
    let store = declared(place).await;
    network::<P>(&store).await;
    let writers: Vec<_> = (0..8).map(|_| tokio::spawn(count_up::<P>(store.clone()))).collect();
    for writer in writers {
        writer.await.unwrap();
    }
    assert_eq!(network::<P>(&store).await.status.edges.desired, 80);
}

/// Adds one to a number in the status, ten times.
async fn count_up<P: Place>(store: P::Controller) {
    let demo: NetworkName = name("demo");
    for _ in 0..10 {
        loop {
            let view = store.read().await.unwrap();
            let NetworkView { meta, spec: _, mut status } = view.networks[&demo].clone();
            status.edges.desired += 1;
            match store.write_network_status(&demo, &status, &meta).await {
                Ok(_) => break,
                Err(error) => assert!(P::is_conflict(&error), "{error}"),
            }
        }
    }
}
