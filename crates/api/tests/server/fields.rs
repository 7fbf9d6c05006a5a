//! What becomes of fields: those that this version does not know, those that were left out, and the three meanings of
//! `peers`. It refuses the client's view: what the server stored is read.

use kube::{
    Client,
    api::{DynamicObject, Patch, PatchParams},
};
use serde_json::json;
use spanwire_testkit::control_plane::ControlPlane;

use super::{api, apply, client, object, words};

/// A plain POST, as `kubectl create --validate=…` sends it.
async fn create(
    client: &Client,
    object: &DynamicObject,
    validation: &str,
) -> Result<DynamicObject, kube::Error> {
    let path =
        format!("/apis/spanwire.dev/v1alpha1/namespaces/unknown/gateways?fieldValidation={validation}");
    let request = http::Request::post(path).header("Content-Type", "application/json");
    client.request(request.body(serde_json::to_vec(object).unwrap()).unwrap()).await
}

#[tokio::test]
async fn an_unknown_field_is_pruned_or_refused_as_the_client_asks() {
    let Some(control) = ControlPlane::shared() else { return };
    let client = client(control, "unknown").await;
    let object = object(
        "Gateway",
        "w1",
        "{subnets: [10.1.0.0/24], colour: red, advertise: {shade: dark, host: a.example}}",
    );
    let refusal = words(create(&client, &object, "Strict").await.unwrap_err());
    assert!(refusal.contains("unknown field \"spec.colour\""), "{refusal}");
    let stored = create(&client, &object, "Ignore").await.unwrap();
    let spec = &stored.data["spec"];
    assert_eq!((&spec["colour"], &spec["advertise"]["shade"]), (&json!(null), &json!(null)), "{spec}");
    assert_eq!(spec["advertise"]["host"], "a.example", "a known neighbour is kept: {spec}");
}

#[tokio::test]
async fn defaults_are_stored_by_the_server() {
    let Some(control) = ControlPlane::shared() else { return };
    let client = client(control, "defaults").await;
    let network = object("GatewayNetwork", "demo", "{topology: mesh, tunnel: {mtu: 1400}}");
    let stored = apply(&client, "defaults", &network).await.unwrap();
    let spec = &stored.data["spec"];
    assert_eq!(spec["transit"], "Isolated");
    assert_eq!(spec["hubChange"], json!({"connectTimeout": "60s", "onTimeout": "Proceed"}));
    assert_eq!(spec["tunnel"], json!({"mode": "auto", "keepalive": "25s", "mtu": 1400}));
}

#[tokio::test]
async fn p1_p3_p7_absent_empty_and_null_peers_stay_apart() {
    let Some(control) = ControlPlane::shared() else { return };
    let client = client(control, "peers").await;
    for (name, peers, wanted) in [
        ("absent", "", None),
        ("empty", ", peers: []", Some(json!([]))),
        ("nulled", ", peers: null", None),
        ("two", ", peers: [b, a]", Some(json!(["b", "a"]))),
    ] {
        let spec = format!("{{sliceName: demo, gateway: {name}{peers}}}");
        let intent = object("WorkerSliceConfig", &format!("demo.{name}"), &spec);
        let stored = apply(&client, "peers", &intent).await.unwrap();
        let peers = stored.data["spec"].get("peers").filter(|peers| !peers.is_null()).cloned();
        assert_eq!(peers, wanted, "{name}");
    }
    // Somebody who takes the field out of what he applies gives it up; the list does not become empty.
    let absent = object("WorkerSliceConfig", "demo.two", "{sliceName: demo, gateway: two}");
    let stored = apply(&client, "peers", &absent).await.unwrap();
    assert!(stored.data["spec"].get("peers").is_none(), "{}", stored.data);
}

#[tokio::test]
async fn peers_are_replaced_as_one_list() {
    let Some(control) = ControlPlane::shared() else { return };
    let client = client(control, "atomic").await;
    let intents = api(&client, "atomic", "WorkerSliceConfig");
    for (manager, peers) in [("one", "[a, b]"), ("two", "[c]")] {
        let spec = format!("{{sliceName: demo, gateway: w1, peers: {peers}}}");
        let intent = object("WorkerSliceConfig", "demo.w1", &spec);
        let parameters = PatchParams::apply(manager).force();
        intents.patch("demo.w1", &parameters, &Patch::Apply(&intent)).await.unwrap();
    }
    assert_eq!(intents.get("demo.w1").await.unwrap().data["spec"]["peers"], json!(["c"]));
}
