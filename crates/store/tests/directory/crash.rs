//! Kills at any moment: the old content or the new, and what was left is swept. It refuses to sample one moment only.

use std::{
    fs,
    process::{Child, Command},
    time::Duration,
};

use spanwire_engine::port::{ControllerStore, LocalStore};
use spanwire_store::dir::Controller;

use crate::sandbox::{Sandbox, eventually, intent, name, record};

#[tokio::test]
async fn a_temporary_file_left_by_a_kill_is_ignored_and_swept() {
    let sandbox = Sandbox::declared();
    let store = sandbox.controller();
    store.write_intent(&intent("demo", "spoke-1"), None).await.unwrap();
    let before = store.read().await.unwrap();
    for folder in ["gateways", "gatewaynetworks", "workersliceconfigs"] {
        sandbox.put(&format!("{folder}/.tmp-00ff"), "apiVersion: spanwire.dev/v1al");
    }
    assert_eq!(store.read().await.unwrap(), before);
    for folder in ["gateways", "gatewaynetworks", "workersliceconfigs"] {
        assert!(!sandbox.has(&format!("{folder}/.tmp-00ff")), "{folder}");
    }
    let local = Sandbox::new();
    local.local().apply(&record("hub-a")).await.unwrap();
    local.put("tunnellinks/.tmp-00ff", "half");
    local.put(
        "tunnellinks/demo.hub-b.mesh.status.worker.yaml",
        &local.text("tunnellinks/demo.hub-a.mesh.status.worker.yaml"),
    );
    assert_eq!(local.local().read().await.unwrap().links.len(), 1, "a status without its link is none");
    assert!(!local.has("tunnellinks/.tmp-00ff"));
    assert!(!local.has("tunnellinks/demo.hub-b.mesh.status.worker.yaml"));
}

#[tokio::test]
async fn a_link_without_its_status_yet_is_a_new_link() {
    let sandbox = Sandbox::new();
    sandbox.local().apply(&record("hub-a")).await.unwrap();
    fs::remove_file(sandbox.path("tunnellinks/demo.hub-a.mesh.status.worker.yaml")).unwrap();
    let recorded = sandbox.local().read().await.unwrap();
    let link = recorded.links.values().next().unwrap();
    assert_eq!(link.status.state, spanwire_engine::LinkState::Pending);
    assert!(!link.status.connected_once);
}

const WRITER: &str = "SPANWIRE_TEST_WRITER_IN";

/// Not a test of its own: the process that `a_killed_writer_leaves_old_or_new` kills.
#[tokio::test]
async fn writer_until_killed() {
    let Ok(root) = std::env::var(WRITER) else { return };
    let store = Controller::open(root).unwrap();
    let mut round = 0;
    loop {
        round += 1;
        let mut wanted = intent("demo", "spoke-1");
        wanted.peers = Some((0..round % 50).map(|peer| format!("peer-{peer}")).collect());
        let view = store.read().await.unwrap();
        let meta = view.intents.values().next().map(|view| view.meta.clone());
        store.write_intent(&wanted, meta.as_ref()).await.unwrap();
    }
}

fn start_writer(sandbox: &Sandbox) -> Child {
    Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "crash::writer_until_killed", "--nocapture", "--test-threads=1"])
        .env(WRITER, sandbox.root())
        .stdout(std::process::Stdio::null())
        .spawn()
        .unwrap()
}

#[tokio::test]
async fn a_killed_writer_leaves_old_or_new() {
    let sandbox = Sandbox::declared();
    let store = sandbox.controller();
    let key = (name("demo"), name("spoke-1"));
    let mut last = 0;
    for kill in 0..12 {
        let mut writer = start_writer(&sandbox);
        eventually("the writer has written", async || {
            let view = store.read().await.unwrap();
            assert_eq!(view.unreadable, []);
            view.intents.get(&key).filter(|view| view.meta.generation > last + 3).map(drop)
        })
        .await;
        tokio::time::sleep(Duration::from_micros(700 * kill)).await;
        writer.kill().unwrap();
        writer.wait().unwrap();
        let view = store.read().await.unwrap();
        assert_eq!(view.unreadable, [], "kill {kill}");
        assert!(view.intents[&key].meta.generation > last, "kill {kill}");
        last = view.intents[&key].meta.generation;
        let left = fs::read_dir(sandbox.path("workersliceconfigs")).unwrap();
        let left =
            left.filter(|entry| entry.as_ref().unwrap().file_name().to_string_lossy().starts_with(".tmp-"));
        assert_eq!(left.count(), 0, "kill {kill}");
    }
}
