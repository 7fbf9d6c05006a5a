//! Rows of the reconcile cases that decisions alone can show: verdicts, ledgers, restarts, stores that can't be read. It
//! refuses what needs a real API server or a clock.

use spanwire_engine::{LinkRole, Unreadable, controller};

use super::{at_rest, spec};
use crate::world::{World, name, net, rebooted, restarted};

#[test]
fn v6_a_failed_look_up_is_no_verdict() {
    let mut world = at_rest("a", "a,b,c");
    let standing = world.view.networks[&net("net")].status.clone();
    world.view.gateways.remove(&name("a"));
    world.view.unreadable.push(Unreadable {
        kind: "gateways".to_owned(),
        name: "a".to_owned(),
        cause: "connection refused".to_owned(),
    });
    let writes = world.writes;
    let pass = world.controller_pass();
    assert_eq!((world.writes, &world.view.networks[&net("net")].status), (writes, &standing));
    assert!(pass.waits.iter().any(|wait| wait.contains("can't be read")), "{:?}", pass.waits);
}

#[test]
fn v8_w1_w10_a_second_pass_writes_nothing() {
    for hubs in ["", "a", "a,b"] {
        let mut world = at_rest(hubs, "a,b,c,d");
        let before = (world.writes, world.steps);
        world.wait(60, |_| {});
        assert_eq!((world.writes, world.steps), before);
    }
}

#[test]
fn s4_a_stepped_clock_changes_no_link_and_no_state() {
    for hubs in ["", "a", "a,b"] {
        let mut world = at_rest(hubs, "a,b,c,d");
        let (before, view, hosts) = ((world.writes, world.steps), world.view.clone(), world.hosts.clone());
        for step in [-3600, 3600] {
            world.wall_step = step;
            world.wait(60, |_| {});
            assert_eq!((world.writes, world.steps), before, "stepped by {step} s");
            assert_eq!((&world.view, &world.hosts), (&view, &hosts), "stepped by {step} s");
        }
        world.wall_step = -7200;
        world.declare(&net("net"), spec("d", "a,b,c,d"));
        world.wait(60, |_| {});
        assert_eq!(world.view.networks[&net("net")].status.active_hub, Some(name("d")), "a change goes on");
    }
}

#[test]
fn w2_a_restart_changes_no_link() {
    for hubs in ["", "a", "a,b"] {
        let mut world = at_rest(hubs, "a,b,c,d");
        let before = (world.writes, world.steps, world.hosts.clone());
        for local in world.hosts.values_mut() {
            *local = restarted(local);
        }
        world.settle(|_| {});
        world.settle(|_| {});
        for (name, local) in &world.hosts {
            assert_eq!(local.recorded, before.2[name].recorded);
            assert_eq!(local.host.devices, before.2[name].host.devices);
            assert_eq!(local.host.tables, before.2[name].host.tables);
        }
        assert_eq!((world.writes, world.steps), (before.0, before.1));
    }
}

#[test]
fn w3_another_version_of_the_same_intent_writes_nothing() {
    let mut world = at_rest("a", "a,b,c");
    let before = world.steps;
    for view in world.view.intents.values_mut() {
        view.meta.resource_version = "12345".to_owned();
    }
    world.settle(|_| {});
    assert_eq!(world.steps, before);
}

#[test]
fn w3_a_changed_key_of_a_peer_gets_through() {
    let mut world = at_rest("a", "a,b,c");
    let before = world.steps;
    let key = crate::world::key(&name("b"), 2);
    let gateway = world.gateway(&name("b"));
    gateway.facts.public_key = Some(key.to_string());
    gateway.facts.key_generation = 2;
    world.worker_pass(&name("a"));
    assert!(world.steps > before);
    assert!(world.hosts[&name("a")].host.devices.values().all(|device| device.peers.contains_key(&key)));
}

#[test]
fn w4_w5_a_store_that_cannot_be_read_removes_nothing() {
    let mut world = at_rest("a,b", "a,b,c,d");
    for me in ["a", "b", "c", "d"] {
        let before = world.hosts[&name(me)].host.clone();
        for _ in 0..600 {
            world.since_boot += std::time::Duration::from_secs(1);
            let pass = world.pass_with(&name(me), None);
            assert_eq!(pass.steps, []);
        }
        let after = &world.hosts[&name(me)].host;
        assert_eq!((&after.devices, &after.tables), (&before.devices, &before.tables));
        let pass = world.pass_with(&name(me), None);
        assert!(pass.report.kept[&net("net")].contains("can't be read"));
    }
}

