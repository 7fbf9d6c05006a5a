//! What a newcomer sees before anything happens. It refuses to show what no status says.

use anyhow::Result;
use spanwire_api::{GatewayNetworkStatus, PeerStatus};

use crate::{Fleet, Say, Topology};

/// The shape and the members.
pub(crate) fn topology(fleet: &Fleet, status: &GatewayNetworkStatus, say: Say) {
    let declared = fleet.declared();
    say.line(format!(
        "\nNetwork demo: {}, transit {}, {}",
        declared.topology, declared.transit, status.state
    ));
    picture(fleet, say);
    say.line(format!("\n{:10} {:12} {:14} {:14} subnet", "gateway", "role", "underlay", "tunnel address"));
    for member in fleet.members() {
        let entry = status.members.iter().find(|entry| entry.gateway == member.name());
        let tunnel = entry.and_then(|entry| entry.tunnel_address.as_deref()).unwrap_or("-");
        let role = match declared.hubs().iter().position(|hub| *hub == member.name()) {
            Some(0) => "active hub",
            Some(_) => "standby hub",
            None if declared.topology == Topology::Mesh => "member",
            None => "spoke",
        };
        let (name, underlay) = (member.name(), member.host().address().to_string());
        say.line(format!("{name:10} {role:12} {underlay:14} {tunnel:14} {}", member.subnet()));
    }
}

fn picture(fleet: &Fleet, say: Say) {
    let hubs = fleet.declared().hubs();
    let Some(active) = hubs.first() else {
        say.line("\n  hub-a ───── hub-b\n    │  ╲     ╱  │\n    │    ╳      │\n    │  ╱     ╲  │\n  spoke-1 ─── spoke-2");
        return;
    };
    say.line("");
    let others: Vec<&str> =
        fleet.members().iter().map(|member| member.name()).filter(|name| name != active).collect();
    let middle = others.len() / 2;
    for (at, name) in others.iter().enumerate() {
        let corner = match at {
            0 => "┐",
            _ if at + 1 == others.len() => "┘",
            _ => "┤",
        };
        let hub = if at == middle { format!("──── {active} (hub)") } else { String::new() };
        let corner = if at == middle { "┼" } else { corner };
        say.line(format!("  {name:10} ──── {corner}{hub}"));
    }
}

/// Every link with its state, as the workers say.
pub(crate) fn links(fleet: &Fleet, say: Say) -> Result<()> {
    say.line(format!("\n{:10} {:9} {:10} {:13} {:8} reason", "gateway", "link", "to", "state", "route"));
    for member in fleet.members() {
        for row in fleet.links(member.name())?.map(|status| status.peer_statuses).unwrap_or_default() {
            let PeerStatus { peer, role, state, route, reason, message: _, last_transition_time: _ } = row;
            let role = role.map_or("-".to_owned(), |role| format!("{role:?}").to_lowercase());
            let (name, state, route) = (member.name(), format!("{state:?}"), format!("{route:?}"));
            say.line(format!("{name:10} {role:9} {peer:10} {state:13} {route:8} {reason}"));
        }
    }
    say.line("");
    Ok(())
}
