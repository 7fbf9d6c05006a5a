//! Whether a declared network can be carried out (design §8). It refuses to call a failed look-up a verdict.

use std::collections::BTreeSet;

use ipnet::IpNet;

use crate::{GatewayName, NetworkSpec, Topology, port::ControlView, topology::TOPOLOGIES};

use super::is_unreadable;

/// A network that can be carried out, names and prefixes parsed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Valid {
    /// The topology.
    pub topology: Topology,
    /// The active hub; for a mesh it is named and has no part.
    pub hub: Option<GatewayName>,
    /// Standby hubs in order.
    pub standby_hubs: Vec<GatewayName>,
    /// Members in order, each once.
    pub members: Vec<GatewayName>,
    /// Tunnel addresses are taken from it.
    pub cidr: IpNet,
}

/// Why a network is not carried out.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Fault {
    /// The declaration is wrong: the reason, with the next step.
    Invalid(String),
    /// Something it names can't be read now: no verdict.
    Unknown(String),
}

fn invalid<T>(reason: String) -> Result<T, Fault> {
    Err(Fault::Invalid(reason))
}

/// Judges a declaration.
///
/// # Errors
/// [`Fault::Invalid`] names the field and the fix; [`Fault::Unknown`] names what could not be read.
pub fn validate(view: &ControlView, spec: &NetworkSpec) -> Result<Valid, Fault> {
    if spec.topology.is_empty() {
        return invalid(format!("spec.topology is missing: use one of {TOPOLOGIES}"));
    }
    let topology: Topology = match spec.topology.parse() {
        Ok(topology) => topology,
        Err(crate::topology::UnknownTopology(name)) => {
            return invalid(format!("spec.topology {name:?} is not known: use one of {TOPOLOGIES}"));
        }
    };
    let mut members = Vec::new();
    for name in &spec.members {
        let member = parse(name, "spec.members")?;
        if !members.contains(&member) {
            members.push(member);
        }
    }
    let hub = spec.hub.as_ref().filter(|hub| !hub.is_empty());
    let hub = hub.map(|hub| parse(hub, "spec.hub")).transpose()?;
    if topology == Topology::HubSpoke && hub.is_none() {
        return invalid("spec.hub is missing: topology hub-spoke needs the name of a member".to_owned());
    }
    if let Some(hub) = &hub {
        exists(view, hub, "spec.hub")?;
    }
    let standby_hubs =
        if topology == Topology::HubSpoke { standby_hubs(spec, hub.as_ref())? } else { Vec::new() };
    if topology == Topology::HubSpoke {
        for (gateway, field) in hub
            .iter()
            .map(|hub| (hub, "spec.hub"))
            .chain(standby_hubs.iter().map(|s| (s, "spec.standbyHubs")))
        {
            can_be_hub(view, gateway, field, &members)?;
        }
    }
    let cidr = cidr(view, spec, &members)?;
    Ok(Valid { topology, hub, standby_hubs, members, cidr })
}

fn parse(name: &str, field: &str) -> Result<GatewayName, Fault> {
    name.parse().or_else(|fault: crate::name::NameError| invalid(format!("{field}: {fault}")))
}

fn exists(view: &ControlView, gateway: &GatewayName, field: &str) -> Result<(), Fault> {
    if view.gateways.contains_key(gateway) {
        return Ok(());
    }
    if is_unreadable(view, "gateways", gateway.as_str()) {
        return Err(Fault::Unknown(format!("the Gateway {gateway} that {field} names can't be read")));
    }
    invalid(format!(
        "{field} names {gateway}, and there is no Gateway of that name: create it or name another"
    ))
}

fn standby_hubs(spec: &NetworkSpec, hub: Option<&GatewayName>) -> Result<Vec<GatewayName>, Fault> {
    let mut standbys = Vec::new();
    let mut seen = BTreeSet::new();
    for name in &spec.standby_hubs {
        let standby = parse(name, "spec.standbyHubs")?;
        if Some(&standby) == hub {
            return invalid(format!(
                "spec.standbyHubs names {standby}, which is the hub: remove it from standbyHubs"
            ));
        }
        if !seen.insert(standby.clone()) {
            return invalid(format!("spec.standbyHubs names {standby} twice: remove one"));
        }
        standbys.push(standby);
    }
    Ok(standbys)
}

fn can_be_hub(
    view: &ControlView,
    gateway: &GatewayName,
    field: &str,
    members: &[GatewayName],
) -> Result<(), Fault> {
    exists(view, gateway, field)?;
    if !members.contains(gateway) {
        return invalid(format!(
            "{field} names {gateway}, which is not in spec.members: add it there or name another"
        ));
    }
    if view.gateways.get(gateway).is_some_and(|gateway| gateway.dial_only) {
        return invalid(format!(
            "{field} names {gateway}, which is dial-only: nobody can dial it, so it can't be a hub"
        ));
    }
    Ok(())
}

fn cidr(view: &ControlView, spec: &NetworkSpec, members: &[GatewayName]) -> Result<IpNet, Fault> {
    let text = &spec.cidr;
    let Ok(cidr) = text.parse::<IpNet>() else {
        return invalid(format!("spec.cidr {text:?} is not a prefix: write it like 100.64.0.0/24"));
    };
    if cidr.trunc() != cidr {
        return invalid(format!("spec.cidr {text} has host bits: write {}", cidr.trunc()));
    }
    for member in members {
        let Some(gateway) = view.gateways.get(member) else { continue };
        let clash = gateway.valid_subnets().find(|subnet| overlap(subnet, &cidr));
        if let Some(subnet) = clash {
            return invalid(format!(
                "spec.cidr {cidr} and the subnet {subnet} of {member} overlap: choose another cidr"
            ));
        }
    }
    Ok(cidr)
}

/// Whether two prefixes share an address.
pub fn overlap(a: &IpNet, b: &IpNet) -> bool {
    a.contains(b) || b.contains(a)
}
