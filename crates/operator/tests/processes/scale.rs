//! A thousand links on one hub. The test refuses peers that answer: only this host's work is looked at.

use std::{fmt::Write as _, time::Instant};

use crate::fleet::{Fleet, cannot, far_key, wait_until, write};

const SPOKES: usize = 1_000;

/// Declares the spokes and the hub's intent by hand, as a controller of somebody else could.
fn declare(fleet: &Fleet) {
    let control = fleet.control();
    std::fs::remove_file(control.join("gatewaynetworks/demo.yaml")).unwrap();
    let mut peers = String::new();
    for number in 0..SPOKES {
        let (name, net) =
            (format!("far-{number}"), format!("10.{}.{}.0/24", 100 + number / 250, number % 250));
        let head = format!("apiVersion: spanwire.dev/v1alpha1\nkind: Gateway\nmetadata:\n  name: {name}\n");
        write(&control.join(format!("gateways/{name}.yaml")), &format!("{head}spec:\n  subnets: [{net}]\n"));
        let key = far_key(number);
        let text = format!("{head}status:\n  publicKey: {key}\n  keyGeneration: 1\n");
        write(&control.join(format!("gateways/{name}.status.worker.yaml")), &text);
        let _ = write!(peers, "{name}, ");
    }
    let intent = format!(
        "apiVersion: spanwire.dev/v1alpha1\nkind: WorkerSliceConfig\nmetadata:\n  name: demo.hub-a\nspec:\n  \
         sliceName: demo\n  gateway: hub-a\n  topology: hub-spoke\n  hubs: [hub-a]\n  tunnelAddress: 100.80.0.1\n  \
         peers: [{peers}]\n"
    );
    write(&control.join("workersliceconfigs/demo.hub-a.yaml"), &intent);
}

#[test]
fn w1_a_thousand_links_are_made_once_and_a_second_run_writes_nothing() {
    if cannot() {
        return;
    }
    let fleet = Fleet::new();
    declare(&fleet);
    let hub = &fleet.members[0];
    let start = Instant::now();
    let first = hub.once();
    eprintln!("first: {} writes in {:?}", first.writes().len(), start.elapsed());
    assert_eq!(first.code, 75, "{}", first.log);
    let device = hub.devices().remove(0);
    let peers = hub.host.output("wg", &["show", &device, "peers"], "").unwrap();
    assert_eq!(peers.lines().count(), SPOKES);
    hub.once();
    let (files, start) = (fleet.files(), Instant::now());
    let second = hub.once();
    eprintln!("again: {} writes in {:?}", second.writes().len(), start.elapsed());
    assert_eq!(second.writes(), Vec::<String>::new());
    assert_eq!(fleet.files(), files);
    let worker = hub.start();
    let log = hub.folder.join("running.log");
    wait_until("the worker acts", || {
        std::fs::read_to_string(&log).is_ok_and(|text| text.contains("the worker acts"))
    });
    wait_until("its first pass", || {
        worker.usage().unwrap().processor > std::time::Duration::from_millis(150)
    });
    let resident = [&hub.dataplane, &worker].map(|process| process.usage().unwrap().resident);
    eprintln!("resident: {resident:?} bytes of dataplane and worker");
    assert!(resident.iter().sum::<u64>() <= 60 << 20, "{resident:?}");
}

/// Thirty networks between two hosts: thirty links and devices each.
#[test]
fn many_devices_take_little_memory() {
    if cannot() {
        return;
    }
    const NETWORKS: u64 = 30;
    let fleet = Fleet::new();
    for number in 0..NETWORKS {
        let text = format!(
            "apiVersion: spanwire.dev/v1alpha1\nkind: GatewayNetwork\nmetadata:\n  name: n{number}\nspec:\n  \
             topology: mesh\n  members: [hub-a, spoke-1]\n  cidr: 100.81.{number}.0/24\n"
        );
        write(&fleet.control().join(format!("gatewaynetworks/n{number}.yaml")), &text);
    }
    let _controller = fleet.start_controller();
    let _workers: Vec<_> = fleet.members.iter().map(crate::fleet::Member::start).collect();
    let ready = |number| {
        let status = fleet.control().join(format!("gatewaynetworks/n{number}.status.controller.yaml"));
        std::fs::read_to_string(status).is_ok_and(|text| text.contains("ready: 1"))
    };
    wait_until("all networks are ready", || (0..NETWORKS).all(ready));
    let resident = fleet.members[0].dataplane.usage().unwrap().resident;
    assert!(resident < (NETWORKS + 1) * (4 << 20), "{resident} bytes for {NETWORKS} devices");
}
