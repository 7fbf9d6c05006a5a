//! What people see: columns of `kubectl get`, the category, short names, `kubectl explain`. It refuses to need kubectl
//! where the server itself renders: tables come from the server.

use std::process::Command;

use kube::api::{Patch, PatchParams};
use serde_json::{Value, json};
use spanwire_testkit::control_plane::{ADMIN, ControlPlane, assets};

use super::{api, apply, client, object};

/// What the server prints for `kubectl get`: titles and the cells of the first row.
async fn table(client: &kube::Client, namespace: &str, plural: &str) -> Vec<(String, Value)> {
    let path = format!("/apis/spanwire.dev/v1alpha1/namespaces/{namespace}/{plural}");
    let accept = "application/json;as=Table;v=v1;g=meta.k8s.io";
    let request = http::Request::get(path).header("Accept", accept).body(Vec::new()).unwrap();
    let table: Value = client.request(request).await.unwrap();
    let cells = table["rows"][0]["cells"].as_array().cloned().unwrap_or_default();
    let columns = table["columnDefinitions"].as_array().unwrap().iter();
    let shown = columns.zip(cells).filter(|(column, _)| column["priority"] == 0);
    shown.map(|(column, cell)| (column["name"].as_str().unwrap().to_owned(), cell)).collect()
}

#[tokio::test]
async fn a_network_shows_topology_hub_state_and_links() {
    let Some(control) = ControlPlane::shared() else { return };
    let client = client(control, "columns").await;
    let network = object("GatewayNetwork", "demo", "{topology: hub-spoke, hub: hub-a, cidr: 10.9.0.0/24}");
    apply(&client, "columns", &network).await.unwrap();
    let status = json!({
        "apiVersion": "spanwire.dev/v1alpha1", "kind": "GatewayNetwork",
        "status": {"state": "Valid", "activeHub": "hub-a", "edges": {"desired": 4, "ready": 3, "failing": 1}},
    });
    let networks = api(&client, "columns", "GatewayNetwork");
    networks.patch_status("demo", &PatchParams::apply("test"), &Patch::Apply(&status)).await.unwrap();
    let mut shown = table(&client, "columns", "gatewaynetworks").await;
    assert_eq!(shown.pop().unwrap().0, "Age");
    let wanted = [
        ("Name", json!("demo")),
        ("Topology", json!("hub-spoke")),
        ("Hub", json!("hub-a")),
        ("State", json!("Valid")),
        ("Ready", json!(3)),
        ("Desired", json!(4)),
    ];
    assert_eq!(shown, wanted.map(|(name, cell)| (name.to_owned(), cell)));
}

#[tokio::test]
async fn a_gateway_shows_whether_its_worker_acts() {
    let Some(control) = ControlPlane::shared() else { return };
    let client = client(control, "gateway-columns").await;
    apply(&client, "gateway-columns", &object("Gateway", "w1", "{subnets: [10.1.0.0/24]}")).await.unwrap();
    let condition = json!({"type": "Ready", "status": "False", "reason": "Faults", "message": "", "lastTransitionTime": "2026-01-01T00:00:00Z"});
    let status = json!({
        "apiVersion": "spanwire.dev/v1alpha1", "kind": "Gateway",
        "status": {"endpoint": "192.0.2.1", "backend": "userspace", "conditions": [condition]},
    });
    let gateways = api(&client, "gateway-columns", "Gateway");
    gateways.patch_status("w1", &PatchParams::apply("test"), &Patch::Apply(&status)).await.unwrap();
    let shown = table(&client, "gateway-columns", "gateways").await;
    let cell = |name: &str| shown.iter().find(|(title, _)| title == name).map(|(_, cell)| cell.clone());
    assert_eq!(cell("Ready"), Some(json!("False")));
    assert_eq!(cell("Backend"), Some(json!("userspace")));
    assert_eq!(cell("Subnets"), Some(json!("[\"10.1.0.0/24\"]")));
}

#[tokio::test]
async fn every_kind_is_in_the_category_and_has_a_short_name() {
    let Some(control) = ControlPlane::shared() else { return };
    let client = control.client(ADMIN).await.unwrap();
    let listed = client.list_api_group_resources("spanwire.dev/v1alpha1").await.unwrap();
    let kinds: Vec<_> = listed.resources.iter().filter(|resource| !resource.name.contains('/')).collect();
    assert_eq!(kinds.len(), 5);
    for kind in kinds {
        assert_eq!(kind.categories.as_deref(), Some(&["spanwire".to_owned()][..]), "{}", kind.name);
        assert!(kind.short_names.is_some(), "{}", kind.name);
    }
}

#[tokio::test]
async fn kubectl_gets_and_explains() {
    let Some(control) = ControlPlane::shared() else { return };
    let client = client(control, "kubectl").await;
    let Some(kubectl) = assets::find().ok().and_then(|assets| assets.kubectl) else {
        eprintln!("skipped: the folder of kube-apiserver has no kubectl");
        return;
    };
    apply(&client, "kubectl", &object("GatewayNetwork", "demo", "{topology: mesh}")).await.unwrap();
    let kubeconfig = control.kubeconfig_file(ADMIN).unwrap();
    let run = |arguments: &[&str]| {
        let output = Command::new(&kubectl).env("KUBECONFIG", &kubeconfig).args(arguments).output().unwrap();
        assert!(output.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).unwrap()
    };
    let all = run(&["get", "spanwire", "--namespace", "kubectl"]);
    assert!(all.contains("gatewaynetwork.spanwire.dev/demo") || all.contains("demo"), "{all}");
    assert!(run(&["get", "gwn", "--namespace", "kubectl"]).contains("TOPOLOGY"));
    let explained =
        run(&["explain", "workersliceconfigs.spec.peers", "--api-version", "spanwire.dev/v1alpha1"]);
    assert!(explained.contains("Absent or null: every other member"), "{explained}");
}
