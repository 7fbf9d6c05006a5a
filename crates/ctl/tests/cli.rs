//! The program as people run it: output, exit codes, and that it writes nothing.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test may fail here")]

use std::{
    collections::BTreeMap,
    fs,
    io::Write as _,
    path::{Path, PathBuf},
    process::{Command, Output, Stdio},
};

use serde_json::Value;

struct Store(tempfile::TempDir);

const NETWORK: &str = "apiVersion: spanwire.dev/v1alpha1\nkind: GatewayNetwork\nmetadata:\n  name: demo\nspec:\n  \
    topology: hub-spoke\n  hub: hub-a\n  members: [hub-a, hub-b, spoke-1]\n  cidr: 10.9.0.0/24\n";

impl Store {
    fn new() -> Self {
        let store = Self(tempfile::tempdir().unwrap());
        for (number, name) in ["hub-a", "hub-b", "spoke-1"].into_iter().enumerate() {
            store.put(
                &format!("gateways/{name}.yaml"),
                &format!(
                    "apiVersion: spanwire.dev/v1alpha1\nkind: Gateway\nmetadata: {{name: {name}}}\nspec: {{subnets: \
                     [10.{number}.0.0/24]}}\n"
                ),
            );
        }
        store.put("gatewaynetworks/demo.yaml", NETWORK);
        store
    }

    /// As a controller and two workers left it: hub-a and spoke-1 disagree about their link.
    fn reported() -> Self {
        let store = Self::new();
        let head = |kind: &str, name: &str| {
            format!(
                "apiVersion: spanwire.dev/v1alpha1\nkind: {kind}\nmetadata: {{name: {name}, uid: u-{name}, generation: 1}}\n"
            )
        };
        let member =
            |name: &str, more: &str| format!("  - {{gateway: {name}, tunnelAddress: 10.9.0.1{more}}}\n");
        store.put(
            "gatewaynetworks/demo.status.controller.yaml",
            &format!(
                "{}status:\n  observedGeneration: 1\n  state: Valid\n  activeHub: hub-a\n  published: {{topology: hub-spoke, \
                 hubs: [hub-a, hub-b]}}\n  edges: {{desired: 3, ready: 1, failing: 1}}\n  members:\n{}{}{}  conditions:\n  \
                 - {{type: Ready, status: \"False\", reason: OneWay, message: one end, lastTransitionTime: t}}\n",
                head("GatewayNetwork", "demo"),
                member("hub-a", ", accepted: true"),
                member("hub-b", ", reason: PrefixOverlap, message: its subnet is taken"),
                member("spoke-1", ", accepted: true, joining: true"),
            ),
        );
        for (gateway, peer, role, state) in
            [("hub-a", "spoke-1", "downlink", "Connected"), ("spoke-1", "hub-a", "uplink", "NotConnected")]
        {
            let name = format!("demo.{gateway}");
            let labelled = head("WorkerSliceConfig", &name).replace(
                "generation: 1",
                "generation: 1, labels: {app.kubernetes.io/managed-by: spanwire-controller}",
            );
            store.put(
                &format!("workersliceconfigs/{name}.yaml"),
                &format!(
                    "{labelled}spec: {{sliceName: demo, gateway: {gateway}, peers: [{peer}, hub-b], topology: hub-spoke, \
                     hubs: [hub-a]}}\n"
                ),
            );
            let row =
                format!("peer: {peer}, role: {role}, state: {state}, route: Active, reason: ProbeAnswered");
            store.put(
                &format!("workersliceconfigs/{name}.status.worker.yaml"),
                &format!(
                    "{}status:\n  observedGeneration: 1\n  role: spoke\n  peerStatuses:\n  - {{{row}, lastTransitionTime: t}}\n  - \
                     {{peer: ghost, state: Pending, route: None, reason: UnknownPeer, message: no such Gateway, \
                     lastTransitionTime: t}}\n",
                    head("WorkerSliceConfig", &name)
                ),
            );
        }
        store
    }

    fn put(&self, file: &str, text: &str) {
        let path = self.0.path().join(file);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    fn run(&self, arguments: &[&str]) -> Output {
        self.run_with(arguments, "")
    }

    fn run_with(&self, arguments: &[&str], input: &str) -> Output {
        let mut child = Command::new(env!("CARGO_BIN_EXE_spanwirectl"))
            .arg(format!("--control=dir:{}", self.0.path().display()))
            .args(arguments)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        // A command that does not read its input closes it first.
        let _ = child.stdin.take().unwrap().write_all(input.as_bytes());
        child.wait_with_output().unwrap()
    }

    fn files(&self) -> BTreeMap<PathBuf, String> {
        let mut files = BTreeMap::new();
        for folder in fs::read_dir(self.0.path())
            .unwrap()
            .map(|entry| entry.unwrap().path())
            .filter(|path| path.is_dir())
        {
            for file in fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()) {
                files.insert(file.clone(), fs::read_to_string(file).unwrap());
            }
        }
        files
    }
}

