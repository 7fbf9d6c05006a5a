//! Joins the files of one object into the engine's types, for every role alike. It refuses to fill a hole: a part that
//! is there and cannot be read makes the object unknown.

use std::sync::Arc;

use spanwire_api::{GatewaySpec, Kind, Metadata, WorkerSliceConfigSpec};
use spanwire_engine::{
    Gateway, GatewayFacts, GatewayName, Intent, Meta, NetworkName, Uid, Unreadable, WorkerStatus,
};

use super::{
    document::Document,
    folder::{Record, Slot},
    identity::{Identity, Noted, spec_digest},
};
use crate::convert::{FieldFault, gateway, intent, worker_status};
use crate::managed::is_managed;

/// The documents of one object that are good.
pub(crate) struct Parts<'a, S: Kind> {
    /// The object itself.
    pub(crate) object: &'a Arc<Document<S>>,
    /// Its spec.
    pub(crate) spec: &'a S,
    /// What the controller says.
    pub(crate) controller: Option<&'a Arc<Document<S>>>,
    /// What the worker says.
    pub(crate) worker: Option<&'a Arc<Document<S>>>,
}

/// All parts, or `None` if the object itself is absent.
pub(crate) fn parts<S: Kind>(record: &Record<S>) -> Result<Option<Parts<'_, S>>, Unreadable> {
    let status = |slot| optional(record, slot);
    let Some(object) = status(&record.object)? else { return Ok(None) };
    let Some(spec) = &object.object.spec else { return Ok(None) };
    Ok(Some(Parts { object, spec, controller: status(&record.controller)?, worker: status(&record.worker)? }))
}

/// A part that may be absent.
pub(crate) fn optional<'a, S: Kind>(
    record: &Record<S>,
    slot: &'a Slot<S>,
) -> Result<Option<&'a Arc<Document<S>>>, Unreadable> {
    match slot {
        Slot::Absent => Ok(None),
        Slot::Good(document) => Ok(Some(document)),
        Slot::Bad(cause) => Err(record.unreadable(cause)),
    }
}

/// The identity that an owner's status file notes, brought up to the spec; `None`: none is noted yet.
pub(crate) fn noted<S: Kind>(
    parts: &Parts<'_, S>,
    owner: Option<&Arc<Document<S>>>,
) -> Option<(Noted, Noted)> {
    let old = Noted::from(&owner?.object.metadata)?;
    let new = old.for_spec(spec_digest(&parts.object.object));
    Some((old, new))
}

/// Whether a status speaks of the object with that UID, as far as both are known.
pub(crate) fn speaks_of(metadata: &Metadata, uid: &Uid) -> bool {
    !Uid(metadata.uid.clone().unwrap_or_default()).is_another_than(uid)
}

/// A gateway with both owners' parts. Its generation is the one noted by the controller.
pub(crate) fn gateway(
    record: &Record<GatewaySpec>,
    parts: &Parts<'_, GatewaySpec>,
    identity: Option<&Identity>,
) -> Result<(GatewayName, Gateway), Unreadable> {
    let name = record.name.parse().map_err(|fault| record.unreadable(format!("{fault}")))?;
    let meta = match identity {
        Some(identity) => record.meta(identity),
        None => Meta { resource_version: record.resource_version(), ..Meta::default() },
    };
    let facts = match parts.worker {
        Some(worker) if speaks_of(&worker.object.metadata, &meta.uid) => {
            let status = worker.object.status.clone().unwrap_or_default();
            gateway::facts_to_engine(&status).map_err(|fault| field(record, worker, &fault))?
        }
        Some(_) | None => GatewayFacts::default(),
    };
    let networks = match parts.controller {
        Some(controller) => {
            let status = controller.object.status.clone().unwrap_or_default();
            gateway::networks_to_engine(&status).map_err(|fault| field(record, controller, &fault))?
        }
        None => gateway::Networks::new(),
    };
    let joined = gateway::to_engine(meta, parts.spec, facts, networks);
    Ok((name, joined.map_err(|fault| field(record, parts.object, &fault))?))
}

/// What cannot be read under its file's name, also under the name that its content speaks of: both are unknown.
pub(crate) fn under_both_names(record: &Record<WorkerSliceConfigSpec>, fault: Unreadable) -> Vec<Unreadable> {
    let mut faults = vec![fault.clone()];
    if let Slot::Good(document) = &record.object
        && let Some(spec) = &document.object.spec
    {
        let name = format!("{}.{}", spec.slice_name, spec.gateway);
        if name != record.name {
            faults.push(Unreadable { name, ..fault });
        }
    }
    faults
}

/// The names that an intent's object name joins.
pub(crate) fn intent_names(name: &str) -> Option<(NetworkName, GatewayName)> {
    let (network, gateway) = name.split_once('.')?;
    Some((network.parse().ok()?, gateway.parse().ok()?))
}

/// An intent's file whose name does not join two names.
pub(crate) fn misnamed_intent(
    record: &Record<WorkerSliceConfigSpec>,
    document: &Document<WorkerSliceConfigSpec>,
) -> Unreadable {
    field(
        record,
        document,
        &FieldFault::new("metadata.name", "call the file and the object <network>.<gateway>"),
    )
}

/// The content of an intent, under its own name.
pub(crate) fn intent(
    record: &Record<WorkerSliceConfigSpec>,
    parts: &Parts<'_, WorkerSliceConfigSpec>,
) -> Result<Intent, Unreadable> {
    let at = |fault: FieldFault| field(record, parts.object, &fault);
    let intent = intent::to_engine("spec", parts.spec).map_err(at)?;
    if intent.object_name() == record.name {
        Ok(intent)
    } else {
        let message =
            format!("the file is called {:?} and speaks of {:?}", record.name, intent.object_name());
        Err(at(FieldFault::new("spec.sliceName", message)))
    }
}

/// The identity of an intent: in its own metadata if a controller of ours wrote it, else what the worker noted.
pub(crate) fn intent_identity(
    record: &Record<WorkerSliceConfigSpec>,
    parts: &Parts<'_, WorkerSliceConfigSpec>,
) -> Result<Option<Identity>, Unreadable> {
    let metadata = &parts.object.object.metadata;
    if !is_managed(metadata) {
        return Ok(noted(parts, parts.worker).map(|(_, new)| new.identity));
    }
    let missing =
        FieldFault::new("metadata", "labelled as written by a controller, but without uid and generation");
    Identity::of_metadata(metadata).map(Some).ok_or_else(|| field(record, parts.object, &missing))
}

/// What the worker says of an intent; what it said of an earlier object of that name counts for nothing.
pub(crate) fn worker_status(
    record: &Record<WorkerSliceConfigSpec>,
    worker: Option<&Arc<Document<WorkerSliceConfigSpec>>>,
    uid: &Uid,
) -> Result<WorkerStatus, Unreadable> {
    match worker {
        Some(worker) if speaks_of(&worker.object.metadata, uid) => {
            let status = worker.object.status.clone().unwrap_or_default();
            worker_status::to_engine(&status).map_err(|fault| field(record, worker, &fault))
        }
        Some(_) | None => Ok(WorkerStatus::default()),
    }
}

/// A field that the engine cannot hold, as an unreadable object.
pub(crate) fn field<S: Kind>(record: &Record<S>, document: &Document<S>, fault: &FieldFault) -> Unreadable {
    record.unreadable(document.locate(fault))
}
