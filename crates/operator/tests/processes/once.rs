//! `--once`, `--dry-run` and `--uninstall` on real devices. They refuse to trust the program's own ledger alone.

use crate::fleet::{Fleet, cannot};

#[test]
fn w1_a_second_once_writes_nothing_at_all() {
    if cannot() {
        return;
    }
    let fleet = Fleet::new();
    fleet.converge();
    let before = fleet.files();
    for member in &fleet.members {
        let run = member.once();
        assert_eq!((run.code, run.writes()), (0, vec![]), "{run:#?}");
    }
    let run = fleet.controller();
    assert_eq!((run.code, run.writes()), (0, vec![]), "{run:#?}");
    assert_eq!(fleet.files(), before);
    let [hub, spoke] = &fleet.members[..] else { panic!("two members") };
    assert!(hub.reaches(spoke) && spoke.reaches(hub));
}

#[test]
fn once_says_what_it_waits_for() {
    if cannot() {
        return;
    }
    let fleet = Fleet::new();
    let [hub, spoke] = &fleet.members[..] else { panic!("two members") };
    assert_eq!(hub.once().code, 0, "nothing is declared for it yet");
    fleet.controller();
    let run = hub.once();
    assert_eq!(run.code, 75, "{run:#?}");
    assert!(run.verdict["waitsFor"].to_string().contains("spoke-1"), "{run:#?}");
    assert_eq!(spoke.devices(), Vec::<String>::new());
}

#[test]
fn a_dry_run_shows_the_steps_and_leaves_host_and_files_alone() {
    if cannot() {
        return;
    }
    let fleet = Fleet::new();
    let [hub, spoke] = &fleet.members[..] else { panic!("two members") };
    spoke.once();
    hub.once();
    fleet.controller();
    hub.host.nft("add table ip spanwire-handover").unwrap();
    let files = fleet.files();
    let run = hub.worker(&["--dry-run"]);
    assert_eq!(run.code, 0, "{run:#?}");
    let steps = run.verdict["steps"].to_string();
    assert!(["swd-", "skd-"].iter().any(|name| steps.contains(&format!("set device {name}"))), "{run:#?}");
    assert_eq!(fleet.files(), files);
    assert_eq!(hub.devices(), Vec::<String>::new());
    let tables = hub.host.output("nft", &["list", "tables"], "").unwrap();
    assert_eq!(tables.trim(), "table ip spanwire-handover", "a handover of a worker that runs is left alone");
}

#[test]
fn d22_uninstall_removes_what_is_ours_and_nothing_else() {
    if cannot() {
        return;
    }
    let fleet = Fleet::new();
    let spoke = &fleet.members[1];
    let state = || {
        let host = &spoke.host;
        let rules = host.output("ip", &["rule"], "").unwrap();
        let routes = host.output("ip", &["route", "show", "table", "all"], "").unwrap();
        (rules, routes, host.output("nft", &["list", "ruleset"], "").unwrap(), spoke.devices())
    };
    spoke.host.output("ip", &["rule", "add", "from", "192.0.2.77", "lookup", "77"], "").unwrap();
    spoke.host.output("ip", &["route", "add", "blackhole", "198.51.100.0/24", "table", "77"], "").unwrap();
    spoke.host.nft("add table inet foreign").unwrap();
    let before = state();
    fleet.converge();
    assert_ne!(state(), before);
    let run = spoke.worker(&["--uninstall"]);
    assert_eq!(run.code, 0, "{run:#?}");
    assert_eq!(state(), before);
    let records = fleet.files().into_keys().filter(|path| path.starts_with(spoke.folder.join("local")));
    let names: Vec<String> =
        records.map(|path| path.file_name().unwrap().to_string_lossy().into_owned()).collect();
    assert_eq!(names, ["private.key", "private.key.generation"]);
    let again = spoke.worker(&["--uninstall"]);
    assert_eq!((again.code, again.writes()), (0, vec![]), "{again:#?}");
}
