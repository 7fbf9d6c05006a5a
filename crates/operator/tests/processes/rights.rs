//! The processes with the rights that the chart gives them: NET_ADMIN and no other capability. The tests refuse to believe
//! it of a process that holds more.

use std::{ffi::OsString, fs, time::Duration};

use spanwire_testkit::process::{Process, Program};

use crate::fleet::{Fleet, LIMIT, Member, SPANWIRE, cannot, wait_until};

const SETPRIV: [&str; 3] = ["--inh-caps=-all,+net_admin", "--bounding-set=-all,+net_admin", "--no-new-privs"];
/// The bit of NET_ADMIN, as /proc shows it.
const NET_ADMIN: &str = "0000000000001000";

/// Starts the program on a member's host as the chart does.
fn start(member: &Member, name: &str, arguments: &[String]) -> Process {
    let words = SETPRIV.iter().chain(&[SPANWIRE]).map(OsString::from);
    let process = Process::start(Program {
        name: name.to_owned(),
        path: "setpriv".into(),
        arguments: words.chain(arguments.iter().map(OsString::from)).collect(),
        variables: Vec::new(),
        host: Some(member.host.clone()),
        log: member.folder.join(format!("{name}.log")),
    });
    process.unwrap()
}

fn dataplane(member: &mut Member) {
    member.dataplane.kill().unwrap();
    let socket = member.folder.join("dataplane.sock").display().to_string();
    member.dataplane = start(member, "narrow-dataplane", &["dataplane".into(), "--socket".into(), socket]);
}

fn capabilities(process: &Process) -> Vec<String> {
    let status = fs::read_to_string(format!("/proc/{}/status", process.pid())).unwrap();
    let lines = status.lines().filter_map(|line| line.strip_prefix("Cap")?.split_once(":\t"));
    lines.filter(|(set, _)| ["Prm", "Eff", "Bnd"].contains(set)).map(|(_, bits)| bits.to_owned()).collect()
}

#[test]
fn net_admin_is_enough_to_work_and_to_uninstall_after_the_dataplane_has_gone() {
    if cannot() {
        return;
    }
    let mut fleet = Fleet::new();
    fleet.members.iter_mut().for_each(dataplane);
    let [hub, spoke] = &mut fleet.members[..] else { panic!("two members") };
    // So that there is a switch to move, and to put back.
    spoke.host.set_sysctl("net/ipv4/conf/all/rp_filter", "1").unwrap();
    let mut workers = [&*hub, &*spoke].map(|member| start(member, "narrow", &member.arguments(&[])));
    for process in workers.iter().chain([&hub.dataplane, &spoke.dataplane]) {
        wait_until("the program has taken the place of setpriv", || {
            let name = fs::read_to_string(format!("/proc/{}/comm", process.pid())).unwrap_or_default();
            name.trim() == "spanwire"
        });
        assert_eq!(capabilities(process), [NET_ADMIN; 3]);
    }
    let control = hub.arguments(&[]).iter().find(|word| word.starts_with("dir:")).cloned().unwrap();
    let _controller = start(hub, "narrow-controller", &["controller".into(), "--control".into(), control]);
    wait_until("the spoke reaches the hub", || spoke.reaches(hub));
    assert_eq!(spoke.host.sysctl("net/ipv4/conf/all/rp_filter").unwrap(), "0");

    // As the chart's Job does it: after both have ended, and without the control store.
    workers[1].terminate(Duration::from_secs(5)).unwrap();
    spoke.dataplane.terminate(Duration::from_secs(5)).unwrap();
    let mut arguments = spoke.arguments(&["--uninstall"]);
    let place = arguments.iter().position(|word| word.starts_with("dir:")).unwrap();
    arguments[place] = "dir:/nonexistent".to_owned();
    let mut uninstall = start(spoke, "uninstall", &arguments);
    let code = uninstall.wait(LIMIT).unwrap().and_then(|status| status.code());
    assert_eq!(code, Some(0), "{}", fs::read_to_string(spoke.folder.join("uninstall.log")).unwrap());
    assert!(spoke.devices().is_empty(), "{:?}", spoke.devices());
    assert_eq!(spoke.host.output("ip", &["route", "show", "table", "all", "proto", "83"], "").unwrap(), "");
    assert!(!spoke.host.output("nft", &["list", "tables"], "").unwrap().contains("spanwire"));
    assert_eq!(spoke.host.sysctl("net/ipv4/conf/all/rp_filter").unwrap(), "1");
    assert_eq!(fs::read_dir(spoke.folder.join("local/tunnellinks")).unwrap().count(), 0);
}
