//! Cases that a script can't say: counts, orders, views that can't be read, the ledger of writes. It refuses to look at
//! what a script shows already.

mod intent;
mod reconcile;

use spanwire_engine::NetworkSpec;

use crate::world::{World, name, net};

fn split(text: &str) -> Vec<String> {
    text.split(',').filter(|part| !part.is_empty()).map(str::to_owned).collect()
}

/// A declaration: the first of `hubs` is active; no hubs: a mesh.
fn spec(hubs: &str, members: &str) -> NetworkSpec {
    let mut hubs = split(hubs).into_iter();
    let hub = hubs.next();
    NetworkSpec {
        topology: if hub.is_some() { "hub-spoke" } else { "mesh" }.to_owned(),
        hub,
        standby_hubs: hubs.collect(),
        members: split(members),
        cidr: "100.64.0.0/16".to_owned(),
        transit: spanwire_engine::Transit::Routed,
        ..NetworkSpec::default()
    }
}

/// One network of these members, at rest.
fn at_rest(hubs: &str, members: &str) -> World {
    let mut world = World::default();
    for member in split(members) {
        world.gateway(&name(&member));
    }
    world.declare(&net("net"), spec(hubs, members));
    world.rest();
    world
}
