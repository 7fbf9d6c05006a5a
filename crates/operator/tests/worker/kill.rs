//! The worker is killed at every call of every plan on a way, and started again: it must end where an undisturbed one
//! ends, and take nothing away that the other did not. The fault points are enumerated, not sampled.

use std::{cell::Cell, time::Duration};

use spanwire_engine::{GatewayName, Intent, LinkId, LinkRole, PublicKey, Role, Topology, worker::Recorded};

use crate::world::{World, gateway, intent, key, link};

/// One station of a way: what the control store holds, and which links work then.
struct Station {
    intent: Intent,
    connected: Vec<LinkId>,
    hub_a_key: PublicKey,
}

fn station(intent: Intent, connected: &[(&str, LinkRole)]) -> Station {
    let connected = connected.iter().map(|(peer, role)| link(peer, *role)).collect();
    Station { intent, connected, hub_a_key: key(2) }
}

fn enter(world: &World, station: &Station, generation: i64) {
    {
        let mut view = world.control.0.lock().unwrap();
        let hub = view.as_mut().unwrap().gateways.get_mut(&gateway("hub-a")).unwrap();
        if hub.facts.public_key != Some(station.hub_a_key.to_string()) {
            hub.facts.public_key = Some(station.hub_a_key.to_string());
            hub.facts.key_generation += 1;
        }
    }
    world.intend(Some(station.intent.clone()), generation);
    world.connect(&station.connected);
}

/// Goes on from a station, with one worker process a station.
async fn walk(world: &World, way: &[Station], at: &Cell<usize>) {
    while let Some(station) = way.get(at.get()) {
        enter(world, station, at.get() as i64 + 1);
        world.settle().await;
        at.set(at.get() + 1);
    }
}

fn removals(world: &World) -> Vec<String> {
    let taken = world.host.taken.lock().unwrap();
    let mut removals: Vec<String> = taken.iter().filter(|step| step.starts_with("Remove")).cloned().collect();
    removals.sort();
    removals
}

async fn kill_everywhere(way: &[Station]) {
    let goal = World::new();
    walk(&goal, way, &Cell::new(0)).await;
    let calls = goal.disturbance.lock().unwrap().calls;
    assert!(calls > 10 && !removals(&goal).is_empty(), "only {calls} fault points");
    for stop in 0..calls {
        let (world, at) = (World::new(), Cell::new(0));
        world.disturbance.lock().unwrap().stop_at = Some(stop);
        let walked = tokio::time::timeout(Duration::from_secs(1), walk(&world, way, &at)).await;
        assert!(walked.is_err(), "nobody was killed at {stop}");
        world.disturbance.lock().unwrap().stop_at = None;
        walk(&world, way, &at).await;
        assert_eq!(world.host().devices, goal.host().devices, "killed at {stop}");
        assert_eq!(world.host().tables, goal.host().tables, "killed at {stop}");
        assert_eq!(world.host().firewall, goal.host().firewall, "killed at {stop}");
        let links = |recorded: Recorded| recorded.links.into_keys().collect::<Vec<_>>();
        assert_eq!(links(world.recorded()), links(goal.recorded()), "killed at {stop}");
        let mut allowed = removals(&goal);
        for removal in removals(&world) {
            let at = allowed.iter().position(|step| *step == removal);
            allowed.remove(at.unwrap_or_else(|| panic!("killed at {stop}: {removal}")));
        }
    }
}

fn peers(names: &[&str]) -> Option<Vec<String>> {
    Some(names.iter().map(|name| (*name).to_owned()).collect())
}

fn names(names: &[&str]) -> Vec<GatewayName> {
    names.iter().map(|name| gateway(name)).collect()
}

#[tokio::test(start_paused = true)]
async fn h4_a_spoke_that_changes_its_hub() {
    let (a, b) = (("hub-a", LinkRole::Uplink), ("hub-b", LinkRole::Uplink));
    kill_everywhere(&[
        station(intent(&["hub-a"]), &[a]),
        station(intent(&["hub-a", "hub-b"]), &[a]),
        station(intent(&["hub-b", "hub-a"]), &[a, b]),
        station(intent(&["hub-b"]), &[a, b]),
    ])
    .await;
}

#[tokio::test(start_paused = true)]
async fn h1_a_spoke_whose_intent_changes_at_once() {
    let (a, b) = (("hub-a", LinkRole::Uplink), ("hub-b", LinkRole::Uplink));
    kill_everywhere(&[
        station(intent(&["hub-a"]), &[a]),
        station(intent(&["hub-b"]), &[a]),
        station(intent(&["hub-b"]), &[a, b]),
    ])
    .await;
}

#[tokio::test(start_paused = true)]
async fn h13_a_spoke_that_becomes_the_hub_and_a_spoke_again() {
    let up = ("hub-a", LinkRole::Uplink);
    let all = [up, ("hub-a", LinkRole::Downlink), ("hub-a", LinkRole::Trunk), ("hub-b", LinkRole::Downlink)];
    let hubs = |order: &[&str], role| Intent {
        hubs: names(order),
        role: Some(role),
        peers: peers(&["hub-a", "hub-b"]),
        ..intent(&[])
    };
    kill_everywhere(&[
        station(intent(&["hub-a"]), &[up]),
        station(hubs(&["hub-a", "spoke-1"], Role::Hub), &all),
        station(hubs(&["spoke-1", "hub-a"], Role::Hub), &all),
        station(hubs(&["spoke-1"], Role::Hub), &all),
        station(hubs(&["spoke-1", "hub-a"], Role::Hub), &all),
        station(hubs(&["hub-a", "spoke-1"], Role::Spoke), &all),
        station(intent(&["hub-a"]), &all),
    ])
    .await;
}

#[tokio::test(start_paused = true)]
async fn t7_a_mesh_that_becomes_hub_and_spoke_and_is_torn_down() {
    let mesh = [("hub-a", LinkRole::Mesh), ("hub-b", LinkRole::Mesh)];
    let both = [mesh[0], mesh[1], ("hub-a", LinkRole::Uplink)];
    let of = |topology, hubs: &[&str], mesh_links, list: &[&str]| Intent {
        topology: Some(topology),
        hubs: names(hubs),
        mesh_links,
        peers: peers(list),
        ..intent(&[])
    };
    kill_everywhere(&[
        station(of(Topology::Mesh, &[], false, &["hub-a", "hub-b"]), &mesh),
        station(of(Topology::Mesh, &["hub-a"], true, &["hub-a", "hub-b"]), &both),
        station(of(Topology::HubSpoke, &["hub-a"], true, &["hub-a", "hub-b"]), &both),
        station(of(Topology::HubSpoke, &["hub-a"], false, &["hub-a"]), &both),
        station(of(Topology::HubSpoke, &["hub-a"], false, &[]), &[]),
    ])
    .await;
}

#[tokio::test(start_paused = true)]
async fn d6_a_peer_that_gets_a_new_key() {
    let a = ("hub-a", LinkRole::Uplink);
    let changed = Station { hub_a_key: key(7), ..station(intent(&["hub-a"]), &[a]) };
    kill_everywhere(&[station(intent(&["hub-a"]), &[a]), changed]).await;
}
