//! Files that cannot be read: named with path and line, unknown, and in nobody's way.

use std::{fs, os::unix::fs::symlink};

use spanwire_engine::{
    Class, NetworkStatus,
    port::{ControllerStore, Fault, LocalStore, WorkerStore},
};
use spanwire_store::dir::{Controller, Error, Local};

use crate::sandbox::{NETWORK, Sandbox, gateway, intent, name, only, record};

#[tokio::test]
async fn n5_a_bad_file_is_unknown_and_the_others_are_read() {
    for (text, said) in [
        (
            NETWORK.replace("members", "memebers"),
            "line 7, column 3: spec: unknown field \"memebers\", did you mean \"members\"?",
        ),
        (
            NETWORK.replace("hub: hub-a", "hub: 5"),
            "line 6, column 8: spec.hub: expected text, found the number 5: write it in quotes",
        ),
        (NETWORK.replace("cidr:", "hub: x\n  cidr:"), "line 8, column 3: the key \"hub\" is given twice"),
        (
            NETWORK.replace("GatewayNetwork", "Gateway"),
            "line 2, column 7: kind: expected GatewayNetwork, found Gateway",
        ),
        (
            NETWORK.replace("v1alpha1", "v1"),
            "line 1, column 13: apiVersion: expected spanwire.dev/v1alpha1, found spanwire.dev/v1",
        ),
        (
            NETWORK.replace("name: demo", "name: dmeo"),
            "line 3, column 18: metadata.name: expected \"demo\" as the file is called, found \"dmeo\"",
        ),
        (
            NETWORK.split("spec:").next().unwrap().to_owned(),
            "line 1, column 1: the field \"spec\" is missing",
        ),
        (String::new(), "line 1, column 1: expected a mapping, found nothing"),
    ] {
        let sandbox = Sandbox::declared();
        sandbox.put("gatewaynetworks/demo.yaml", &text);
        sandbox.put("gatewaynetworks/other.yaml", &NETWORK.replace("name: demo", "name: other"));
        let view = sandbox.view().await;
        let (kind, object, cause) = only(&view.unreadable);
        assert_eq!((kind, object), ("gatewaynetworks", "demo"));
        assert_eq!(cause.strip_prefix("gatewaynetworks/demo.yaml: "), Some(said));
        assert_eq!(view.networks.keys().map(|name| name.as_str()).collect::<Vec<_>>(), ["other"]);
        assert_eq!(view.gateways.len(), 2);
    }
}

#[tokio::test]
async fn a_file_that_ends_anywhere_is_never_absent() {
    let whole = NETWORK.trim_end();
    for end in 0..whole.len() {
        let sandbox = Sandbox::new();
        sandbox.put("gatewaynetworks/demo.yaml", &whole[..end]);
        let view = sandbox.controller().look().await.unwrap();
        assert_eq!(view.networks.len() + view.unreadable.len(), 1, "{}", &whole[..end]);
    }
}

#[tokio::test]
async fn bytes_that_are_no_text_have_a_line() {
    let sandbox = Sandbox::declared();
    fs::write(sandbox.path("gateways/hub-a.yaml"), b"apiVersion: x\nkind: \xff\xfe\n").unwrap();
    let view = sandbox.view().await;
    assert_eq!(only(&view.unreadable), ("gateways", "hub-a", "gateways/hub-a.yaml: line 2: not UTF-8"));
}

#[tokio::test]
async fn what_is_no_file_is_not_opened() {
    let sandbox = Sandbox::declared();
    let file = sandbox.path("gateways/hub-a.yaml");
    fs::remove_file(&file).unwrap();
    fs::create_dir(&file).unwrap();
    assert_eq!(only(&sandbox.view().await.unreadable).2, "gateways/hub-a.yaml: not a regular file");
    fs::remove_dir(&file).unwrap();
    nix::unistd::mkfifo(&file, nix::sys::stat::Mode::S_IRWXU).unwrap();
    assert_eq!(only(&sandbox.view().await.unreadable).2, "gateways/hub-a.yaml: not a regular file");
    fs::remove_file(&file).unwrap();
    symlink("nowhere", &file).unwrap();
    let view = sandbox.view().await;
    assert_eq!(only(&view.unreadable).1, "hub-a", "a dangling link is there and cannot be read");
}

#[tokio::test]
async fn files_under_another_name_are_not_silently_ignored() {
    let sandbox = Sandbox::declared();
    fs::rename(sandbox.path("gateways/hub-a.yaml"), sandbox.path("gateways/hub-a.yml")).unwrap();
    let view = sandbox.view().await;
    assert_eq!(
        only(&view.unreadable),
        ("gateways", "hub-a", "gateways/hub-a.yml: rename it to end in .yaml")
    );
    sandbox.put("gateways/Hub_B.yaml", &gateway("Hub_B"));
    let view = sandbox.view().await;
    let cause = &view.unreadable[0];
    assert_eq!(cause.name, "Hub_B");
    assert!(cause.cause.contains("is not a name"), "{cause:?}");
}

