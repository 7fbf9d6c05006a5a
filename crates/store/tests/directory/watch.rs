//! Watches: woken by every change, by none of their own reads, and not deaf after a folder was replaced.

use std::{fs, os::unix::fs::symlink, time::Duration};

use spanwire_engine::port::{Changes, ControllerStore};
use spanwire_store::dir::Watch;

use crate::sandbox::{NETWORK, Sandbox, gateway};

async fn wakes(watch: &mut Watch, why: &str) {
    let woken = tokio::time::timeout(Duration::from_secs(60), watch.changed()).await;
    assert!(woken.is_ok(), "not woken: {why}");
}

async fn sleeps(watch: &mut Watch, why: &str) {
    let woken = tokio::time::timeout(Duration::from_millis(150), watch.changed()).await;
    assert!(woken.is_err(), "woken: {why}");
}

/// Takes what is still on its way.
async fn calm(watch: &mut Watch) {
    while tokio::time::timeout(Duration::from_millis(100), watch.changed()).await.is_ok() {}
}

#[tokio::test]
async fn changes_of_every_sort_wake() {
    let sandbox = Sandbox::declared();
    let mut watch = sandbox.controller().watch().unwrap();
    sleeps(&mut watch, "nothing happened").await;
    sandbox.put("gateways/hub-b.yaml", &gateway("hub-b"));
    wakes(&mut watch, "a new file").await;
    calm(&mut watch).await;
    sandbox.put("gatewaynetworks/demo.yaml", &NETWORK.replace("hub-a", "hub-b"));
    wakes(&mut watch, "an edit in place").await;
    calm(&mut watch).await;
    sandbox.put("elsewhere/demo.yaml", NETWORK);
    calm(&mut watch).await;
    fs::rename(sandbox.path("elsewhere/demo.yaml"), sandbox.path("gatewaynetworks/demo.yaml")).unwrap();
    wakes(&mut watch, "an edit by rename").await;
    calm(&mut watch).await;
    fs::remove_file(sandbox.path("gateways/hub-b.yaml")).unwrap();
    wakes(&mut watch, "a deletion").await;
}

#[tokio::test]
async fn a_change_between_calls_is_not_lost() {
    let sandbox = Sandbox::declared();
    let mut watch = sandbox.controller().watch().unwrap();
    sandbox.put("gateways/hub-b.yaml", &gateway("hub-b"));
    sandbox.put("gateways/hub-c.yaml", &gateway("hub-c"));
    wakes(&mut watch, "changes before the call").await;
    sleeps(&mut watch, "several changes are one").await;
}

#[tokio::test]
async fn reading_and_neighbours_do_not_wake() {
    let sandbox = Sandbox::declared();
    let store = sandbox.controller();
    let mut watch = store.watch().unwrap();
    store.read().await.unwrap();
    calm(&mut watch).await;
    for _ in 0..3 {
        store.read().await.unwrap();
    }
    sleeps(&mut watch, "reading is no change").await;
    sandbox.put("../neighbour", "x");
    sleeps(&mut watch, "a neighbour of the store").await;
}

#[tokio::test]
async fn folders_that_come_later_are_watched() {
    let sandbox = Sandbox::new();
    let mut watch = sandbox.controller().watch().unwrap();
    for round in 0..3 {
        fs::create_dir(sandbox.path("gateways")).unwrap();
        wakes(&mut watch, "a new folder").await;
        calm(&mut watch).await;
        sandbox.put("gateways/hub-a.yaml", &gateway("hub-a"));
        wakes(&mut watch, "a file in a new folder").await;
        calm(&mut watch).await;
        fs::remove_dir_all(sandbox.path("gateways")).unwrap();
        wakes(&mut watch, &format!("the folder went, round {round}")).await;
        calm(&mut watch).await;
    }
}

#[tokio::test]
async fn a_replaced_directory_is_watched() {
    let sandbox = Sandbox::declared();
    let mut watch = sandbox.controller().watch().unwrap();
    for round in 0..3 {
        sandbox.put("../next/gateways/hub-a.yaml", &gateway("hub-a"));
        let next = sandbox.root().with_file_name("next");
        fs::rename(sandbox.root(), sandbox.root().with_file_name(format!("old-{round}"))).unwrap();
        wakes(&mut watch, "the directory went").await;
        fs::rename(next, sandbox.root()).unwrap();
        wakes(&mut watch, "another one came").await;
        calm(&mut watch).await;
        sandbox.put("gateways/hub-b.yaml", &gateway("hub-b"));
        wakes(&mut watch, &format!("a file in the new directory, round {round}")).await;
        calm(&mut watch).await;
    }
}

#[tokio::test]
async fn swapped_links_wake() {
    let sandbox = Sandbox::new();
    sandbox.put("gateways/..v1/hub-a.yaml", &gateway("hub-a"));
    symlink("..v1", sandbox.path("gateways/..data")).unwrap();
    symlink("..data/hub-a.yaml", sandbox.path("gateways/hub-a.yaml")).unwrap();
    let mut watch = sandbox.controller().watch().unwrap();
    sandbox.put("gateways/..v2/hub-a.yaml", &gateway("hub-a").replace("10.1.", "10.2."));
    calm(&mut watch).await;
    symlink("..v2", sandbox.path("gateways/..next")).unwrap();
    fs::rename(sandbox.path("gateways/..next"), sandbox.path("gateways/..data")).unwrap();
    wakes(&mut watch, "a mounted ConfigMap was swapped").await;
    let view = sandbox.view().await;
    assert_eq!(view.gateways.values().next().unwrap().subnets, ["10.2.0.0/24"]);
}

#[tokio::test]
async fn a_file_that_stays_away_wakes_once_more() {
    let sandbox = Sandbox::declared();
    let store = sandbox.controller();
    let mut watch = store.watch().unwrap();
    store.read().await.unwrap();
    calm(&mut watch).await;
    fs::remove_file(sandbox.path("gatewaynetworks/demo.yaml")).unwrap();
    wakes(&mut watch, "the file went").await;
    let view = store.read().await.unwrap();
    assert_eq!((view.networks.len(), view.unreadable.len()), (0, 1), "unknown");
    wakes(&mut watch, "it stayed away").await;
    let view = store.read().await.unwrap();
    assert_eq!((view.networks.len(), view.unreadable.len()), (0, 0), "deleted");
}
