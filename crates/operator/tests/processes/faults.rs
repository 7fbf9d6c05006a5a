//! What breaks while workers run: the dataplane, the control store, a record, the order of things. The tests refuse hands
//! that help.

use std::fs;

use crate::fleet::{Fleet, cannot, wait_until};

#[test]
fn d13_a_dataplane_that_was_killed_gets_its_devices_back_without_a_hand() {
    if cannot() {
        return;
    }
    let mut fleet = Fleet::new();
    let _controller = fleet.start_controller();
    let _workers = [fleet.members[0].start(), fleet.members[1].start()];
    let reaches = |fleet: &Fleet| fleet.members[1].reaches(&fleet.members[0]);
    wait_until("the spoke reaches the hub", || reaches(&fleet));
    fleet.members[0].dataplane.kill().unwrap();
    let facts = fleet.control().join("gateways/hub-a.status.worker.yaml");
    let reported = || fs::read_to_string(&facts).unwrap().contains("is `spanwire dataplane` running?");
    wait_until("the fault is reported", reported);
    fleet.members[0].dataplane.restart().unwrap();
    wait_until("the spoke reaches the hub again", || reaches(&fleet));
    wait_until("the fault is over", || !reported());
}

#[test]
fn w5_a_control_store_that_goes_away_takes_no_link_with_it_and_is_followed_when_it_is_back() {
    if cannot() {
        return;
    }
    let fleet = Fleet::new();
    let [hub, spoke] = &fleet.members[..] else { panic!("two members") };
    let mut controller = fleet.start_controller();
    let _workers = [hub.start(), spoke.start()];
    wait_until("the spoke reaches the hub", || spoke.reaches(hub));
    controller.kill().unwrap();
    let (control, away) = (fleet.control(), fleet.control().with_extension("away"));
    fs::rename(&control, &away).unwrap();
    let log = spoke.folder.join("running.log");
    let said = || fs::read_to_string(&log).unwrap().contains("cannot read the control store");
    wait_until("the worker says so", said);
    let device = spoke.devices().remove(0);
    spoke.host.delete_device(&device).unwrap();
    wait_until("the device is back from the records", || {
        spoke.devices() == [device.clone()] && spoke.reaches(hub)
    });
    fs::rename(&away, &control).unwrap();
    controller.restart().unwrap();
    fleet.declare("mesh");
    wait_until("the worker follows again", || spoke.devices().iter().all(|name| name[2..].starts_with("m-")));
    wait_until("the spoke reaches the hub over the mesh", || spoke.reaches(hub));
}

#[test]
fn n5_a_record_that_does_not_parse_removes_nothing_and_is_named_with_its_path() {
    if cannot() {
        return;
    }
    let fleet = Fleet::new();
    fleet.converge();
    let [hub, spoke] = &fleet.members[..] else { panic!("two members") };
    let record = spoke.folder.join("local/tunnellinks/demo.hub-a.uplink.yaml");
    let good = fs::read_to_string(&record).unwrap();
    fs::write(&record, good.replace("peer: hub-a", "peer: [")).unwrap();
    let device = spoke.devices().remove(0);
    let index = spoke.host.device_index(&device).unwrap();
    let run = spoke.once();
    assert!(run.log.contains("demo.hub-a.uplink.yaml"), "{run:#?}");
    assert_eq!(spoke.host.device_index(&device).unwrap(), index);
    assert_eq!(spoke.reach(hub), Ok(()));
    fleet.converge();
}

#[test]
fn w15_any_order_of_beginnings_ends_connected() {
    if cannot() {
        return;
    }
    let fleet = Fleet::new();
    let [hub, spoke] = &fleet.members[..] else { panic!("two members") };
    let away: Vec<_> = ["gateways/hub-a", "gateways/spoke-1", "gatewaynetworks/demo"]
        .map(|name| fleet.control().join(name).with_extension("yaml"))
        .into_iter()
        .map(|path| (fs::read_to_string(&path).unwrap(), path))
        .collect();
    for (_, path) in &away {
        fs::remove_file(path).unwrap();
    }
    let _workers = [spoke.start(), hub.start()];
    let log = spoke.folder.join("running.log");
    wait_until("the worker waits", || {
        fs::read_to_string(&log).is_ok_and(|text| text.contains("waits for the Gateway spoke-1"))
    });
    let network = &away[2];
    crate::fleet::write(&network.1, &network.0);
    let _controller = fleet.start_controller();
    let verdict = fleet.control().join("gatewaynetworks/demo.status.controller.yaml");
    wait_until("the network is judged", || {
        fs::read_to_string(&verdict).is_ok_and(|text| {
            text.contains("state: 'Invalid")
                || text.contains("state: \"Invalid")
                || text.contains("state: Invalid")
        })
    });
    for (text, path) in &away[..2] {
        crate::fleet::write(path, text);
    }
    wait_until("the spoke reaches the hub", || spoke.reaches(hub));
}

#[test]
fn s7_a_blocked_port_is_named_with_what_to_try() {
    if cannot() {
        return;
    }
    let fleet = Fleet::new();
    let [hub, spoke] = &fleet.members[..] else { panic!("two members") };
    let _running = fleet.start_all();
    hub.host.deafen(spoke.host.address()).unwrap();
    spoke.host.deafen(hub.host.address()).unwrap();
    let status = fleet.control().join("workersliceconfigs/demo.spoke-1.status.worker.yaml");
    let says = |words: &str| fs::read_to_string(&status).unwrap().contains(words);
    wait_until("the spoke names host, port and protocol", || {
        says("NotConnected") && says("192.0.2.1:51820 over UDP") && says("firewalls")
    });
    hub.host.hear_again().unwrap();
    spoke.host.hear_again().unwrap();
    wait_until("it is connected again", || says("ProbeAnswered"));
}

#[test]
fn a_lost_key_file_comes_back_from_the_devices_and_nothing_else_happens() {
    if cannot() {
        return;
    }
    let fleet = Fleet::new();
    fleet.converge();
    let spoke = &fleet.members[1];
    let key = spoke.folder.join("local/private.key");
    let (before, generation) = (fs::read(&key).unwrap(), key.with_extension("key.generation"));
    let counted = fs::read(&generation).unwrap();
    fs::remove_file(&key).unwrap();
    fs::remove_file(&generation).unwrap();
    let run = spoke.once();
    assert_eq!((run.code, run.writes()), (0, vec![]), "{run:#?}");
    assert_eq!((fs::read(&key).unwrap(), fs::read(&generation).unwrap()), (before, counted));
}
