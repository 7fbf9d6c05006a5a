//! `join` as people run it, on a real API server: what is printed applies, and the token reaches its own objects alone. It
//! refuses to trust the text: the server's answers count.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test may fail here")]

use std::{
    collections::BTreeSet,
    fs,
    path::Path,
    process::{Command, Output},
};

use k8s_openapi::api::core::v1::Secret;
use kube::{
    Api, Client, Config,
    api::{DynamicObject, ListParams, Patch, PatchParams},
    config::{KubeConfigOptions, Kubeconfig},
};
use serde_json::{Value, json};
use spanwire_api::{GatewaySpec, Kind, WorkerSliceConfigSpec, rbac, resource};
use spanwire_testkit::control_plane::{ADMIN, ControlPlane};
use tokio::runtime::Runtime;

/// With the kubeconfig of a user of the control plane.
fn join(plane: &ControlPlane, user: &str, namespace: &str, arguments: &[&str]) -> Output {
    spanwirectl(&plane.kubeconfig_file(user).unwrap(), &[&["join", "-n", namespace], arguments].concat())
}

fn spanwirectl(kubeconfig: &Path, arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_spanwirectl"))
        .args(arguments)
        .env_remove("SPANWIRE_CONTROL")
        .env_remove("SPANWIRE_CONTROL_NAMESPACE")
        .env_remove("KUBERNETES_SERVICE_HOST")
        .env("KUBECONFIG", kubeconfig)
        .output()
        .unwrap()
}

fn text(output: &Output) -> String {
    assert_eq!(output.status.code(), Some(0), "{}", fault(output));
    String::from_utf8(output.stdout.clone()).unwrap()
}

fn fault(output: &Output) -> String {
    String::from_utf8(output.stderr.clone()).unwrap()
}

fn runtime() -> Runtime {
    tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap()
}

fn api<S: Kind>(client: &Client, namespace: &str) -> Api<DynamicObject> {
    Api::namespaced_with(client.clone(), namespace, &resource::<S>())
}

/// What the worker would do with the Secret, with another folder as its place.
fn mounted(secret: &Value, folder: &Path) -> Kubeconfig {
    let held = |key: &str| secret["stringData"][key].as_str().unwrap().to_owned();
    fs::write(folder.join("token"), held("token")).unwrap();
    let kubeconfig = held("kubeconfig").replace("/etc/spanwire/control", &folder.display().to_string());
    Kubeconfig::from_yaml(&kubeconfig).unwrap()
}

#[test]
fn what_is_printed_applies_and_the_token_reaches_its_own_objects_alone() {
    const HERE: &str = "join";
    let Some(plane) = ControlPlane::shared() else { return };
    let (runtime, folder) = (runtime(), tempfile::tempdir().unwrap());
    runtime.block_on(plane.namespace(HERE)).unwrap();
    for (gateway, subnet) in [("berlin", "10.7.1.0/24"), ("paris", "10.7.2.0/24")] {
        let control = join(plane, ADMIN, HERE, &[gateway, "--subnet", subnet, "--host", "192.0.2.1"]);
        let applied = runtime.block_on(plane.apply("default", &text(&control))).unwrap();
        assert_eq!(applied.len(), 4);
        assert!(applied.iter().all(|object| object.metadata.namespace.as_deref() == Some(HERE)));
        let again = join(plane, ADMIN, HERE, &[gateway, "--subnet", subnet, "--host", "192.0.2.1"]);
        assert_eq!(text(&again), text(&control), "the same Gateway is no other one");
        let intent = format!(
            "{{apiVersion: spanwire.dev/v1alpha1, kind: WorkerSliceConfig, metadata: {{name: demo.{gateway}}}, spec: \
             {{sliceName: demo, gateway: {gateway}}}}}"
        );
        runtime.block_on(plane.apply(HERE, &intent)).unwrap();
    }
    // What the controller does when the gateway is in a network.
    let role = rbac::worker_role(HERE, "berlin", &BTreeSet::from(["demo".to_owned()]));
    runtime.block_on(plane.apply_object(HERE, &role)).unwrap();

    let worker = join(
        plane,
        ADMIN,
        HERE,
        &["berlin", "--side", "worker", "--worker-namespace", "net", "--duration", "1h"],
    );
    let secret: Value = serde_saphyr::from_str(&text(&worker)).unwrap();
    assert_eq!(secret["metadata"], json!({"name": "spanwire-control-berlin", "namespace": "net"}));
    let token = secret["stringData"]["token"].as_str().unwrap();
    let notes = fault(&worker);
    assert!(!notes.contains(token), "the token is on standard output alone");
    for words in [
        "The token is good until 20",
        "address of this machine",
        "worker.gateway=berlin",
        "control.namespace=join",
    ] {
        assert!(notes.contains(words), "{words:?} not in\n{notes}");
    }
    let kubeconfig = mounted(&secret, folder.path());
    runtime.block_on(reaches_its_own_alone(kubeconfig, HERE));
}

