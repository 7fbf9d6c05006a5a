//! What running processes tell scrapers and kubelets. The tests refuse a key or an address anywhere on a page.

use std::{fs, net::IpAddr};

use spanwire_testkit::process::Process;

use crate::{
    fleet::{Fleet, Member, OF_DATAPLANE, cannot, run, wait_until},
    scrape::{Page, ask, free_port},
};

const OF_WORKER: &str = "127.0.0.1:9180";
const OF_SECOND: &str = "127.0.0.1:9182";
const UPLINK: &str = r#"network="demo",role="uplink",peer="hub-a""#;

fn start(member: &Member) -> Process {
    member.start_with(&["--metrics-listen", OF_WORKER])
}

fn start_controller(fleet: &Fleet, address: &str) -> Process {
    fleet.start_controller_with(&["--metrics-listen", address])
}

/// A hub and a spoke with their link up, where the controller is scraped, the controller, and both workers.
fn connected() -> (Fleet, String, Process, [Process; 2]) {
    let fleet = Fleet::new();
    let [hub, spoke] = &fleet.members[..] else { panic!("two members") };
    let of_controller = free_port();
    let controller = start_controller(&fleet, &of_controller);
    let workers = [start(hub), start(spoke)];
    wait_until("the link is shown connected", || state(spoke, UPLINK, "Connected") == Some(1.0));
    (fleet, of_controller, controller, workers)
}

fn page(member: &Member) -> Page {
    ask(Some(&member.host), OF_WORKER, "/metrics").unwrap()
}

fn status(member: &Member, address: &str, path: &str) -> Option<(u16, String)> {
    ask(Some(&member.host), address, path).map(|page| (page.status, page.body))
}

fn state(member: &Member, link: &str, state: &str) -> Option<f64> {
    let page = ask(Some(&member.host), OF_WORKER, "/metrics")?;
    page.value(&format!("spanwire_link_state{{{link},state=\"{state}\"}}"))
}

/// Neither what looks like a key or an address, nor the ones that are used here.
fn tells_no_secret(page: &Page, members: &[Member]) {
    for label in page.labels() {
        assert!(!(label.len() == 44 && label.ends_with('=')), "a key: {label}\n{}", page.body);
        let start = label.split('/').next().unwrap();
        let host = start.rsplit_once(':').map_or(start, |(host, _)| host);
        assert!(start.parse::<IpAddr>().is_err() && host.parse::<IpAddr>().is_err(), "an address: {label}");
    }
    for member in members {
        let shown = member.host.output("wg", &["show", "all", "dump"], "").unwrap();
        let words = shown.split_whitespace().filter(|word| word.len() == 44);
        let address = member.host.address().to_string();
        for word in words.chain([address.as_str(), "10.71.", "100.80."]) {
            assert!(!page.body.contains(word), "{word}\n{}", page.body);
        }
    }
}

#[test]
fn metrics_show_links_as_they_are_and_name_no_key_and_no_address() {
    if cannot() {
        return;
    }
    let (fleet, of_controller, _controller, _workers) = connected();
    let [hub, spoke] = &fleet.members[..] else { panic!("two members") };
    assert_eq!(state(spoke, UPLINK, "NotConnected"), Some(0.0));
    let value = |metric: &str| page(spoke).value(&format!("{metric}{{{UPLINK}}}"));
    for metric in ["spanwire_link_received_bytes_total", "spanwire_link_sent_bytes_total"] {
        let before = value(metric).unwrap();
        assert!(before > 0.0, "{metric}");
        wait_until("bytes rise", || value(metric).unwrap() > before);
    }
    let age = || value("spanwire_link_handshake_age_seconds").unwrap();
    let (first, passes) = (age(), page(spoke).value("spanwire_pass_duration_seconds_count"));
    assert!((0.0..180.0).contains(&first), "{first}");
    wait_until("the age rises between passes", || {
        age() > first && page(spoke).value("spanwire_pass_duration_seconds_count") == passes
    });
    let shown = page(spoke);
    let made = "spanwire_steps_total{kind=\"device\",outcome=\"changed\"}";
    assert_eq!(shown.value(made), Some(1.0), "{}", shown.body);
    assert!(shown.value("spanwire_device_writes_total").unwrap() > 3.0, "{}", shown.body);
    assert!(shown.value("spanwire_writes_total{target=\"record\"}").unwrap() > 1.0, "{}", shown.body);
    let of_dataplane = ask(Some(&spoke.host), OF_DATAPLANE, "/metrics").unwrap();
    let controller = ask(None, &of_controller, "/metrics").unwrap();
    wait_until("the network is shown", || {
        let page = ask(None, &of_controller, "/metrics").unwrap();
        page.value("spanwire_network_links{network=\"demo\",state=\"ready\"}") == Some(1.0)
    });
    let userspace = spoke.devices().iter().filter(|name| name.starts_with("sw")).count();
    assert_eq!(
        of_dataplane.value("spanwire_dataplane_devices"),
        Some(userspace as f64),
        "{}",
        of_dataplane.body
    );
    assert_eq!(of_dataplane.value("spanwire_dataplane_probing_peers"), Some(1.0), "{}", of_dataplane.body);
    for page in [&shown, &page(hub), &of_dataplane, &controller] {
        tells_no_secret(page, &fleet.members);
    }
}

