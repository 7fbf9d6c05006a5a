//! Starting, stopping and killing workers that run. The tests refuse to wait without a limit.

use std::{
    fs,
    time::{Duration, Instant},
};

use crate::fleet::{Fleet, cannot, wait_until};

#[test]
fn w2_sigterm_ends_within_5_seconds_and_leaves_every_link_as_it_is() {
    if cannot() {
        return;
    }
    let fleet = Fleet::new();
    let [hub, spoke] = &fleet.members[..] else { panic!("two members") };
    let mut controller = fleet.start_controller();
    let mut workers = [hub.start(), spoke.start()];
    wait_until("the spoke reaches the hub", || spoke.reaches(hub));
    let before = spoke.devices();
    let start = Instant::now();
    for process in workers.iter_mut().chain([&mut controller]) {
        assert!(process.terminate(Duration::from_secs(5)).unwrap().success());
    }
    assert!(start.elapsed() < Duration::from_secs(5));
    assert_eq!(spoke.devices(), before);
    assert_eq!(spoke.reach(hub), Ok(()));
}

#[test]
fn w8_a_second_worker_stands_by_and_takes_over() {
    if cannot() {
        return;
    }
    let fleet = Fleet::new();
    let spoke = &fleet.members[1];
    let mut first = spoke.start();
    let facts = fleet.control().join("gateways/spoke-1.status.worker.yaml");
    wait_until("the first worker acts", || facts.exists());
    let run = spoke.once();
    assert_eq!(run.code, 75, "{run:#?}");
    assert!(run.verdict["waitsFor"].to_string().contains("the other worker"), "{run:#?}");
    let refused = spoke.worker(&["--uninstall"]);
    assert!(refused.code == 1 && refused.log.contains("stop it before --uninstall"), "{refused:#?}");
    let second = spoke.start();
    let log = spoke.folder.join("running.log");
    wait_until("the second stands by", || fs::read_to_string(&log).unwrap().contains("standing by"));
    first.kill().unwrap();
    fs::remove_file(&facts).unwrap();
    wait_until("the second acts", || facts.exists());
    assert!(second.is_running());
}

#[test]
fn d7_a_device_deleted_by_hand_comes_back_at_once() {
    if cannot() {
        return;
    }
    let fleet = Fleet::new();
    let [hub, spoke] = &fleet.members[..] else { panic!("two members") };
    let _running = fleet.start_all();
    let device = spoke.devices().remove(0);
    spoke.host.delete_device(&device).unwrap();
    let start = Instant::now();
    wait_until("the spoke reaches the hub again", || spoke.reaches(hub));
    assert!(start.elapsed() < Duration::from_secs(20), "{:?}", start.elapsed());
}

/// Routes come and go by thousands on hosts of other software. They may matter to us, so one pass looks at all of them,
/// within ten seconds.
#[test]
fn ten_thousand_foreign_route_changes_cost_one_pass_at_most() {
    if cannot() {
        return;
    }
    let fleet = Fleet::new();
    let [hub, spoke] = &fleet.members[..] else { panic!("two members") };
    let _others = (fleet.start_controller(), hub.start());
    let worker = spoke.start_with(&["--log-level", "debug"]);
    wait_until("the spoke reaches the hub", || spoke.reaches(hub));
    let passes = || fs::read_to_string(worker.log()).unwrap().matches("nothing to write").count();
    // Passes that something asked for have ended when none has come for a while.
    let at_rest = || {
        let mut last = (passes(), Instant::now());
        wait_until("the worker is at rest", || {
            let now = passes();
            if now != last.0 {
                last = (now, Instant::now());
            }
            last.1.elapsed() > Duration::from_secs(2)
        });
        (last.0, worker.usage().unwrap().processor, Instant::now())
    };
    let routes = |verb: &str| -> String {
        let line = |n: u32| format!("route {verb} blackhole 198.18.{}.{}/32 table 77\n", n / 250, n % 250);
        (0..5_000).map(line).collect()
    };
    let before = at_rest();
    for verb in ["add", "del"] {
        spoke.host.output("ip", &["-batch", "-"], &routes(verb)).unwrap();
    }
    let after = at_rest();
    println!(
        "10,000 foreign route changes: {:?} of the worker's processor time and {} passes in {:?}",
        after.1 - before.1,
        after.0 - before.0,
        after.2 - before.2
    );
    assert!(after.0 - before.0 <= 1, "{} passes", after.0 - before.0);
}

