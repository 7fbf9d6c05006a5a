//! Endpoints that are DNS names, looked up as the host does. The test refuses to touch the machine's own files: hosts see
//! one that is mounted over theirs.

use std::fs;

use crate::fleet::{Fleet, cannot, wait_until, write};

#[test]
fn d16_a_name_is_followed_to_its_address_and_to_the_next_one() {
    if cannot() {
        return;
    }
    let fleet = Fleet::new();
    let [hub, spoke] = &fleet.members[..] else { panic!("two members") };
    let names = spoke.folder.join("hosts");
    fs::write(&names, "127.0.0.1 localhost\n").unwrap();
    spoke.host.output("mount", &["--bind", names.to_str().unwrap(), "/etc/hosts"], "").unwrap();
    let gateway = fleet.control().join("gateways/hub-a.yaml");
    let text = fs::read_to_string(&gateway).unwrap();
    write(&gateway, &format!("{text}  advertise:\n    host: hub.test\n"));
    let _running = [fleet.start_controller(), hub.start(), spoke.start()];
    let status = fleet.control().join("workersliceconfigs/demo.spoke-1.status.worker.yaml");
    wait_until("the name is reported", || {
        fs::read_to_string(&status)
            .is_ok_and(|text| text.contains("hub.test") && text.contains("EndpointUnresolved"))
    });
    fs::write(&names, "127.0.0.1 localhost\n192.0.2.1 hub.test\n").unwrap();
    wait_until("the name is followed", || spoke.reaches(hub));
    hub.host.add_address("eth0", "192.0.2.77/24".parse().unwrap()).unwrap();
    hub.host.output("ip", &["address", "delete", "192.0.2.1/24", "dev", "eth0"], "").unwrap();
    hub.host.output("ip", &["address", "replace", "192.0.2.77/24", "dev", "eth0"], "").unwrap();
    fs::write(&names, "127.0.0.1 localhost\n192.0.2.77 hub.test\n").unwrap();
    let device = spoke.devices().remove(0);
    wait_until("the next address is followed", || {
        spoke.host.output("wg", &["show", &device, "endpoints"], "").unwrap().contains("192.0.2.77:")
            && spoke.reaches(hub)
    });
}
