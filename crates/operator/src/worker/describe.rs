//! Steps in one line each, for ledgers, dry runs and errors, and their kinds for metrics. It refuses whole keys and endpoints.

use spanwire_engine::{
    PublicKey,
    worker::{HostStep, RecordStep, RouteKind, Step},
};

/// One line on a step.
pub fn step(step: &Step) -> String {
    match step {
        Step::Record(step) => record(step),
        Step::Host(step) => host(step),
    }
}

fn record(step: &RecordStep) -> String {
    match step {
        RecordStep::Intent(applied) => {
            format!("record intent {} of generation {}", applied.intent.network, applied.generation)
        }
        RecordStep::Link(link) => {
            format!(
                "record link {} ({}, {})",
                link.id,
                link.status.state.as_str(),
                link.status.reason.as_str()
            )
        }
        RecordStep::ForgetLink(link) => format!("forget link {link}"),
        RecordStep::ForgetIntent(network) => format!("forget intent {network}"),
    }
}

fn host(step: &HostStep) -> String {
    match step {
        HostStep::Firewall(firewall) => {
            format!("set the packet filter for {} networks", firewall.networks.len())
        }
        HostStep::Table(config) => format!("set table {}", config.table),
        HostStep::Device(config) => {
            format!("set device {} ({}) on port {}, MTU {}", config.name, config.id, config.port, config.mtu)
        }
        HostStep::AddRule { table, device } => format!("lead {device} to table {table}"),
        HostStep::Peer(config) => {
            let prefixes = config.allowed_ips.len();
            format!("set peer {} on {} with {prefixes} prefixes", short(&config.public_key), config.device)
        }
        HostStep::TakeOver { from, to, port } => format!("let {to} take the place of {from} at port {port}"),
        HostStep::Route { table, kind, prefix, device, source: _ } => {
            format!("route {} {prefix} by {device} in table {table}", word(*kind))
        }
        HostStep::RemoveRoute { table, kind, prefix } => {
            format!("remove the {} route {prefix} of table {table}", word(*kind))
        }
        HostStep::RemovePeer { device, public_key } => {
            format!("remove peer {} from {device}", short(public_key))
        }
        HostStep::RemoveRule { table, device } => format!("no longer lead {device} to table {table}"),
        HostStep::RemoveDevice(device) => format!("remove device {device}"),
        HostStep::RemoveTable(table) => format!("remove table {table}"),
    }
}

/// The kind of a step, in a word for metrics.
pub fn kind(step: &Step) -> &'static str {
    match step {
        Step::Record(step) => match step {
            RecordStep::Intent(_) => "record_intent",
            RecordStep::Link(_) => "record_link",
            RecordStep::ForgetLink(_) => "forget_link",
            RecordStep::ForgetIntent(_) => "forget_intent",
        },
        Step::Host(step) => match step {
            HostStep::Firewall(_) => "firewall",
            HostStep::Table(_) => "table",
            HostStep::Device(_) => "device",
            HostStep::AddRule { .. } => "add_rule",
            HostStep::Peer(_) => "peer",
            HostStep::TakeOver { .. } => "take_over",
            HostStep::Route { .. } => "route",
            HostStep::RemoveRoute { .. } => "remove_route",
            HostStep::RemovePeer { .. } => "remove_peer",
            HostStep::RemoveRule { .. } => "remove_rule",
            HostStep::RemoveDevice(_) => "remove_device",
            HostStep::RemoveTable(_) => "remove_table",
        },
    }
}

/// Enough of a public key to find it in `wg show`.
fn short(key: &PublicKey) -> String {
    key.to_string().chars().take(8).chain(['…']).collect()
}

fn word(kind: RouteKind) -> &'static str {
    match kind {
        RouteKind::Exact => "exact",
        RouteKind::Wide => "wide",
    }
}
