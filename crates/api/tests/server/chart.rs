//! The chart on a real API server: what its value sets render to is taken as it stands, and an upgrade updates the CRDs. It
//! refuses a lenient server: a field that it does not know is an error.

use std::{
    collections::BTreeSet,
    fs,
    path::{Path, PathBuf},
    process::Command,
    time::Duration,
};

use k8s_openapi::{
    api::apps::v1::DaemonSet, apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition,
};
use kube::{
    Api, Client, ResourceExt,
    api::{DynamicObject, ListParams, Patch, PatchParams},
    core::GroupVersionKind,
    discovery::{Scope, pinned_kind},
};
use serde_json::json;
use spanwire_testkit::control_plane::{ADMIN, ControlPlane, Options};
use tempfile::TempDir;

use super::{api, apply, object, words};

const NAMESPACE: &str = "spanwire";
/// What the value sets have to bring at least.
const KINDS: [&str; 11] = [
    "CustomResourceDefinition",
    "DaemonSet",
    "Deployment",
    "Job",
    "NetworkPolicy",
    "PodDisruptionBudget",
    "PodMonitor",
    "Role",
    "RoleBinding",
    "Service",
    "ServiceAccount",
];

fn chart() -> PathBuf {
    spanwire_testkit::folder::workspace().join("charts/spanwire")
}

/// Helm as `cargo xtask test` names it, else the one on the search path.
fn helm() -> Option<PathBuf> {
    let named = std::env::var_os("SPANWIRE_HELM").map(PathBuf::from);
    let path = std::env::var_os("PATH").unwrap_or_default();
    let found = named.or_else(|| {
        std::env::split_paths(&path).map(|folder| folder.join("helm")).find(|file| file.is_file())
    });
    if found.is_none() {
        eprintln!(
            "skipped: no helm on the search path, and SPANWIRE_HELM names none (`cargo xtask test` does)"
        );
    }
    found
}

/// A dry run passes admission and validation like any other request.
async fn dry_run(client: &Client, object: &DynamicObject) -> Result<(), String> {
    let kind = GroupVersionKind::try_from(object.types.as_ref().unwrap()).unwrap();
    let (resource, capabilities) = pinned_kind(client, &kind).await.map_err(words)?;
    let api: Api<DynamicObject> = match capabilities.scope {
        Scope::Cluster => Api::all_with(client.clone(), &resource),
        Scope::Namespaced => Api::namespaced_with(client.clone(), &object.namespace().unwrap(), &resource),
    };
    let parameters = PatchParams::apply("chart").dry_run().validation_strict();
    api.patch(&object.name_any(), &parameters, &Patch::Apply(object)).await.map(drop).map_err(words)
}

/// A definition like that of the Prometheus operator, as far as the chart uses it.
fn pod_monitors() -> String {
    json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": "podmonitors.monitoring.coreos.com"},
        "spec": {
            "group": "monitoring.coreos.com", "scope": "Namespaced",
            "names": {"kind": "PodMonitor", "plural": "podmonitors"},
            "versions": [{"name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema": {
                "type": "object",
                "properties": {"spec": {"type": "object", "properties": {
                    "selector": {"type": "object", "properties": {
                        "matchLabels": {"type": "object", "additionalProperties": {"type": "string"}}
                    }},
                    "podTargetLabels": {"type": "array", "items": {"type": "string"}},
                    "podMetricsEndpoints": {"type": "array", "items": {"type": "object", "properties": {
                        "port": {"type": "string"}, "interval": {"type": "string"}
                    }}},
                }}},
            }}}],
        },
    })
    .to_string()
}

