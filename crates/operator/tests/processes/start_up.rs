//! What the program says when it can't start. The tests refuse messages without a next step.

use std::{fs, process::Command};

use crate::fleet::{cannot, run};

#[test]
fn what_is_missing_is_named_with_the_next_step() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| format!("dir:{}", folder.path().join(name).display());
    fs::create_dir_all(folder.path().join("local")).unwrap();
    let (missing, local) = (path("missing"), path("local"));
    let worker = ["worker", "--gateway", "a", "--local", &local, "--control"];
    let cases: [(&[&str], &[&str], &[&str]); 6] = [
        (&["controller", "--control", "kube:no-such"], &[], &["\"no-such\"", "kubectl config get-contexts"]),
        (&worker, &["kube:no-such"], &["\"no-such\"", "KUBECONFIG"]),
        (&["controller", "--once", "--control", &missing], &[], &["missing"]),
        (&worker, &[&missing], &["missing"]),
        (&worker, &["/srv"], &["dir:PATH"]),
        (
            &["--log-level", "!", "controller", "--control", &local],
            &[],
            &["--log-level", "error, warn, info"],
        ),
    ];
    for (first, second, words) in cases {
        let arguments: Vec<&str> = first.iter().chain(second).copied().collect();
        let run = run(None, &folder.path().join("run"), &arguments, &[]);
        assert_ne!(run.code, 0, "{arguments:?}");
        for word in words {
            assert!(run.log.contains(word), "{arguments:?}: {}", run.log);
        }
    }
}

#[test]
fn v14_a_key_file_that_is_no_key_is_left_alone_and_named() {
    if cannot() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let (control, local) = (folder.path().join("control"), folder.path().join("local"));
    for made in [&control, &local] {
        fs::create_dir_all(made).unwrap();
    }
    let key = local.join("private.key");
    fs::write(&key, "broken\n").unwrap();
    let (control, local) = (format!("dir:{}", control.display()), format!("dir:{}", local.display()));
    let arguments = ["worker", "--once", "--gateway", "a", "--control", &control, "--local", &local];
    let run = run(None, &folder.path().join("run"), &arguments, &[]);
    assert_eq!(run.code, 1, "{run:#?}");
    assert!(
        run.log.contains("holds no WireGuard private key") && run.log.contains("private.key"),
        "{}",
        run.log
    );
    assert_eq!(fs::read_to_string(&key).unwrap(), "broken\n");
}

/// As in a container that was not given the capability.
#[test]
fn without_net_admin_worker_and_dataplane_say_what_to_add() {
    if cannot() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let place = format!("dir:{}", folder.path().display());
    let socket = folder.path().join("dataplane.sock").display().to_string();
    let worker = ["worker", "--once", "--gateway", "a", "--control", &place, "--local", &place];
    for arguments in [&worker[..], &["dataplane", "--socket", &socket]] {
        let mut command = Command::new("setpriv");
        command.args(["--bounding-set=-net_admin", env!("CARGO_BIN_EXE_spanwire")]).args(arguments);
        let output = command.output().unwrap();
        let log = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(1), "{log}");
        let words = format!("NET_ADMIN is missing: without it the {}", arguments[0]);
        assert!(log.contains(&words) && log.contains("add: [NET_ADMIN]"), "{log}");
    }
}
