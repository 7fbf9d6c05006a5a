//! `GatewayNetwork` ⇄ [`engine::NetworkSpec`] and [`engine::NetworkStatus`]. It refuses to validate: the spec stays as
//! it was written.

use spanwire_api as api;
use spanwire_engine as engine;
use spanwire_engine::network::Edges;

use super::field::{FieldFault, parse, parse_address, parse_list, parse_option, texts};
use super::words::{
    condition_to_api, condition_to_engine, hub_change_to_engine, moment_to_api, moment_to_engine,
    phase_to_api, phase_to_engine, transit_to_engine, tunnel_to_engine,
};

/// The spec.
pub(crate) fn spec_to_engine(spec: &api::GatewayNetworkSpec) -> engine::NetworkSpec {
    let api::GatewayNetworkSpec { topology, hub, standby_hubs, members, cidr, transit, hub_change, tunnel } =
        spec;
    engine::NetworkSpec {
        topology: topology.clone(),
        hub: hub.clone(),
        standby_hubs: standby_hubs.clone(),
        members: members.clone(),
        cidr: cidr.clone(),
        transit: transit_to_engine(*transit),
        hub_change: hub_change_to_engine(*hub_change),
        tunnel: tunnel_to_engine(*tunnel),
    }
}

/// The status.
pub(crate) fn status_to_engine(
    status: &api::GatewayNetworkStatus,
) -> Result<engine::NetworkStatus, FieldFault> {
    let api::GatewayNetworkStatus {
        observed_generation,
        state,
        active_hub,
        published,
        change,
        edges,
        members,
        conditions,
    } = status;
    let api::Edges { desired, ready, failing } = *edges;
    let published = published.as_ref().map(|published| published_to_engine("status.published", published));
    Ok(engine::NetworkStatus {
        observed_generation: *observed_generation,
        state: state.clone(),
        active_hub: parse_option("status.activeHub", active_hub.as_ref())?,
        published: published.transpose()?,
        change: change.as_ref().map(change_to_engine).transpose()?,
        edges: Edges { desired, ready, failing },
        members: members.iter().enumerate().map(member_to_engine).collect::<Result<_, _>>()?,
        conditions: conditions.iter().map(condition_to_engine).collect(),
    })
}

/// The status.
pub(crate) fn status_to_api(status: &engine::NetworkStatus) -> api::GatewayNetworkStatus {
    let engine::NetworkStatus {
        observed_generation,
        state,
        active_hub,
        published,
        change,
        edges,
        members,
        conditions,
    } = status;
    let Edges { desired, ready, failing } = *edges;
    api::GatewayNetworkStatus {
        observed_generation: *observed_generation,
        state: state.clone(),
        active_hub: active_hub.as_ref().map(ToString::to_string),
        published: published.as_ref().map(published_to_api),
        change: change.as_ref().map(change_to_api),
        edges: api::Edges { desired, ready, failing },
        members: members.iter().map(member_to_api).collect(),
        conditions: conditions.iter().map(condition_to_api).collect(),
    }
}

fn published_to_engine(
    path: &str,
    published: &api::PublishedTopology,
) -> Result<engine::Published, FieldFault> {
    let api::PublishedTopology { topology, hubs } = published;
    Ok(engine::Published {
        topology: parse(&format!("{path}.topology"), topology)?,
        hubs: parse_list(&format!("{path}.hubs"), hubs)?,
    })
}

fn published_to_api(published: &engine::Published) -> api::PublishedTopology {
    let engine::Published { topology, hubs } = published;
    api::PublishedTopology { topology: topology.to_string(), hubs: texts(hubs) }
}

fn change_to_engine(change: &api::Change) -> Result<engine::Change, FieldFault> {
    let api::Change { from, to, phase, started_at, boot_id, boot_time } = change;
    Ok(engine::Change {
        from: published_to_engine("status.change.from", from)?,
        to: published_to_engine("status.change.to", to)?,
        phase: phase_to_engine(*phase),
        started_at: started_at.clone(),
        started: engine::BootTime { boot_id: boot_id.clone(), since_boot: boot_time.0 },
    })
}

fn change_to_api(change: &engine::Change) -> api::Change {
    let engine::Change { from, to, phase, started_at, started } = change;
    let engine::BootTime { boot_id, since_boot } = started;
    api::Change {
        from: published_to_api(from),
        to: published_to_api(to),
        phase: phase_to_api(*phase),
        started_at: started_at.clone(),
        boot_id: boot_id.clone(),
        boot_time: (*since_boot).into(),
    }
}

fn member_to_engine((index, member): (usize, &api::Member)) -> Result<engine::MemberStatus, FieldFault> {
    let path = format!("status.members[{index}]");
    let api::Member {
        gateway,
        tunnel_address,
        accepted,
        joining,
        leaving,
        leaving_since,
        uid,
        reason,
        message,
    } = member;
    Ok(engine::MemberStatus {
        gateway: parse(&format!("{path}.gateway"), gateway)?,
        tunnel_address: parse_address(&format!("{path}.tunnelAddress"), tunnel_address.as_ref())?,
        accepted: *accepted,
        joining: *joining,
        leaving: *leaving,
        leaving_since: leaving_since.as_ref().map(moment_to_engine),
        uid: engine::Uid(uid.clone()),
        reason: reason.clone().map(|reason| (reason, message.clone().unwrap_or_default())),
    })
}

fn member_to_api(member: &engine::MemberStatus) -> api::Member {
    let engine::MemberStatus {
        gateway,
        tunnel_address,
        accepted,
        joining,
        leaving,
        leaving_since,
        uid,
        reason,
    } = member;
    let (reason, message) = reason.clone().unzip();
    api::Member {
        gateway: gateway.to_string(),
        tunnel_address: tunnel_address.map(|address| address.to_string()),
        accepted: *accepted,
        joining: *joining,
        leaving: *leaving,
        leaving_since: leaving_since.as_ref().map(moment_to_api),
        uid: uid.0.clone(),
        reason,
        message,
    }
}
