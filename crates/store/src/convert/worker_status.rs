//! `WorkerSliceConfig.status` ⇄ [`engine::WorkerStatus`]. It refuses reasons that this version does not know.

use spanwire_api as api;
use spanwire_engine as engine;
use spanwire_engine::status::Summary;

use super::field::FieldFault;
use super::words::{
    condition_to_api, condition_to_engine, link_role_to_api, link_role_to_engine, link_state_to_api,
    link_state_to_engine, reason_to_engine, role_to_api, role_to_engine, route_to_api, route_to_engine,
};

/// From the object.
pub(crate) fn to_engine(status: &api::WorkerSliceConfigStatus) -> Result<engine::WorkerStatus, FieldFault> {
    let api::WorkerSliceConfigStatus { observed_generation, role, peer_statuses, summary, conditions } =
        status;
    let api::Summary { desired_peers, ready_peers, failing_peers } = *summary;
    Ok(engine::WorkerStatus {
        observed_generation: *observed_generation,
        role: role.map(role_to_engine),
        peers: peer_statuses.iter().enumerate().map(peer_to_engine).collect::<Result<_, _>>()?,
        summary: Summary { desired: desired_peers, ready: ready_peers, failing: failing_peers },
        conditions: conditions.iter().map(condition_to_engine).collect(),
    })
}

/// To the object.
pub(crate) fn to_api(status: &engine::WorkerStatus) -> api::WorkerSliceConfigStatus {
    let engine::WorkerStatus { observed_generation, role, peers, summary, conditions } = status;
    let Summary { desired, ready, failing } = summary.clone();
    api::WorkerSliceConfigStatus {
        observed_generation: *observed_generation,
        role: role.map(role_to_api),
        peer_statuses: peers.iter().map(peer_to_api).collect(),
        summary: api::Summary { desired_peers: desired, ready_peers: ready, failing_peers: failing },
        conditions: conditions.iter().map(condition_to_api).collect(),
    }
}

fn peer_to_engine((index, row): (usize, &api::PeerStatus)) -> Result<engine::PeerStatus, FieldFault> {
    let api::PeerStatus { peer, role, state, route, reason, message, last_transition_time } = row;
    Ok(engine::PeerStatus {
        peer: peer.clone(),
        role: role.map(link_role_to_engine),
        state: link_state_to_engine(*state),
        route: route_to_engine(*route),
        reason: reason_to_engine(&format!("status.peerStatuses[{index}].reason"), reason)?,
        message: message.clone(),
        last_transition: last_transition_time.clone(),
    })
}

fn peer_to_api(row: &engine::PeerStatus) -> api::PeerStatus {
    let engine::PeerStatus { peer, role, state, route, reason, message, last_transition } = row;
    api::PeerStatus {
        peer: peer.clone(),
        role: role.map(link_role_to_api),
        state: link_state_to_api(*state),
        route: route_to_api(*route),
        reason: reason.as_str().to_owned(),
        message: message.clone(),
        last_transition_time: last_transition.clone(),
    }
}
