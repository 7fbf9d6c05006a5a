//! The lab itself, with real namespaces. Where they are forbidden the tests say so and refuse to judge.
#![allow(clippy::unwrap_used, reason = "an error here is a failed test")]

use std::{net::IpAddr, path::Path, time::Duration};

use spanwire_testkit::{
    lab::{Host, Lab},
    process::{Process, Program},
};

fn lab() -> Option<Lab> {
    if let Some(why) = Lab::why_not() {
        eprintln!("skipped: {why}");
        return None;
    }
    Some(Lab::new().unwrap())
}

fn reaches(from: &Host, to: &Host, address: IpAddr) -> bool {
    let server = to.udp_socket((address, 0).into()).unwrap();
    server.set_read_timeout(Some(Duration::from_millis(300))).unwrap();
    let here = if address.is_ipv4() { from.address() } else { from.address_v6() };
    let client = from.udp_socket((here, 0).into()).unwrap();
    client.send_to(b"hello", server.local_addr().unwrap()).unwrap();
    let mut buffer = [0; 16];
    server.recv(&mut buffer).is_ok()
}

#[test]
fn hosts_reach_each_other_over_both_families_until_cut_off() {
    let Some(mut lab) = lab() else { return };
    let (a, b) = (lab.host("a").unwrap(), lab.host("b").unwrap());
    assert!(reaches(&a, &b, b.address()));
    assert!(reaches(&a, &b, b.address_v6()));
    b.cut_off().unwrap();
    assert!(!reaches(&a, &b, b.address()));
    b.reconnect().unwrap();
    assert!(reaches(&a, &b, b.address()));
}

#[test]
fn one_pair_can_be_parted_alone() {
    let Some(mut lab) = lab() else { return };
    let [a, b, c] = ["a", "b", "c"].map(|name| lab.host(name).unwrap());
    a.deafen(b.address()).unwrap();
    assert!(!reaches(&b, &a, a.address()));
    assert!(reaches(&c, &a, a.address()));
    a.hear_again().unwrap();
    assert!(reaches(&b, &a, a.address()));
}

#[test]
fn settings_belong_to_the_host_alone() {
    let Some(mut lab) = lab() else { return };
    let host = lab.host("a").unwrap();
    let before = std::fs::read_to_string("/proc/sys/net/ipv4/conf/all/rp_filter").unwrap();
    host.set_sysctl("net/ipv4/conf/all/rp_filter", if before.trim() == "1" { "2" } else { "1" }).unwrap();
    assert_ne!(host.sysctl("net/ipv4/conf/all/rp_filter").unwrap(), before.trim());
    assert_eq!(std::fs::read_to_string("/proc/sys/net/ipv4/conf/all/rp_filter").unwrap(), before);
    assert_eq!(host.sysctl("net/ipv4/ip_forward").unwrap(), "1");
}

#[test]
fn a_host_behind_nat_is_seen_with_the_routers_address() {
    let Some(mut lab) = lab() else { return };
    let server = lab.host("server").unwrap();
    let (inside, router) = lab.host_behind_nat("laptop").unwrap();
    let listener = server.udp_socket((server.address(), 0).into()).unwrap();
    listener.set_read_timeout(Some(Duration::from_secs(2))).unwrap();
    let client = inside.udp_socket((inside.address(), 0).into()).unwrap();
    client.send_to(b"hello", listener.local_addr().unwrap()).unwrap();
    let (_, from) = listener.recv_from(&mut [0; 16]).unwrap();
    assert_eq!(from.ip(), router.address());
}

#[test]
fn the_cni_firewall_masquerades_what_is_forwarded() {
    let Some(mut lab) = lab() else { return };
    let host = lab.host("a").unwrap();
    host.cni_firewall().unwrap();
    let rules = host.output("nft", &["list", "ruleset"], "").unwrap();
    assert!(rules.contains("masquerade") && rules.contains("ct state invalid"), "{rules}");
}

fn shell(host: Option<&Host>, directory: &Path, script: &str) -> Process {
    Process::start(Program {
        name: "shell".into(),
        path: "/bin/sh".into(),
        arguments: vec!["-c".into(), script.into()],
        variables: Vec::new(),
        host: host.cloned(),
        log: directory.join("log"),
    })
    .unwrap()
}

#[test]
fn children_live_in_their_host_with_sockets_of_their_own() {
    let Some(mut lab) = lab() else { return };
    let directory = tempfile::tempdir().unwrap();
    let (a, b) = (lab.host("a").unwrap(), lab.host("b").unwrap());
    let script = "touch /run/wireguard/mine.sock; ls /run/wireguard; ip -br address show eth0";
    assert!(
        shell(Some(&a), directory.path(), script).wait(Duration::from_secs(5)).unwrap().unwrap().success()
    );
    let log = std::fs::read_to_string(directory.path().join("log")).unwrap();
    assert!(log.contains("mine.sock") && log.contains(&a.address().to_string()), "{log}");
    let seen = |host: &Host| host.run(|| Path::new("/run/wireguard/mine.sock").exists()).unwrap();
    assert!(seen(&a) && !seen(&b) && !Path::new("/run/wireguard/mine.sock").exists());
}

#[test]
fn children_can_be_killed_stopped_and_started_again() {
    let directory = tempfile::tempdir().unwrap();
    let mut child = shell(None, directory.path(), "exec sleep 60");
    let first = child.pid();
    assert!(child.usage().unwrap().resident > 0);
    assert!(!child.kill().unwrap().success());
    child.restart().unwrap();
    assert_ne!(child.pid(), first);
    assert!(child.status().unwrap().is_none());
    child.terminate(Duration::from_secs(5)).unwrap();
    assert!(child.status().unwrap().is_some());
    let mut deaf = shell(None, directory.path(), "trap '' TERM; echo ready; while :; do sleep 1; done");
    while !std::fs::read_to_string(deaf.log()).unwrap().contains("ready") {
        std::thread::yield_now();
    }
    assert!(deaf.terminate(Duration::from_millis(100)).is_err());
}