#[test]
fn w11_an_emptied_control_cluster_removes_nothing() {
    let mut world = at_rest("a,b", "a,b,c,d");
    let empty = spanwire_engine::port::WorkerView::default();
    for me in ["a", "b", "c", "d"] {
        let before = world.hosts[&name(me)].host.clone();
        let pass = world.pass_with(&name(me), Some(&empty));
        assert_eq!(pass.steps, []);
        assert_eq!(world.hosts[&name(me)].host.devices, before.devices);
        assert!(pass.report.kept[&net("net")].contains("GatewayNotFound"));
    }
}

#[test]
fn w13_a_reboot_without_the_control_cluster_rebuilds_links_and_routes() {
    for (hubs, me) in [("a,b", "a"), ("a,b", "c"), ("", "a")] {
        let mut world = at_rest(hubs, "a,b,c,d");
        let me = name(me);
        let before = world.hosts[&me].host.clone();
        let local = rebooted(&world.hosts[&me]);
        world.hosts.insert(me.clone(), local);
        for _ in 0..5 {
            world.pass_with(&me, None);
        }
        let after = &world.hosts[&me].host;
        let shape = |host: &spanwire_engine::worker::Host| {
            let devices =
                host.devices.iter().map(|(id, device)| (id.clone(), device.port, device.peers.len()));
            (devices.collect::<Vec<_>>(), host.firewall.clone())
        };
        assert_eq!(shape(after), shape(&before));
        assert_eq!(after.tables.values().collect::<Vec<_>>(), before.tables.values().collect::<Vec<_>>());
    }
}

#[test]
fn w14_every_write_carries_the_version_it_was_planned_from() {
    let mut world = at_rest("a", "a,b,c");
    world.view.networks.get_mut(&net("net")).unwrap().meta.resource_version = "41".to_owned();
    for view in world.view.intents.values_mut() {
        view.meta.resource_version = "17".to_owned();
    }
    world.declare(&net("net"), spec("b", "a,b,c"));
    let plans = controller::plan(&world.view, &world.now(0));
    let plan = &plans.networks[&net("net")];
    let (_, expected) = plan.status.as_ref().unwrap();
    assert_eq!(expected.resource_version, "41");
    assert!(!plan.intents.is_empty());
    for write in &plan.intents {
        assert_eq!(write.expected.as_ref().unwrap().resource_version, "17");
    }
}

#[test]
fn w16_an_equal_generation_does_not_replace_a_key_and_another_gateway_does() {
    let mut world = at_rest("a", "a,b,c");
    let (me, peer) = (name("a"), name("b"));
    let recorded = |world: &World| {
        let links = &world.hosts[&me].recorded.links;
        links
            .values()
            .find(|link| link.id.peer == peer && link.id.role == LinkRole::Downlink)
            .unwrap()
            .public_key
    };
    let kept = recorded(&world);
    world.gateway(&peer).facts.public_key = Some(crate::world::key(&peer, 3).to_string());
    world.worker_pass(&me);
    assert_eq!(recorded(&world), kept, "same generation, same object");
    world.gateway(&peer).meta.uid = spanwire_engine::Uid("another".to_owned());
    world.worker_pass(&me);
    assert_eq!(recorded(&world), crate::world::key(&peer, 3), "another object");
}

/// The controller dies after any number of its writes and another one goes on, in every phase of a change.
#[test]
fn h7_the_controller_is_killed_between_any_two_writes() {
    for (from, to) in [("a", "b"), ("a,b", "b"), ("", "a"), ("a", "")] {
        for killed in 0..40 {
            let mut world = at_rest(from, "a,b,c,d");
            world.watch();
            world.declare(&net("net"), spec(to, "a,b,c,d"));
            world.writes_left = Some(killed);
            for _ in 0..3 {
                world.controller_pass();
                for me in ["a", "b", "c", "d"] {
                    world.worker_pass(&name(me));
                }
            }
            world.writes_left = None;
            world.wait(10, |_| {});
            assert!(world.lost.is_empty(), "killed after {killed} writes: {:?}", world.lost);
            let status = &world.view.networks[&net("net")].status;
            let hubs: Vec<String> =
                status.published.iter().flat_map(|p| &p.hubs).map(ToString::to_string).collect();
            assert_eq!((hubs.join(","), &status.change), (to.to_owned(), &None));
        }
    }
}