async fn reaches_its_own_alone(kubeconfig: Kubeconfig, namespace: &str) {
    let options = KubeConfigOptions { context: Some("control".to_owned()), ..KubeConfigOptions::default() };
    let config = Config::from_custom_kubeconfig(kubeconfig, &options).await.unwrap();
    assert_eq!(config.default_namespace, namespace);
    let berlin = Client::try_from(config).unwrap();
    let (gateways, intents) =
        (api::<GatewaySpec>(&berlin, namespace), api::<WorkerSliceConfigSpec>(&berlin, namespace));
    assert_eq!(gateways.list(&ListParams::default()).await.unwrap().items.len(), 2);
    intents.get("demo.berlin").await.unwrap();
    let parameters = PatchParams::apply("worker");
    let facts = Patch::Apply(json!({
        "apiVersion": "spanwire.dev/v1alpha1", "kind": "Gateway", "status": {"endpoint": "192.0.2.1"},
    }));
    gateways.patch_status("berlin", &parameters, &facts).await.unwrap();
    let secrets: Api<Secret> = Api::namespaced(berlin.clone(), namespace);
    let spec = Patch::Merge(json!({"spec": {"subnets": ["0.0.0.0/0"]}}));
    for (what, answer) in [
        ("another's intent", intents.get("demo.paris").await.map(drop)),
        ("all intents", intents.list(&ListParams::default()).await.map(drop)),
        ("another's facts", gateways.patch_status("paris", &parameters, &facts).await.map(drop)),
        ("its own subnets", gateways.patch("berlin", &PatchParams::default(), &spec).await.map(drop)),
        ("secrets", secrets.list(&ListParams::default()).await.map(drop)),
    ] {
        let Err(kube::Error::Api(status)) = answer else { panic!("{what}: {answer:?}") };
        assert_eq!(status.code, 403, "{what}");
    }
}

#[test]
fn what_is_in_the_way_is_named_with_the_next_step() {
    const HERE: &str = "join-faults";
    let Some(plane) = ControlPlane::shared() else { return };
    let runtime = runtime();
    runtime.block_on(plane.namespace(HERE)).unwrap();
    let nobody = runtime.block_on(plane.service_account(HERE, "nobody", 600)).unwrap();
    let control = join(plane, ADMIN, HERE, &["berlin", "--subnet", "10.7.1.0/24"]);
    runtime.block_on(plane.apply(HERE, &text(&control))).unwrap();
    let worker = ["berlin", "--side", "worker"];
    let cases: [(&str, &str, &[&str], &[&str]); 6] = [
        (
            ADMIN,
            "nowhere",
            &["a", "--subnet", "10.1.0.0/24"],
            &["no namespace nowhere", "kubectl create namespace"],
        ),
        (ADMIN, "nowhere", &worker, &["no namespace nowhere"]),
        (
            ADMIN,
            HERE,
            &["ghost", "--side", "worker"],
            &["no service account spanwire-worker-ghost", "join ghost --side control"],
        ),
        (
            &nobody,
            HERE,
            &worker,
            &["does not let you make a token", "(403)", "create on serviceaccounts/token"],
        ),
        (
            ADMIN,
            HERE,
            &["berlin", "--subnet", "10.9.0.0/24"],
            &["there is a Gateway berlin", "10.7.1.0/24", "edit gateway"],
        ),
        (ADMIN, HERE, &["oslo"], &["--subnet 10.7.1.0/24"]),
    ];
    for (user, namespace, arguments, words) in cases {
        let output = join(plane, user, namespace, arguments);
        let fault = fault(&output);
        assert_eq!(output.status.code(), Some(1), "{arguments:?}: {fault}");
        assert!(output.stdout.is_empty(), "{arguments:?}");
        for words in words {
            assert!(fault.contains(words), "{arguments:?}: {words:?} not in {fault}");
        }
    }
}

#[test]
fn a_kubeconfig_is_not_asked_for_the_account_of_a_pod() {
    let Some(plane) = ControlPlane::shared() else { return };
    let kubeconfig = plane.kubeconfig_file(ADMIN).unwrap();
    let output = spanwirectl(&kubeconfig, &["--control", "in-cluster", "-n", "default", "status"]);
    assert_eq!(output.status.code(), Some(1));
    assert!(fault(&output).contains("in-cluster is for a pod with a service account"), "{}", fault(&output));
}

#[test]
fn wrong_arguments_are_refused_before_anything_is_asked() {
    let run = |arguments: &[&str]| spanwirectl(Path::new("/no/such/kubeconfig"), arguments);
    for (arguments, words) in [
        (vec!["join", "ber.lin", "--subnet", "10.7.1.0/24"], "ber.lin"),
        (vec!["join", "berlin", "--subnet", "10.7.1.5/24"], "use 10.7.1.0/24"),
        (vec!["join", "berlin", "--side", "worker", "--duration", "1m"], "10m"),
        (
            vec!["join", "berlin", "--side", "worker", "--server", "control.example"],
            "https://control.example:6443",
        ),
    ] {
        let output = run(&arguments);
        assert_eq!(output.status.code(), Some(2), "{arguments:?}");
        assert!(fault(&output).contains(words), "{arguments:?}: {}", fault(&output));
    }
    let directory = run(&["--control", "dir:/srv/spanwire", "join", "berlin", "--subnet", "10.7.1.0/24"]);
    assert_eq!(directory.status.code(), Some(1));
    assert!(fault(&directory).contains("not dir:/srv/spanwire"), "{}", fault(&directory));
}