#[tokio::test]
async fn fields_that_the_engine_cannot_hold_have_a_line() {
    let sandbox = Sandbox::declared();
    let text = "apiVersion: spanwire.dev/v1alpha1\nkind: WorkerSliceConfig\nmetadata: {name: demo.spoke-1}\nspec:\n  \
        sliceName: demo\n  gateway: spoke-1\n  peers: [hub-a]\n";
    for (extra, said) in [
        ("  hubs: [hub-a, Hub_B]\n", "line 8, column 17: spec.hubs[1]: \"Hub_B\" is not a name"),
        ("  topology: ring\n", "line 8, column 13: spec.topology: topology \"ring\" is not known"),
        ("  wideCidrs:\n  - 10.0.0.0\n", "line 9, column 5: spec.wideCidrs[0]: \"10.0.0.0\" is not a prefix"),
        (
            "  tunnelAddress: 10.0.0.1/24\n",
            "line 8, column 18: spec.tunnelAddress: \"10.0.0.1/24\" is not an address",
        ),
    ] {
        sandbox.put("workersliceconfigs/demo.spoke-1.yaml", &format!("{text}{extra}"));
        for unreadable in [
            sandbox.view().await.unreadable,
            sandbox.worker().read(&name("spoke-1")).await.unwrap().unreadable,
        ] {
            let (_, object, cause) = only(&unreadable);
            assert_eq!(object, "demo.spoke-1");
            assert!(cause.starts_with(&format!("workersliceconfigs/demo.spoke-1.yaml: {said}")), "{cause}");
        }
        let other = sandbox.worker().read(&name("hub-a")).await.unwrap();
        assert_eq!(other.unreadable, [], "intents of others are not read");
    }
}

#[tokio::test]
async fn an_intent_under_another_name_is_unknown_to_whom_it_may_concern() {
    let sandbox = Sandbox::declared();
    let text = "apiVersion: spanwire.dev/v1alpha1\nkind: WorkerSliceConfig\nmetadata: {name: FILE}\nspec:\n  \
        sliceName: demo\n  gateway: spoke-1\n";
    sandbox.put("workersliceconfigs/mine.yaml", &text.replace("FILE", "mine"));
    for unreadable in
        [sandbox.view().await.unreadable, sandbox.worker().read(&name("spoke-1")).await.unwrap().unreadable]
    {
        let names: Vec<_> = unreadable.iter().map(|object| object.name.as_str()).collect();
        assert_eq!(names, ["demo.spoke-1", "mine"], "unknown under both names");
        assert!(unreadable[0].cause.ends_with(
            "workersliceconfigs/mine.yaml: line 3, column 18: metadata.name: call the file and the object \
             <network>.<gateway>"
        ));
    }
    assert_eq!(sandbox.worker().read(&name("hub-a")).await.unwrap().unreadable, []);
    fs::remove_file(sandbox.path("workersliceconfigs/mine.yaml")).unwrap();
    sandbox.put("workersliceconfigs/other.spoke-1.yaml", &text.replace("FILE", "other.spoke-1"));
    let view = sandbox.worker().read(&name("spoke-1")).await.unwrap();
    assert!(view.intents.is_empty());
    let names: Vec<_> = view.unreadable.iter().map(|object| object.name.as_str()).collect();
    assert_eq!(names, ["demo.spoke-1", "other.spoke-1"]);
    assert!(view.unreadable[0].cause.contains("speaks of \"demo.spoke-1\""), "{view:?}");
}

#[tokio::test]
async fn a_broken_status_does_not_start_the_network_afresh() {
    let sandbox = Sandbox::declared();
    let store = sandbox.controller();
    let before = store.read().await.unwrap().networks[&name("demo")].clone();
    let mut status = NetworkStatus { observed_generation: 1, ..NetworkStatus::default() };
    store.write_network_status(&name("demo"), &status, &before.meta).await.unwrap();
    let file = "gatewaynetworks/demo.status.controller.yaml";
    let good = sandbox.text(file);
    let meta = store.read().await.unwrap().networks[&name("demo")].meta.clone();
    sandbox.put(file, &good[..good.len() / 2]);
    let view = store.read().await.unwrap();
    assert!(view.networks.is_empty(), "unknown");
    assert_eq!(only(&view.unreadable).1, "demo");
    status.observed_generation = 2;
    let error = store.write_network_status(&name("demo"), &status, &meta).await.unwrap_err();
    assert!(matches!(error, Error::Unreadable { .. }), "{error}");
    assert_eq!(error.class(), Class::NeedsHuman);
    assert_eq!(sandbox.text(file), good[..good.len() / 2], "not written over");
    sandbox.put(file, &good);
    assert_eq!(store.read().await.unwrap().networks[&name("demo")].meta, meta);
}

