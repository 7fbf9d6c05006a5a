//! `TunnelLink` ⇄ [`RecordedLink`]. It refuses a link whose facts a device could not take.

use spanwire_api as api;
use spanwire_engine as engine;
use spanwire_engine::worker::{LinkStatus, RecordedLink};

use super::field::{FieldFault, parse, parse_address, parse_option, parse_prefixes, texts};
use super::words::{
    link_role_to_api, link_role_to_engine, link_state_to_api, link_state_to_engine, moment_to_api,
    moment_to_engine, reason_to_engine,
};

/// From the object.
pub(crate) fn to_engine(
    spec: &api::TunnelLinkSpec,
    status: &api::TunnelLinkStatus,
) -> Result<RecordedLink, FieldFault> {
    let api::TunnelLinkSpec {
        network,
        peer,
        peer_uid,
        role,
        device,
        listen_port,
        public_key,
        key_generation,
        allowed_ips,
        prefixes,
        probe,
        endpoint,
        keepalive,
        intent_generation,
    } = spec;
    let id = engine::LinkId {
        network: parse("spec.network", network)?,
        peer: parse("spec.peer", peer)?,
        role: link_role_to_engine(*role),
    };
    Ok(RecordedLink {
        id,
        peer_uid: engine::Uid(peer_uid.clone()),
        device: parse("spec.device", device)?,
        listen_port: *listen_port,
        public_key: parse("spec.publicKey", public_key)?,
        key_generation: *key_generation,
        allowed_ips: parse_prefixes("spec.allowedIPs", allowed_ips)?,
        prefixes: parse_prefixes("spec.prefixes", prefixes)?,
        probe: parse_address("spec.probe", probe.as_ref())?,
        endpoint: parse_option("spec.endpoint", endpoint.as_ref())?,
        keepalive: keepalive.0,
        intent_generation: *intent_generation,
        status: status_to_engine(status)?,
    })
}

/// The spec of the object.
pub(crate) fn spec_to_api(link: &RecordedLink) -> api::TunnelLinkSpec {
    let RecordedLink {
        id,
        peer_uid,
        device,
        listen_port,
        public_key,
        key_generation,
        allowed_ips,
        prefixes,
        probe,
        endpoint,
        keepalive,
        intent_generation,
        status: _,
    } = link;
    let engine::LinkId { network, peer, role } = id;
    api::TunnelLinkSpec {
        network: network.to_string(),
        peer: peer.to_string(),
        peer_uid: peer_uid.0.clone(),
        role: link_role_to_api(*role),
        device: device.to_string(),
        listen_port: *listen_port,
        public_key: public_key.to_string(),
        key_generation: *key_generation,
        allowed_ips: texts(allowed_ips),
        prefixes: texts(prefixes),
        probe: probe.map(|address| address.to_string()),
        endpoint: endpoint.as_ref().map(ToString::to_string),
        keepalive: (*keepalive).into(),
        intent_generation: *intent_generation,
    }
}

/// The status of the object, speaking of `generation`.
pub(crate) fn status_to_api(status: &LinkStatus, generation: i64) -> api::TunnelLinkStatus {
    let LinkStatus { state, reason, message, last_transition, connected_once, unwanted_since } = status;
    api::TunnelLinkStatus {
        observed_generation: generation,
        state: link_state_to_api(*state),
        reason: reason.as_str().to_owned(),
        message: message.clone(),
        last_transition_time: last_transition.clone(),
        connected_once: *connected_once,
        unwanted_since: unwanted_since.as_ref().map(moment_to_api),
    }
}

fn status_to_engine(status: &api::TunnelLinkStatus) -> Result<LinkStatus, FieldFault> {
    let api::TunnelLinkStatus {
        observed_generation: _,
        state,
        reason,
        message,
        last_transition_time,
        connected_once,
        unwanted_since,
    } = status;
    Ok(LinkStatus {
        state: link_state_to_engine(*state),
        reason: reason_to_engine("status.reason", reason)?,
        message: message.clone(),
        last_transition: last_transition_time.clone(),
        connected_once: *connected_once,
        unwanted_since: unwanted_since.as_ref().map(moment_to_engine),
    })
}
