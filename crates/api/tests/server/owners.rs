//! Who owns which part of an object when several write it by server-side apply. It refuses force where two do not
//! write the same field.

use kube::{
    Client,
    api::{Patch, PatchParams},
};
use serde_json::{Value, json};
use spanwire_testkit::control_plane::ControlPlane;

use super::{api, apply, client, object, words};

async fn report(
    client: &Client,
    manager: &str,
    kind: &str,
    name: &str,
    status: Value,
) -> Result<Value, String> {
    let object = json!({
        "apiVersion": "spanwire.dev/v1alpha1", "kind": kind, "metadata": {"name": name}, "status": status,
    });
    let parameters = PatchParams::apply(manager);
    let stored = api(client, "owners", kind).patch_status(name, &parameters, &Patch::Apply(&object)).await;
    stored.map(|object| object.data["status"].clone()).map_err(words)
}

#[tokio::test]
async fn controller_and_worker_write_one_status_of_a_gateway() {
    let Some(control) = ControlPlane::shared() else { return };
    let client = client(control, "owners").await;
    apply(&client, "owners", &object("Gateway", "w1", "{subnets: [10.1.0.0/24]}")).await.unwrap();
    let networks = |addresses: &[(&str, &str)]| {
        let rows: Vec<Value> =
            addresses.iter().map(|(name, address)| json!({"name": name, "tunnelAddress": address})).collect();
        json!({"networks": rows})
    };
    let facts = |port: u16| {
        json!({
            "publicKey": "k", "keyGeneration": 1, "endpoint": "192.0.2.1", "backend": "kernel",
            "listeners": [{"network": "demo", "role": "downlink", "port": port}],
            "conditions": [{"type": "Ready", "status": "True", "reason": "Acting", "message": "", "lastTransitionTime": "2026-01-01T00:00:00Z"}],
        })
    };
    let controller = |status| report(&client, "spanwire-controller", "Gateway", "w1", status);
    let worker = |status| report(&client, "spanwire-worker", "Gateway", "w1", status);
    controller(networks(&[("demo", "10.9.0.1"), ("lab", "10.8.0.1")])).await.unwrap();
    worker(facts(1)).await.unwrap();
    worker(facts(2)).await.unwrap();
    let status = controller(networks(&[("demo", "10.9.0.1")])).await.unwrap();
    assert_eq!(status["networks"], json!([{"name": "demo", "tunnelAddress": "10.9.0.1"}]));
    assert_eq!(status["listeners"], json!([{"network": "demo", "role": "downlink", "port": 2}]));
    assert_eq!(status["conditions"][0]["reason"], "Acting");
    let conflict = worker(networks(&[("demo", "10.9.0.2")])).await.unwrap_err();
    assert!(conflict.starts_with("409") && conflict.contains("spanwire-controller"), "{conflict}");
}

#[tokio::test]
async fn several_people_add_members_and_writers_of_conditions_do_not_meet() {
    let Some(control) = ControlPlane::shared() else { return };
    let client = client(control, "owners").await;
    let networks = api(&client, "owners", "GatewayNetwork");
    for (manager, member) in [("anna", "w1"), ("bert", "w2")] {
        let network = object("GatewayNetwork", "teams", &format!("{{members: [{member}]}}"));
        networks.patch("teams", &PatchParams::apply(manager), &Patch::Apply(&network)).await.unwrap();
    }
    assert_eq!(networks.get("teams").await.unwrap().data["spec"]["members"], json!(["w1", "w2"]));
    let condition = |kind: &str| json!({"conditions": [{"type": kind, "status": "True", "reason": "Test", "message": "", "lastTransitionTime": "2026-01-01T00:00:00Z"}]});
    report(&client, "one", "GatewayNetwork", "teams", condition("Valid")).await.unwrap();
    let status = report(&client, "two", "GatewayNetwork", "teams", condition("Other")).await.unwrap();
    assert_eq!(status["conditions"].as_array().unwrap().len(), 2, "{status}");
}

#[tokio::test]
async fn a_status_does_not_come_with_the_spec_and_generation_counts_specs_alone() {
    let Some(control) = ControlPlane::shared() else { return };
    let client = client(control, "owners").await;
    let mut intent = object("WorkerSliceConfig", "demo.w9", "{sliceName: demo, gateway: w9}");
    intent.data["status"] = json!({"role": "hub"});
    let stored = apply(&client, "owners", &intent).await.unwrap();
    assert!(stored.data.get("status").is_none(), "{}", stored.data);
    let first = stored.metadata.generation;
    report(&client, "worker", "WorkerSliceConfig", "demo.w9", json!({"role": "spoke"})).await.unwrap();
    let stored = api(&client, "owners", "WorkerSliceConfig").get("demo.w9").await.unwrap();
    assert_eq!((stored.metadata.generation, &stored.data["status"]["role"]), (first, &json!("spoke")));
}