#[tokio::test]
async fn a_reason_of_a_newer_version_is_not_guessed() {
    let sandbox = Sandbox::new();
    let local = Local::open(sandbox.root()).unwrap();
    local.apply(&record("hub-a")).await.unwrap();
    let file = "tunnellinks/demo.hub-a.mesh.status.worker.yaml";
    sandbox.put(file, &sandbox.text(file).replace("ProbeAnswered", "ProbeAnswerd"));
    let recorded = local.read().await.unwrap();
    assert!(recorded.links.is_empty());
    let (kind, object, cause) = only(&recorded.unreadable);
    assert_eq!((kind, object), ("tunnellinks", "demo.hub-a.mesh"));
    assert!(
        cause.ends_with("status.reason: unknown reason \"ProbeAnswerd\", did you mean \"ProbeAnswered\"?"),
        "{cause}"
    );
}

#[tokio::test]
async fn a_broken_status_of_a_managed_intent_is_said_anew() {
    let sandbox = Sandbox::declared();
    let (store, worker) = (sandbox.controller(), sandbox.worker());
    store.write_intent(&intent("demo", "spoke-1"), None).await.unwrap();
    let (demo, spoke) = (name("demo"), name("spoke-1"));
    let meta = worker.read(&spoke).await.unwrap().intents[&demo].0.meta.clone();
    sandbox.put("workersliceconfigs/demo.spoke-1.status.worker.yaml", "broken: [");
    let controller = store.read().await.unwrap();
    assert!(controller.intents.is_empty(), "to the controller it is unknown");
    assert_eq!(only(&controller.unreadable).1, "demo.spoke-1");
    let seen = worker.read(&spoke).await.unwrap();
    assert_eq!(seen.unreadable, []);
    let status = spanwire_engine::WorkerStatus { observed_generation: 1, ..Default::default() };
    worker.write_intent_status(&spoke, &demo, &status, &meta).await.unwrap();
    assert_eq!(store.read().await.unwrap().unreadable, []);
}

#[tokio::test]
async fn broken_facts_are_not_written_over() {
    let sandbox = Sandbox::declared();
    let (worker, hub) = (sandbox.worker(), name("hub-a"));
    let facts = spanwire_engine::GatewayFacts { key_generation: 3, ..Default::default() };
    worker.write_gateway_facts(&hub, &facts).await.unwrap();
    sandbox.put("gateways/hub-a.status.worker.yaml", "broken: [");
    let view = worker.read(&hub).await.unwrap();
    assert!(
        !view.gateways.contains_key(&hub),
        "unknown, so that no key is made for a generation that is guessed"
    );
    assert_eq!(only(&view.unreadable).1, "hub-a");
    let error = worker.write_gateway_facts(&hub, &Default::default()).await.unwrap_err();
    assert!(matches!(error, Error::Unreadable { .. }), "{error}");
    assert_eq!(sandbox.text("gateways/hub-a.status.worker.yaml"), "broken: [");
}

#[tokio::test]
async fn a_missing_or_closed_directory_is_an_error_and_not_empty() {
    let sandbox = Sandbox::declared();
    let (store, worker) = (sandbox.controller(), sandbox.worker());
    fs::rename(sandbox.root(), sandbox.path("../gone")).unwrap();
    for error in [
        store.read().await.unwrap_err(),
        worker.read(&name("hub-a")).await.unwrap_err(),
        Controller::open(sandbox.root()).unwrap_err(),
    ] {
        assert!(matches!(error, Error::Root { .. }), "{error}");
        assert_eq!(error.class(), Class::Retry);
    }
    fs::write(sandbox.root(), "a file").unwrap();
    assert!(matches!(store.read().await.unwrap_err(), Error::Root { .. }));
}

#[tokio::test]
async fn a_folder_that_is_none_is_an_error_and_a_missing_one_is_not() {
    let sandbox = Sandbox::new();
    assert_eq!(sandbox.view().await, spanwire_engine::port::ControlView::default());
    sandbox.put("gateways", "a file");
    let error = sandbox.controller().read().await.unwrap_err();
    assert!(matches!(error, Error::List { .. }), "{error}");
    assert_eq!(error.class(), Class::Retry);
    fs::remove_file(sandbox.path("gateways")).unwrap();
    symlink("nowhere", sandbox.path("gateways")).unwrap();
    assert!(matches!(sandbox.controller().read().await.unwrap_err(), Error::List { .. }), "a dangling link");
}