#[test]
fn d7_what_somebody_changes_by_hand_is_put_right_in_about_a_second() {
    if cannot() {
        return;
    }
    let fleet = Fleet::new();
    let [hub, spoke] = &fleet.members[..] else { panic!("two members") };
    let _running = fleet.start_all();
    let device = spoke.devices().remove(0);
    let words = |words: &[&str]| words.iter().map(|word| (*word).to_owned()).collect::<Vec<String>>();
    let output = |command: &[String]| {
        let arguments: Vec<&str> = command.iter().skip(1).map(String::as_str).collect();
        spoke.host.output(&command[0], &arguments, "").unwrap()
    };
    let shown = |command: &[&str]| output(&words(command));
    let state = || {
        let told = ["allowed-ips", "persistent-keepalive"]
            .map(|what| spoke.host.output("wg", &["show", &device, what], "").unwrap_or_default());
        format!(
            "{told:?} {} {}",
            shown(&["ip", "rule"]),
            shown(&["ip", "route", "show", "table", "all", "proto", "83"])
        )
    };
    let before = state();
    let peer = shown(&["wg", "show", &device, "peers"]).trim().to_owned();
    let table =
        before.split("table ").nth(1).and_then(|rest| rest.split_whitespace().next()).unwrap().to_owned();
    for (what, command) in [
        ("a peer", words(&["wg", "set", &device, "peer", &peer, "remove"])),
        ("a keepalive", words(&["wg", "set", &device, "peer", &peer, "persistent-keepalive", "0"])),
        ("the routes over the device", words(&["ip", "route", "flush", "table", &table, "dev", &device])),
        ("the rule for what arrives", words(&["ip", "rule", "del", "iif", &device])),
        ("the device", words(&["ip", "link", "del", &device])),
    ] {
        // It may be put right before anybody can look: the worker says that it wrote.
        let passes =
            || fs::read_to_string(spoke.folder.join("running.log")).unwrap().matches("pass done").count();
        let done = passes();
        output(&command);
        let start = Instant::now();
        wait_until("the worker wrote and all is as before", || passes() > done && state() == before);
        println!("{what}: put right after {:?}", start.elapsed());
    }
    wait_until("the spoke reaches the hub again", || spoke.reaches(hub));
}

#[test]
fn d12_a_worker_killed_again_and_again_loses_no_session() {
    if cannot() {
        return;
    }
    let fleet = Fleet::new();
    let [hub, spoke] = &fleet.members[..] else { panic!("two members") };
    let _running = [fleet.start_controller(), hub.start()];
    let mut worker = spoke.start();
    wait_until("the spoke reaches the hub", || spoke.reaches(hub));
    let device = spoke.devices().remove(0);
    let index = spoke.host.device_index(&device).unwrap();
    let shakes = || spoke.host.output("wg", &["show", &device, "latest-handshakes"], "").unwrap();
    let session = shakes();
    for _ in 0..5 {
        worker.kill().unwrap();
        worker.restart().unwrap();
        assert_eq!(spoke.reach(hub), Ok(()));
    }
    assert_eq!((spoke.host.device_index(&device).unwrap(), shakes()), (index, session));
}

#[test]
fn w10_at_rest_no_resync_writes_a_file() {
    if cannot() {
        return;
    }
    let fleet = Fleet::new();
    fleet.converge();
    let often = ["--resync", "1", "--log-level", "debug"];
    let [hub, spoke] = &fleet.members[..] else { panic!("two members") };
    let _running = [fleet.start_controller_with(&often), hub.start_with(&often), spoke.start_with(&often)];
    let logs = [
        fleet.control().with_file_name("controller.log"),
        hub.folder.join("running.log"),
        spoke.folder.join("running.log"),
    ];
    let resynced = |times: usize| {
        logs.iter().all(|log| {
            fs::read_to_string(log).is_ok_and(|text| text.matches("cause=\"resync\"").count() >= times)
        })
    };
    wait_until("all go on", || resynced(2));
    let before = fleet.files();
    wait_until("more resyncs", || resynced(12));
    assert_eq!(fleet.files(), before);
}
