//! What was asked of the product, one test each, on real API servers with real devices. The tests refuse hands that help:
//! what counts is what stands on the servers, on the hosts, and in the ledgers of requests.

mod events;
mod faults;
mod hub_change;
mod kill;
mod links;
mod metrics;
mod networks;
mod second_pass;
mod traces;
mod two;

use spanwire_api::{GatewaySpec, TunnelLinkSpec, WorkerSliceConfigSpec};
use spanwire_testkit::process::Process;

use crate::site::{Gateway, Site, intent, wait_until};

/// A gateway without a host: its key is published, and nobody answers there.
fn fake(site: &Site, name: &str, number: u8) {
    site.apply(&format!(
        "apiVersion: spanwire.dev/v1alpha1\nkind: Gateway\nmetadata:\n  name: {name}\nspec:\n  subnets: \
         [10.73.{number}.0/24]\n"
    ));
    site.patch_status::<GatewaySpec>(
        name,
        serde_json::json!({"publicKey": key(number), "keyGeneration": 1, "endpoint": "192.0.2.250"}),
    );
}

/// The key of a gateway without a host.
fn key(number: u8) -> String {
    spanwire_engine::PublicKey([number; 32]).to_string()
}

/// Tells a gateway that it is in the network, at this address: what our controller would do.
fn admit(site: &Site, gateway: &str, number: u8) {
    let networks = serde_json::json!([{"name": "demo", "tunnelAddress": format!("100.90.0.{number}")}]);
    site.patch_status::<GatewaySpec>(gateway, serde_json::json!({ "networks": networks }));
}

/// Names of the links that a worker has on record, sorted.
fn recorded(site: &Site, gateway: &Gateway) -> Vec<String> {
    let links = gateway.records::<TunnelLinkSpec>(site).into_iter();
    links.filter_map(|link| link.metadata.name).collect()
}

/// Whether the worker says that it has applied its intent as it stands, and that these peers are connected.
fn is_connected(site: &Site, gateway: &str, peers: &[&str]) -> bool {
    let field = |pointer: &str| site.field::<WorkerSliceConfigSpec>(&format!("demo.{gateway}"), pointer);
    let rows = field("/status/peerStatuses");
    let connected = |peer: &&str| {
        let mut rows = rows.as_array().into_iter().flatten();
        rows.any(|row| row["peer"] == **peer && row["state"] == "Connected")
    };
    is_applied(site, gateway) && peers.iter().all(connected)
}

/// Whether the worker says that it has applied its intent as it stands.
fn is_applied(site: &Site, gateway: &str) -> bool {
    let field = |pointer: &str| site.field::<WorkerSliceConfigSpec>(&format!("demo.{gateway}"), pointer);
    field("/status/observedGeneration") == field("/metadata/generation")
}

/// `me` and `c`, connected.
fn pair(namespace: &str) -> Option<(Site, [Process; 2])> {
    let site = Site::new(namespace, &["me", "c"], &["demo"])?;
    let [me, c] = &site.members[..] else { panic!("two members") };
    admit(&site, "me", 1);
    admit(&site, "c", 2);
    site.apply(&intent("me", "topology: mesh\npeers: [c]\ntunnelAddress: 100.90.0.1"));
    site.apply(&intent("c", "peers: [me]\ntunnelAddress: 100.90.0.2"));
    let workers = [me.start(), c.start()];
    wait_until("me and c are connected", || {
        is_connected(&site, "me", &["c"]) && is_connected(&site, "c", &["me"])
    });
    Some((site, workers))
}