fn text(output: &Output) -> String {
    String::from_utf8(output.stdout.clone()).unwrap()
}

fn fault(output: &Output) -> String {
    String::from_utf8(output.stderr.clone()).unwrap()
}

#[test]
fn status_joins_both_ends() {
    let store = Store::reported();
    let output = store.run(&["status", "-o", "json"]);
    assert_eq!(output.status.code(), Some(0), "{}", fault(&output));
    let json: Value = serde_json::from_slice(&output.stdout).unwrap();
    let network = &json["networks"][0];
    assert_eq!(network["activeHub"], "hub-a");
    assert_eq!(network["standbyHubs"], serde_json::json!(["hub-b"]));
    let links = network["links"].as_array().unwrap();
    let link = links.iter().find(|link| link["from"] == "spoke-1" && link["to"] == "hub-a").unwrap();
    assert_eq!((&link["state"], &link["role"]), (&"OneWay".into(), &"uplink".into()));
    assert_eq!(
        (&link["fromEnd"]["state"], &link["toEnd"]["state"]),
        (&"NotConnected".into(), &"Connected".into())
    );
    let silent = links.iter().find(|link| link["from"] == "hub-b" && link["to"] == "hub-a").unwrap();
    assert_eq!(silent["state"], "Pending", "wanted, and nobody has said anything");
    assert_eq!(network["refused"][0]["peer"], "ghost");
    assert_eq!(network["gateways"][0]["confirmed"], true);
    assert_eq!(network["gateways"][1]["note"], "left out: PrefixOverlap: its subnet is taken");
    assert_eq!(network["observed"], false, "no digest of the file: it was edited since");
}

#[test]
fn status_is_readable() {
    let store = Store::reported();
    let text = text(&store.run(&["status"]));
    for words in [
        "demo: hub-spoke, Valid (edited since; the controller has not seen it yet)",
        "hub hub-a, standby hub-b",
        "1 of 3 links ready, 1 failing",
        "not Ready: OneWay: one end",
        "left out: PrefixOverlap: its subnet is taken",
        "joining",
        "spoke-1 - hub-a",
        "OneWay",
        "hub-a has no link to \"ghost\": UnknownPeer: no such Gateway",
    ] {
        assert!(text.contains(words), "{words:?} not in\n{text}");
    }
}

#[test]
fn yaml_says_what_json_says() {
    let store = Store::reported();
    for arguments in [vec!["status"], vec!["plan", "-f", "-"]] {
        let new = NETWORK.replace("hub: hub-a", "hub: hub-b");
        let json = store.run_with(&[&arguments[..], &["-o", "json"]].concat(), &new);
        let yaml = store.run_with(&[&arguments[..], &["-o", "yaml"]].concat(), &new);
        let json: Value = serde_json::from_slice(&json.stdout).unwrap();
        let yaml: Value = serde_saphyr::from_str(&text(&yaml)).unwrap();
        assert_eq!(json, yaml, "{arguments:?}");
    }
}

#[test]
fn plan_names_phases_and_losses() {
    let store = Store::new();
    let new = NETWORK.replace("hub: hub-a", "hub: hub-b");
    let output = store.run_with(&["plan", "-f", "-"], &new);
    assert_eq!(output.status.code(), Some(0), "{}", fault(&output));
    assert!(text(&output).contains("At once"), "nothing runs yet: {}", text(&output));
    let invalid = store.run_with(&["plan", "-f", "-", "--exit-code"], &new.replace("hub-b\n", "ghost\n"));
    assert_eq!(invalid.status.code(), Some(3));
    assert!(text(&invalid).contains("demo: Invalid: "), "{}", text(&invalid));
    assert!(text(&invalid).contains("what runs would be left alone"));
}

#[test]
fn exit_codes_are_as_documented() {
    let store = Store::reported();
    let code = |arguments: &[&str]| store.run(arguments).status.code();
    assert_eq!(code(&["status"]), Some(0));
    assert_eq!(code(&["status", "--exit-code"]), Some(3));
    assert_eq!(code(&["status", "ghost"]), Some(1));
    assert_eq!(code(&["plan"]), Some(2));
    assert_eq!(code(&["plan", "-f", "/no/such/file"]), Some(1));
    assert_eq!(code(&["no-such-command"]), Some(2));
    let help = text(&store.run(&["--help"]));
    assert!(help.contains("Exit codes:"), "{help}");
}

