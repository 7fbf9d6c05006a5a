//! A worker whose own /proc/sys is read-only, as in a container without privileges. The tests refuse to leave the mounts of
//! this machine other than they were: the worker has a mount namespace of its own.

use std::{fs, path::Path};

use spanwire_testkit::process::{Process, Program};

use crate::fleet::{Fleet, LIMIT, Member, SPANWIRE, cannot};

/// Mounts the switches at `$1`, makes /proc/sys read-only and becomes the rest of the line.
const CONTAINER: &str = "mount --bind /proc/sys/net \"$1\" && mount --bind /proc/sys /proc/sys && \
                         mount -o remount,bind,ro /proc/sys && shift && exec \"$@\"";

/// `worker --once` in such a container, with the host's switches at `mounted`. Its exit code and log.
fn once(member: &Member, mounted: &Path, more: &[&str]) -> (i32, String) {
    let log = member.folder.join("container.log");
    let _ = fs::remove_file(&log);
    let mut arguments: Vec<std::ffi::OsString> =
        ["--mount", "--propagation", "private", "sh", "-ec", CONTAINER, "sh"].map(Into::into).into();
    arguments.extend([mounted.into(), SPANWIRE.into()]);
    let more: Vec<&str> = ["--once"].into_iter().chain(more.iter().copied()).collect();
    arguments.extend(member.arguments(&more).into_iter().map(Into::into));
    let mut process = Process::start(Program {
        name: "a worker in a container".to_owned(),
        path: "/usr/bin/unshare".into(),
        arguments,
        variables: Vec::new(),
        host: Some(member.host.clone()),
        log: log.clone(),
    })
    .unwrap();
    let status = process.wait(LIMIT).unwrap().expect("it ends");
    (status.code().unwrap_or(-1), fs::read_to_string(log).unwrap())
}

#[test]
fn switches_are_set_where_the_host_s_are_mounted_and_a_read_only_place_is_named() {
    if cannot() {
        return;
    }
    let fleet = Fleet::new();
    let hub = &fleet.members[0];
    let mounted = hub.folder.join("host-sysctls");
    fs::create_dir(&mounted).unwrap();
    hub.host.set_sysctl("net/ipv4/ip_forward", "0").unwrap();
    for member in &fleet.members {
        let _ = (fleet.controller(), member.once());
    }
    hub.host.set_sysctl("net/ipv4/ip_forward", "0").unwrap();
    let forwards = || hub.host.sysctl("net/ipv4/ip_forward").unwrap();
    fleet.declare("mesh");
    let _ = fleet.controller();
    let (code, log) = once(hub, &mounted, &[]);
    assert_eq!(code, 1, "{log}");
    for words in ["could not set /proc/sys/net/", "read-only", "--sysctl-dir"] {
        assert!(log.contains(words), "{words}: {log}");
    }
    let place = mounted.display().to_string();
    let (code, log) = once(hub, &mounted, &["--sysctl-dir", &place]);
    assert!([0, 75].contains(&code), "{code}: {log}");
    assert_eq!(forwards(), "1", "{log}");
    let elsewhere = hub.folder.display().to_string();
    let run = hub.worker(&["--once", "--sysctl-dir", &elsewhere]);
    assert!(run.code == 1 && run.log.contains(&elsewhere) && run.log.contains("--sysctl-dir"), "{run:#?}");
}