/// Applies it and waits until it is served.
async fn serve_pod_monitors(control: &ControlPlane, client: &Client) {
    control.apply("", &pod_monitors()).await.unwrap();
    let kind = GroupVersionKind::gvk("monitoring.coreos.com", "v1", "PodMonitor");
    for _ in 0..300 {
        if pinned_kind(client, &kind).await.is_ok() {
            return;
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    panic!("PodMonitors are not served");
}

#[tokio::test]
async fn every_recorded_object_of_the_chart_is_taken() {
    let Some(control) = ControlPlane::shared() else { return };
    control.namespace(NAMESPACE).await.unwrap();
    let client = control.client(ADMIN).await.unwrap();
    serve_pod_monitors(control, &client).await;
    let mut kinds = BTreeSet::new();
    for entry in fs::read_dir(chart().join("tests/golden")).unwrap() {
        let path = entry.unwrap().path();
        let text = fs::read_to_string(&path).unwrap();
        for object in serde_saphyr::from_multiple::<DynamicObject>(&text).unwrap() {
            let kind = object.types.clone().unwrap().kind;
            let answer = dry_run(&client, &object).await;
            answer
                .unwrap_or_else(|words| panic!("{}: {kind} {}: {words}", path.display(), object.name_any()));
            kinds.insert(kind);
        }
    }
    for kind in KINDS {
        assert!(kinds.contains(kind), "no {kind} in {kinds:?}");
    }
}

/// A copy of the chart whose Gateways have another column, as an older version would.
fn older_chart() -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    copy(&chart(), folder.path());
    let path = folder.path().join("files/crds/gateways.yaml");
    let text = fs::read_to_string(&path).unwrap();
    assert!(text.contains("name: Backend\n"));
    fs::write(&path, text.replace("name: Backend\n", "name: Before\n")).unwrap();
    folder
}

fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap() {
        let path = entry.unwrap().path();
        let place = to.join(path.file_name().unwrap());
        if path.is_dir() {
            copy(&path, &place);
        } else {
            fs::copy(&path, &place).unwrap();
        }
    }
}

async fn columns(client: &Client) -> Vec<String> {
    let definitions: Api<CustomResourceDefinition> = Api::all(client.clone());
    let gateways = definitions.get("gateways.spanwire.dev").await.unwrap();
    let columns = gateways.spec.versions[0].additional_printer_columns.clone().unwrap_or_default();
    columns.into_iter().map(|column| column.name).collect()
}

async fn daemon_sets(client: &Client) -> Vec<String> {
    let sets: Api<DaemonSet> = Api::namespaced(client.clone(), NAMESPACE);
    sets.list(&ListParams::default()).await.unwrap().iter().map(ResourceExt::name_any).collect()
}

#[tokio::test]
async fn an_upgrade_updates_the_crds_and_an_uninstall_keeps_them_with_objects_and_tunnels() {
    let Some(helm) = helm() else { return };
    let Some(control) = ControlPlane::own(Options { crds: false, ..Options::named("chart") }) else { return };
    let client = control.client(ADMIN).await.unwrap();
    control.namespace(NAMESPACE).await.unwrap();
    let kubeconfig = control.kubeconfig_file(ADMIN).unwrap();
    let run = |words: &[&str]| {
        let mut command = Command::new(&helm);
        command.env("KUBECONFIG", &kubeconfig).args(words).args(["--namespace", NAMESPACE]);
        let output = command.output().unwrap();
        assert!(output.status.success(), "{words:?}: {}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8_lossy(&output.stdout).into_owned()
    };
    let (older, now) = (older_chart(), chart());
    let values = now.join("tests/one-cluster-both.yaml");
    let values = ["--values", values.to_str().unwrap(), "--set", "crds.install=true"];
    let links = "uninstall.removeLinks=false";
    run(&[&["install", "spanwire", older.path().to_str().unwrap(), "--set", links], &values[..]].concat());
    assert!(columns(&client).await.contains(&"Before".to_owned()));
    run(&[&["upgrade", "spanwire", now.to_str().unwrap(), "--set", links], &values[..]].concat());
    let upgraded = columns(&client).await;
    assert!(upgraded.contains(&"Backend".to_owned()) && !upgraded.contains(&"Before".to_owned()));

    apply(&client, NAMESPACE, &object("Gateway", "w1", "{subnets: [10.1.0.0/24]}")).await.unwrap();
    assert_eq!(daemon_sets(&client).await, ["spanwire-dataplane", "spanwire-worker"]);
    run(&["uninstall", "spanwire"]);
    assert_eq!(daemon_sets(&client).await, ["spanwire-dataplane"], "its end would end userspace tunnels");
    api(&client, NAMESPACE, "Gateway").get("w1").await.unwrap();

    // What was kept is the next release's of this name.
    run(&[&["install", "spanwire", now.to_str().unwrap(), "--set", links], &values[..]].concat());
    assert_eq!(daemon_sets(&client).await, ["spanwire-dataplane", "spanwire-worker"]);
}