#[test]
fn metrics_show_a_change_while_it_runs_and_drop_links_that_are_gone() {
    if cannot() {
        return;
    }
    let (fleet, of_controller, _controller, [mut of_hub, _of_spoke]) = connected();
    let spoke = &fleet.members[1];
    let value = |series: &str| ask(None, &of_controller, "/metrics").unwrap().value(series);
    let phase = |phase: &str| value(&format!("spanwire_change_phase{{network=\"demo\",phase=\"{phase}\"}}"));
    let age = || value("spanwire_change_phase_age_seconds{network=\"demo\"}");
    assert_eq!((phase("Adding"), age()), (None, None), "nothing changes");
    of_hub.kill().unwrap();
    fleet.declare("mesh");
    wait_until("the change waits for the hub", || phase("Adding") == Some(1.0));
    assert_eq!(phase("Removing"), Some(0.0));
    let first = age().unwrap();
    wait_until("it gets older", || age().unwrap() > first);
    of_hub.restart().unwrap();
    wait_until("the change is over", || (phase("Adding"), age()) == (None, None));
    let link = "network=\"demo\",role=\"mesh\",peer=\"hub-a\"";
    wait_until("the new link is shown connected", || state(spoke, link, "Connected") == Some(1.0));
    wait_until("the old one is gone", || !page(spoke).body.contains("role=\"uplink\""));
}

#[test]
fn a_worker_is_ready_once_it_has_looked_also_with_a_dead_peer() {
    if cannot() {
        return;
    }
    let mut fleet = Fleet::new();
    let gateway = fleet.control().join("gateways/spoke-1.yaml");
    let text = fs::read_to_string(&gateway).unwrap();
    fs::remove_file(&gateway).unwrap();
    let _controller = fleet.start_controller();
    let _workers = [start(&fleet.members[0]), start(&fleet.members[1])];
    let ask = |fleet: &Fleet, path: &str| status(&fleet.members[1], OF_WORKER, path);
    wait_until("it waits for its Gateway", || ask(&fleet, "/readyz").is_some());
    let (code, why) = ask(&fleet, "/readyz").unwrap();
    assert!(code == 503 && why.contains("no pass over records and host was made yet"), "{code} {why}");
    assert_eq!(ask(&fleet, "/healthz").unwrap().0, 200, "waiting is no fault");
    crate::fleet::write(&gateway, &text);
    wait_until("it has looked", || ask(&fleet, "/readyz").unwrap().0 == 200);
    wait_until("the link is connected", || state(&fleet.members[1], UPLINK, "Connected") == Some(1.0));
    fleet.members[0].dataplane.kill().unwrap();
    fleet.members[0].host.cut_off().unwrap();
    wait_until("the peer is dead", || state(&fleet.members[1], UPLINK, "NotConnected") == Some(1.0));
    for path in ["/readyz", "/healthz"] {
        let (code, why) = ask(&fleet, path).unwrap();
        assert_eq!(code, 200, "{path}: {why}");
        assert_eq!(why.lines().count(), 1, "{path}: {why}");
    }
}

#[test]
fn who_stands_by_is_ready_and_shows_no_links() {
    if cannot() {
        return;
    }
    let fleet = Fleet::new();
    let spoke = &fleet.members[1];
    let addresses = [free_port(), free_port()];
    let _controllers = addresses.each_ref().map(|address| {
        let controller = start_controller(&fleet, address);
        wait_until("the controller is ready", || {
            ask(None, address, "/readyz").is_some_and(|page| page.status == 200)
        });
        controller
    });
    let page = ask(None, &addresses[1], "/healthz").unwrap();
    assert!(page.status == 200 && page.body.contains("stands by"), "{page:?}");
    let mut first = start(spoke);
    let _hub = start(&fleet.members[0]);
    wait_until("the link is connected", || state(spoke, UPLINK, "Connected") == Some(1.0));
    let _second = spoke.start_with(&["--metrics-listen", OF_SECOND]);
    wait_until("the second stands by", || {
        status(spoke, OF_SECOND, "/readyz")
            .is_some_and(|(code, why)| code == 200 && why.contains("stands by"))
    });
    let shown = || ask(Some(&spoke.host), OF_SECOND, "/metrics").unwrap();
    assert_eq!(shown().series("spanwire_link_state"), []);
    first.kill().unwrap();
    wait_until("the second acts", || shown().series("spanwire_link_state").len() == 3);
}

#[test]
fn the_dataplane_is_ready_when_its_socket_listens() {
    if cannot() {
        return;
    }
    let fleet = Fleet::new();
    let hub = &fleet.members[0];
    wait_until("it listens", || {
        status(hub, OF_DATAPLANE, "/readyz") == Some((200, "the control socket listens\n".to_owned()))
    });
    assert!(hub.folder.join("dataplane.sock").exists());
}

#[test]
fn a_port_that_is_taken_ends_every_process_with_its_address_and_the_flag() {
    if cannot() {
        return;
    }
    let fleet = Fleet::new();
    let hub = &fleet.members[0];
    let taken = hub.host.tcp_listener(([127, 0, 0, 1], 0).into()).unwrap();
    let address = taken.local_addr().unwrap().to_string();
    let control = format!("dir:{}", fleet.control().display());
    let socket = hub.folder.join("other.sock").display().to_string();
    let worker = hub.arguments(&[]);
    let worker: Vec<&str> = worker.iter().map(String::as_str).collect();
    let commands =
        [worker, vec!["controller", "--control", &control], vec!["dataplane", "--socket", &socket]];
    for command in commands {
        let files = hub.folder.join(command[0]);
        let listen = ["--metrics-listen", &address];
        let arguments: Vec<&str> = command.iter().copied().chain(listen).collect();
        let run = run(Some(&hub.host), &files, &arguments, &[]);
        assert_eq!(run.code, 1, "{run:#?}");
        for words in [address.as_str(), "--metrics-listen", "another process"] {
            assert!(run.log.contains(words), "{words}: {run:#?}");
        }
    }
    let once = hub.worker(&["--once", "--metrics-listen", &address]);
    assert!(!once.log.contains("--metrics-listen"), "a run that ends by itself does not listen: {once:#?}");
}
