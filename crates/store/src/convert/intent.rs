//! `WorkerSliceConfig.spec` ⇄ [`engine::Intent`]. It refuses to melt an absent list of peers into an empty one.

use spanwire_api as api;
use spanwire_engine as engine;

use super::field::{FieldFault, parse, parse_address, parse_list, parse_option, parse_prefixes, texts};
use super::words::{
    hub_change_to_api, hub_change_to_engine, role_to_api, role_to_engine, transit_to_api, transit_to_engine,
    tunnel_to_api, tunnel_to_engine,
};

/// From the object; `path` stands before the fields, as in `spec`.
pub(crate) fn to_engine(path: &str, spec: &api::WorkerSliceConfigSpec) -> Result<engine::Intent, FieldFault> {
    let api::WorkerSliceConfigSpec {
        slice_name,
        gateway,
        peers,
        topology,
        role,
        hubs,
        mesh_links,
        members,
        tunnel_address,
        wide_cidrs,
        transit,
        hub_change,
        tunnel,
    } = spec;
    Ok(engine::Intent {
        network: parse(&format!("{path}.sliceName"), slice_name)?,
        gateway: parse(&format!("{path}.gateway"), gateway)?,
        peers: peers.clone(),
        topology: parse_option(&format!("{path}.topology"), topology.as_ref())?,
        role: role.map(role_to_engine),
        hubs: parse_list(&format!("{path}.hubs"), hubs)?,
        mesh_links: *mesh_links,
        members: parse_list(&format!("{path}.members"), members)?,
        tunnel_address: parse_address(&format!("{path}.tunnelAddress"), tunnel_address.as_ref())?,
        wide_cidrs: parse_prefixes(&format!("{path}.wideCidrs"), wide_cidrs)?,
        transit: transit_to_engine(*transit),
        hub_change: hub_change_to_engine(*hub_change),
        tunnel: tunnel_to_engine(*tunnel),
    })
}

/// To the object.
pub(crate) fn to_api(intent: &engine::Intent) -> api::WorkerSliceConfigSpec {
    let engine::Intent {
        network,
        gateway,
        peers,
        topology,
        role,
        hubs,
        mesh_links,
        members,
        tunnel_address,
        wide_cidrs,
        transit,
        hub_change,
        tunnel,
    } = intent;
    api::WorkerSliceConfigSpec {
        slice_name: network.to_string(),
        gateway: gateway.to_string(),
        peers: peers.clone(),
        topology: topology.map(|topology| topology.to_string()),
        role: role.map(role_to_api),
        hubs: texts(hubs),
        mesh_links: *mesh_links,
        members: texts(members),
        tunnel_address: tunnel_address.map(|address| address.to_string()),
        wide_cidrs: texts(wide_cidrs),
        transit: transit_to_api(*transit),
        hub_change: hub_change_to_api(*hub_change),
        tunnel: tunnel_to_api(*tunnel),
    }
}
