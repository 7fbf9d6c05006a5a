//! `Gateway` ⇄ [`engine::Gateway`]. It refuses to judge subnets, keys and hosts: they pass as text.

use std::{collections::BTreeMap, net::IpAddr};

use spanwire_api as api;
use spanwire_engine as engine;

use super::field::{FieldFault, parse, parse_address};
use super::words::{condition_to_api, condition_to_engine, listener_to_api, listeners_to_engine};

/// Tunnel address by network, as the controller publishes it.
pub(crate) type Networks = BTreeMap<engine::NetworkName, Option<IpAddr>>;

/// Spec and both owners' parts of the status, joined.
pub(crate) fn to_engine(
    meta: engine::Meta,
    spec: &api::GatewaySpec,
    facts: engine::GatewayFacts,
    networks: Networks,
) -> Result<engine::Gateway, FieldFault> {
    let api::GatewaySpec { subnets, advertise, maintenance } = spec;
    let api::Advertise { dial_only, host, ports } = advertise.clone().unwrap_or_default();
    Ok(engine::Gateway {
        meta,
        subnets: subnets.clone(),
        dial_only,
        advertise_host: host,
        advertise_ports: listeners_to_engine("spec.advertise.ports", &ports)?,
        maintenance: *maintenance,
        facts,
        networks,
    })
}

/// The worker's part of the status.
pub(crate) fn facts_to_engine(status: &api::GatewayStatus) -> Result<engine::GatewayFacts, FieldFault> {
    let api::GatewayStatus {
        public_key,
        key_generation,
        endpoint,
        listeners,
        backend,
        conditions,
        networks: _,
    } = status;
    Ok(engine::GatewayFacts {
        public_key: public_key.clone(),
        key_generation: *key_generation,
        endpoint: endpoint.clone(),
        listeners: listeners_to_engine("status.listeners", listeners)?,
        backend: backend.clone(),
        conditions: conditions.iter().map(condition_to_engine).collect(),
    })
}

/// The worker's part of the status.
pub(crate) fn facts_to_api(facts: &engine::GatewayFacts) -> api::GatewayStatus {
    let engine::GatewayFacts { public_key, key_generation, endpoint, listeners, backend, conditions } = facts;
    api::GatewayStatus {
        public_key: public_key.clone(),
        key_generation: *key_generation,
        endpoint: endpoint.clone(),
        listeners: listeners.iter().map(listener_to_api).collect(),
        backend: backend.clone(),
        conditions: conditions.iter().map(condition_to_api).collect(),
        networks: Vec::new(),
    }
}

/// The controller's part of the status.
pub(crate) fn networks_to_engine(status: &api::GatewayStatus) -> Result<Networks, FieldFault> {
    let item = |(index, network): (usize, &api::NetworkAddress)| {
        let api::NetworkAddress { name, tunnel_address } = network;
        let path = format!("status.networks[{index}]");
        let address = parse_address(&format!("{path}.tunnelAddress"), tunnel_address.as_ref())?;
        Ok((parse(&format!("{path}.name"), name)?, address))
    };
    status.networks.iter().enumerate().map(item).collect()
}

/// The controller's part of the status.
pub(crate) fn networks_to_api(networks: &Networks) -> api::GatewayStatus {
    let item = |(name, address): (&engine::NetworkName, &Option<IpAddr>)| api::NetworkAddress {
        name: name.to_string(),
        tunnel_address: address.map(|address| address.to_string()),
    };
    api::GatewayStatus { networks: networks.iter().map(item).collect(), ..api::GatewayStatus::default() }
}
