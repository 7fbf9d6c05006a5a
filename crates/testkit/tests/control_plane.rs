//! Control planes for tests: what they promise to those who lean on them. It refuses to test Kubernetes.
#![cfg(feature = "control-plane")]
#![allow(clippy::unwrap_used, reason = "a test may fail here")]

use std::{net::SocketAddr, time::Duration};

use k8s_openapi::api::core::v1::{ConfigMap, Namespace};
use kube::{
    Api, Client,
    api::{ListParams, PostParams},
};
use spanwire_testkit::{
    control_plane::{ADMIN, ControlPlane, ControlPlaneError, Options},
    lab::{Lab, LabError},
};

fn maps(client: &Client, namespace: &str) -> Api<ConfigMap> {
    Api::namespaced(client.clone(), namespace)
}

async fn put(client: &Client, namespace: &str, name: &str) -> Result<ConfigMap, kube::Error> {
    let mut map = ConfigMap::default();
    map.metadata.name = Some(name.to_owned());
    maps(client, namespace).create(&PostParams::default(), &map).await
}

async fn names(client: &Client, namespace: &str) -> Vec<String> {
    let listed = maps(client, namespace).list(&ListParams::default()).await.unwrap();
    listed.items.into_iter().filter_map(|map| map.metadata.name).collect()
}

#[tokio::test]
async fn every_request_stands_in_the_ledger_with_who_asked_and_how_it_ended() {
    let Some(control) = ControlPlane::shared() else { return };
    control.namespace("ledger").await.unwrap();
    let user = control.service_account("ledger", "somebody", 600).await.unwrap();
    let (admin, somebody) = (control.client(ADMIN).await.unwrap(), control.client(&user).await.unwrap());
    let mark = control.mark().unwrap();
    put(&admin, "ledger", "one").await.unwrap();
    put(&admin, "ledger", "one").await.unwrap_err();
    put(&somebody, "ledger", "two").await.unwrap_err();
    let rows = control.ledger_since(mark).unwrap();
    let here = rows.iter().filter(|row| row.namespace == "ledger");
    let seen: Vec<_> =
        here.map(|row| (row.verb.as_str(), row.target(), row.user.clone(), row.code)).collect();
    let row = |user: &str, code| ("create", "configmaps".to_owned(), user.to_owned(), code);
    assert_eq!(seen, [row(ADMIN, 201), row(ADMIN, 409), row(&user, 403)]);
    assert!(control.ledger().unwrap().len() > rows.len());
}

#[tokio::test]
async fn a_user_without_a_binding_is_known_and_may_nothing_and_another_is_unknown() {
    let Some(control) = ControlPlane::own(Options::named("users").users(&["w1"])) else { return };
    let w1 = control.client("w1").await.unwrap();
    let refusal = put(&w1, "default", "x").await.unwrap_err().to_string();
    assert!(refusal.contains("User \"w1\" cannot create resource"), "{refusal}");
    assert!(matches!(control.client("w2").await, Err(ControlPlaneError::UnknownUser { .. })));
    let kubeconfig = std::fs::read_to_string(control.kubeconfig_file("w1").unwrap()).unwrap();
    assert!(kubeconfig.contains("current-context: users") && kubeconfig.contains(&control.url()));
}

#[tokio::test(flavor = "multi_thread")]
async fn outages_end_where_they_began_and_a_snapshot_forgets_what_came_after() {
    let Some(control) = ControlPlane::own(Options::default()) else { return };
    let client = control.client(ADMIN).await.unwrap();
    put(&client, "default", "before").await.unwrap();
    let url = control.url();
    control.stop_api_server().unwrap();
    assert!(put(&client, "default", "lost").await.is_err());
    control.start_api_server().unwrap();
    assert_eq!(control.url(), url);
    put(&client, "default", "kept").await.unwrap();
    control.stop_etcd().unwrap();
    let answer = tokio::time::timeout(Duration::from_secs(3), put(&client, "default", "lost")).await;
    assert!(answer.is_err() || answer.is_ok_and(|answer| answer.is_err()));
    control.start_etcd().unwrap();
    let snapshot = control.snapshot().unwrap();
    put(&client, "default", "after").await.unwrap();
    assert_eq!(names(&client, "default").await, ["after", "before", "kept"]);
    control.restore(&snapshot).unwrap();
    assert_eq!(names(&client, "default").await, ["before", "kept"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn several_stand_beside_each_other_and_leave_nothing() {
    let Some(first) = ControlPlane::own(Options { crds: false, ..Options::named("first") }) else { return };
    let second = ControlPlane::start(Options { crds: false, ..Options::named("second") }).unwrap();
    first.namespace("only-here").await.unwrap();
    let there: Api<Namespace> = Api::all(second.client(ADMIN).await.unwrap());
    assert!(there.get_opt("only-here").await.unwrap().is_none());
    let folders = [first.folder().to_owned(), second.folder().to_owned()];
    drop((first, second));
    assert!(folders.iter().all(|folder| !folder.exists()));
}

#[tokio::test(flavor = "multi_thread")]
async fn hosts_of_the_lab_reach_it_through_a_door_that_can_be_shut() {
    let Some(control) = ControlPlane::shared() else { return };
    if let Some(why) = Lab::why_not() {
        eprintln!("skipped: {why}");
        return;
    }
    let mut lab = Lab::new().unwrap();
    let (server, host) = (lab.host("server").unwrap(), lab.host("host").unwrap());
    let door = control.expose(&server, SocketAddr::new(server.address(), 0)).unwrap();
    let kubeconfig = control.kubeconfig_through(&door, ADMIN).unwrap();
    let ask = || ask_from(&host, &kubeconfig);
    assert_eq!(ask().unwrap(), Some(true));
    door.close();
    assert_eq!(ask().unwrap(), Some(false));
    door.open();
    assert_eq!(ask().unwrap(), Some(true));
}

/// Whether the server answered a client inside a host.
fn ask_from(
    host: &spanwire_testkit::lab::Host,
    kubeconfig: &std::path::Path,
) -> Result<Option<bool>, LabError> {
    use kube::config::{KubeConfigOptions, Kubeconfig};
    host.run(|| {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().ok()?;
        runtime.block_on(async {
            let kubeconfig = Kubeconfig::read_from(kubeconfig).ok()?;
            let config =
                kube::Config::from_custom_kubeconfig(kubeconfig, &KubeConfigOptions::default()).await.ok()?;
            let client = Client::try_from(config).ok()?;
            Some(client.apiserver_version().await.is_ok())
        })
    })
}
