//! Objects of a mirror as entries of a view. It refuses to drop one that can't be understood: it is listed by name.

use std::time::Duration;

use jiff::Timestamp;
use spanwire_api::{
    GatewayNetworkSpec, GatewaySpec, Kind, Metadata, Object, TRACEPARENT, WorkerSliceConfigSpec,
};
use spanwire_engine::{
    Gateway, GatewayName, Intent, Meta, NetworkName, Uid, Unreadable, WorkerStatus,
    port::{ControlView, IntentView, NetworkView},
};

use super::mirror::{Held, Objects};
use crate::{
    convert::{FieldFault, gateway, intent, network, worker_status},
    managed::is_managed,
};

/// All that a controller reads.
pub(super) fn control_view(
    gateways: &Objects<GatewaySpec>,
    networks: &Objects<GatewayNetworkSpec>,
    intents: &Objects<WorkerSliceConfigSpec>,
) -> ControlView {
    let mut view = ControlView::default();
    let unreadable = &mut view.unreadable;
    view.gateways.extend(gather(gateways, label, gateway_of, unreadable));
    view.networks.extend(gather(networks, label, network_of, unreadable));
    view.traces.extend(networks.values().filter_map(trace));
    view.intents.extend(gather(intents, intent_names, intent_view, unreadable));
    unreadable.sort();
    view
}

/// The trace that an object names.
pub(super) fn trace<S: Kind>(held: &Held<S>) -> Option<String> {
    match held {
        Held::Good(object) => object.metadata.annotations.get(TRACEPARENT).cloned(),
        Held::Bad { .. } => None,
    }
}

fn intent_names(name: &str) -> Result<(NetworkName, GatewayName), String> {
    let (network, gateway) =
        name.split_once('.').ok_or_else(|| format!("{name:?} is not <network>.<gateway>"))?;
    Ok((label(network)?, label(gateway)?))
}

/// UID and versions.
pub(super) fn meta(metadata: &Metadata) -> Meta {
    Meta {
        uid: Uid(metadata.uid.clone().unwrap_or_default()),
        generation: metadata.generation.unwrap_or_default(),
        resource_version: metadata.resource_version.clone().unwrap_or_default(),
    }
}

/// Every object of a kind by `read`, under the name that `parse` gives it; what fails is listed.
pub(super) fn gather<S: Kind, N, T>(
    objects: &Objects<S>,
    parse: impl Fn(&str) -> Result<N, String>,
    read: impl Fn(&Object<S>) -> Result<T, FieldFault>,
    unreadable: &mut Vec<Unreadable>,
) -> Vec<(N, T)> {
    let mut found = Vec::new();
    for (name, held) in objects {
        let one = match held {
            Held::Good(object) => parse(name).and_then(|parsed| {
                read(object).map(|value| (parsed, value)).map_err(|fault| fault.to_string())
            }),
            Held::Bad { cause, version: _ } => Err(cause.to_string()),
        };
        match one {
            Ok(entry) => found.push(entry),
            Err(cause) => unreadable.push(unknown::<S>(name, cause)),
        }
    }
    found
}

/// An object that is there and can't be read.
pub(super) fn unknown<S: Kind>(name: &str, cause: impl ToString) -> Unreadable {
    Unreadable { kind: S::PLURAL.to_owned(), name: name.to_owned(), cause: cause.to_string() }
}

/// A name that must be a label.
pub(super) fn label<N: std::str::FromStr<Err: ToString>>(name: &str) -> Result<N, String> {
    name.parse().map_err(|fault: N::Err| fault.to_string())
}

/// The spec, which an object without one lacks.
pub(super) fn spec<S: Kind>(object: &Object<S>) -> Result<&S, FieldFault> {
    object.spec.as_ref().ok_or_else(|| FieldFault::new("spec", "it is missing"))
}

/// A gateway with both owners' parts of its status.
pub(super) fn gateway_of(object: &Object<GatewaySpec>) -> Result<Gateway, FieldFault> {
    let status = object.status.clone().unwrap_or_default();
    let facts = gateway::facts_to_engine(&status)?;
    gateway::to_engine(meta(&object.metadata), spec(object)?, facts, gateway::networks_to_engine(&status)?)
}

/// A network.
fn network_of(object: &Object<GatewayNetworkSpec>) -> Result<NetworkView, FieldFault> {
    Ok(NetworkView {
        meta: meta(&object.metadata),
        spec: network::spec_to_engine(spec(object)?),
        status: network::status_to_engine(&object.status.clone().unwrap_or_default())?,
    })
}

/// An intent. One that is being deleted means that its links go, whatever it said before.
pub(super) fn intent_of(object: &Object<WorkerSliceConfigSpec>) -> Result<Intent, FieldFault> {
    let intent = intent::to_engine("spec", spec(object)?)?;
    Ok(if object.metadata.deletion_timestamp.is_some() { intent.teardown() } else { intent })
}

/// How long ago an object was deleted, by the clocks of the server and of this host; at least zero.
fn deleting(metadata: &Metadata) -> Option<Duration> {
    let since = metadata.deletion_timestamp.as_ref()?;
    let age = since.parse::<Timestamp>().ok().map(|since| Timestamp::now().duration_since(since));
    Some(age.and_then(|age| Duration::try_from(age).ok()).unwrap_or_default())
}

/// What a worker said of an intent.
pub(super) fn said(object: &Object<WorkerSliceConfigSpec>) -> Result<WorkerStatus, FieldFault> {
    worker_status::to_engine(&object.status.clone().unwrap_or_default())
}

/// An intent with what its worker says.
fn intent_view(object: &Object<WorkerSliceConfigSpec>) -> Result<IntentView, FieldFault> {
    Ok(IntentView {
        meta: meta(&object.metadata),
        intent: intent_of(object)?,
        status: said(object)?,
        managed: is_managed(&object.metadata),
        deleting: deleting(&object.metadata),
    })
}