#[test]
fn faults_name_the_place() {
    let store = Store::new();
    let bad = store.run_with(&["plan", "-f", "-"], &NETWORK.replace("members", "memebers"));
    assert_eq!(bad.status.code(), Some(1));
    assert!(
        fault(&bad)
            .contains("-: line 8, column 3: spec: unknown field \"memebers\", did you mean \"members\"?"),
        "{}",
        fault(&bad)
    );
    let other = store.run_with(&["plan", "-f", "-"], "kind: TunnelLink\n");
    assert!(
        fault(&other).contains("expected Gateway or GatewayNetwork, found \"TunnelLink\""),
        "{}",
        fault(&other)
    );
    let ghost = store.run(&["status", "ghost"]);
    assert!(fault(&ghost).contains("there is no network \"ghost\"; there are: demo"), "{}", fault(&ghost));
    store.put("gateways/hub-b.yaml", "broken: [");
    let unreadable = store.run(&["status", "--exit-code"]);
    assert_eq!(unreadable.status.code(), Some(3));
    assert!(
        text(&unreadable).contains("gateways hub-b can't be read and counts as unknown"),
        "{}",
        text(&unreadable)
    );
}

#[test]
fn without_a_place_it_is_the_cluster_of_the_kubeconfig() {
    let run = |arguments: &[&str]| {
        Command::new(env!("CARGO_BIN_EXE_kubectl-spanwire"))
            .args(arguments)
            .env_remove("SPANWIRE_CONTROL")
            .env("KUBECONFIG", "/no/such/kubeconfig")
            .output()
            .unwrap()
    };
    let output = run(&["status"]);
    assert_eq!(output.status.code(), Some(1));
    assert!(
        fault(&output).starts_with("kubectl-spanwire: failed to read the control cluster")
            && fault(&output).contains("check KUBECONFIG"),
        "{}",
        fault(&output)
    );
    assert_eq!(run(&["--control", "/srv", "status"]).status.code(), Some(2));
    let missing = run(&["--control", "dir:/no/such/store", "status"]);
    assert_eq!(missing.status.code(), Some(1));
    assert!(
        fault(&missing).contains("failed to read the store's directory /no/such/store"),
        "{}",
        fault(&missing)
    );
}

#[test]
fn completion_is_for_the_program_that_prints_it() {
    for shell in ["bash", "zsh", "fish"] {
        let output =
            Command::new(env!("CARGO_BIN_EXE_spanwirectl")).args(["completion", shell]).output().unwrap();
        assert_eq!(output.status.code(), Some(0));
        let script = text(&output);
        assert!(script.contains("spanwirectl") && script.contains("plan"), "{shell}");
    }
}

#[test]
fn nothing_is_written() {
    let store = Store::reported();
    let before = store.files();
    store.run(&["status"]);
    store.run_with(&["plan", "-f", "-"], &NETWORK.replace("hub: hub-a", "hub: hub-b"));
    assert_eq!(store.files(), before);
    assert!(Path::new(env!("CARGO_BIN_EXE_spanwirectl")).exists());
}

/// The same answers from an API server.
#[test]
fn an_api_server_is_read_like_a_directory() {
    use spanwire_testkit::control_plane::{ADMIN, ControlPlane};

    let Some(plane) = ControlPlane::shared() else { return };
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap();
    let store = Store::reported();
    runtime.block_on(async {
        plane.namespace("ctl").await.unwrap();
        for name in ["gateways/hub-a", "gateways/hub-b", "gateways/spoke-1", "gatewaynetworks/demo"] {
            let text = fs::read_to_string(store.0.path().join(format!("{name}.yaml"))).unwrap();
            plane.apply("ctl", &text).await.unwrap();
        }
    });
    let run = |arguments: &[&str]| {
        Command::new(env!("CARGO_BIN_EXE_kubectl-spanwire"))
            .args(arguments)
            .env_remove("SPANWIRE_CONTROL")
            .env("KUBECONFIG", plane.kubeconfig_file(ADMIN).unwrap())
            .output()
            .unwrap()
    };
    let status = run(&["status", "-n", "ctl", "-o", "json"]);
    assert_eq!(status.status.code(), Some(0), "{}", fault(&status));
    let said: Value = serde_json::from_slice(&status.stdout).unwrap();
    assert!(said.to_string().contains("demo"), "{said}");
    let new = store.0.path().join("new.yaml");
    fs::write(&new, NETWORK.replace("hub: hub-a", "hub: hub-b")).unwrap();
    let plan = run(&["--control", "kube:shared", "-n", "ctl", "plan", "-f", new.to_str().unwrap()]);
    assert_eq!(plan.status.code(), Some(0), "{}", fault(&plan));
    assert!(text(&plan).contains("hub-b"), "{}", text(&plan));
    let missing = run(&["--control", "kube:nowhere", "status"]);
    assert_eq!(missing.status.code(), Some(1));
    assert!(fault(&missing).contains("nowhere"), "{}", fault(&missing));
}
