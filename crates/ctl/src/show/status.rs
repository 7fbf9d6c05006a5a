//! `status` for people: a paragraph a network, then its gateways and links. It refuses to hide what is not ready.

use super::{or_dash, table};
use crate::status::{End, Gateway, Link, Network, Refused, Report, Unreadable};

/// The whole report.
pub(crate) fn status(report: &Report) -> String {
    let Report { networks, unreadable } = report;
    let mut text: Vec<String> = networks.iter().map(network).collect();
    if networks.is_empty() && unreadable.is_empty() {
        text.push("There is no network yet.\n".to_owned());
    }
    text.extend(unreadable.iter().map(|Unreadable { kind, name, cause }| {
        format!("{kind} {name} can't be read and counts as unknown: {cause}\n")
    }));
    text.join("\n")
}

fn network(network: &Network) -> String {
    let Network {
        name, topology, state, observed, active_hub, standby_hubs, change, edges, conditions, ..
    } = network;
    let mut lines = vec![format!("{name}: {}, {}", or_dash(Some(topology)), verdict(state, *observed))];
    if let Some(hub) = active_hub {
        let standby = if standby_hubs.is_empty() { "none".to_owned() } else { standby_hubs.join(", ") };
        lines.push(format!(" hub {hub}, standby {standby}"));
    }
    if let Some(change) = change {
        let (from, to) = (change.from.join(", "), change.to.join(", "));
        lines.push(format!(" {}: {from} -> {to}, since {}", change.phase, change.started_at));
    }
    lines.push(format!(" {} of {} links ready, {} failing", edges.ready, edges.desired, edges.failing));
    let unmet = conditions.iter().filter(|line| line.status != "True");
    lines.extend(unmet.map(|line| format!(" not {}: {}: {}", line.kind, line.reason, line.message)));
    let mut text = lines.join("\n") + "\n";
    if !network.gateways.is_empty() {
        text += "\n";
        let head = ["GATEWAY", "ROLE", "ADDRESS", "ENDPOINT", "BACKEND", "CONFIRMED", "NOTE"];
        text += &table(head, network.gateways.iter().map(gateway));
    }
    if !network.links.is_empty() {
        text += "\n";
        text += &table(["LINK", "ROLE", "STATE", "ROUTE", "REASON"], network.links.iter().map(link));
    }
    for Refused { gateway, peer, reason, message } in &network.refused {
        text += &format!("\n {gateway} has no link to {peer:?}: {reason}: {message}\n");
    }
    text
}

fn verdict(state: &str, observed: bool) -> String {
    match (state, observed) {
        ("", _) => "not looked at by a controller yet".to_owned(),
        (state, true) => state.to_owned(),
        (state, false) => format!("{state} (edited since; the controller has not seen it yet)"),
    }
}

fn gateway(gateway: &Gateway) -> [String; 7] {
    let Gateway { name, role, tunnel_address, endpoint, backend, confirmed, note } = gateway;
    [
        name.clone(),
        or_dash(*role),
        or_dash(tunnel_address.as_deref()),
        or_dash(endpoint.as_deref()),
        or_dash(backend.as_deref()),
        if *confirmed { "yes" } else { "no" }.to_owned(),
        note.clone().unwrap_or_default(),
    ]
}

fn link(link: &Link) -> [String; 5] {
    let Link { name, state, from_end, to_end } = link;
    [
        format!("{} - {}", name.from, name.to),
        name.role.to_owned(),
        (*state).to_owned(),
        both(from_end.as_ref(), to_end.as_ref(), |end| end.route.to_owned()),
        both(from_end.as_ref(), to_end.as_ref(), reason),
    ]
}

fn reason(end: &End) -> String {
    if end.message.is_empty() || end.state == "Connected" {
        end.reason.to_owned()
    } else {
        format!("{}: {}", end.reason, end.message)
    }
}

/// What both ends say: once if it is the same.
fn both(from: Option<&End>, to: Option<&End>, say: impl Fn(&End) -> String) -> String {
    let say = |end: Option<&End>| end.map_or_else(|| "-".to_owned(), &say);
    let (from, to) = (say(from), say(to));
    if from == to { from } else { format!("{from} / {to}") }
}
