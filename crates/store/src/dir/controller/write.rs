//! The controller's writes, each under the lock and against what was read. It refuses to write over what it cannot
//! read, and intents that are not its own.

use spanwire_api::{Kind, Metadata, Object};
use spanwire_engine::{GatewayName, Intent, Meta, NetworkName, NetworkStatus, Uid, port::Written};

use super::Inner;
use crate::Conflict;
use crate::convert::{gateway, intent, network};
use crate::dir::{
    Error,
    folder::{Record, Slot},
    identity::{Identity, Noted, spec_digest},
    join::{self, Parts},
    layout::{Owner, object_file},
    lock::Exclude,
};
use crate::managed::{is_managed, mark_managed};

impl Inner {
    pub(super) fn write_network_status(
        &self,
        name: &NetworkName,
        status: &NetworkStatus,
        expected: &Meta,
    ) -> Result<Written, Error> {
        let _lock = self.root.lock(Exclude::All)?;
        let record = self.networks.record(name.as_str());
        let parts = parts(&record)?.ok_or_else(|| conflict(&record, Conflict::Missing))?;
        if record.resource_version() != expected.resource_version {
            let uid =
                Uid(parts.controller.and_then(|old| old.object.metadata.uid.clone()).unwrap_or_default());
            let why = if uid.is_another_than(&expected.uid) { Conflict::OtherUid } else { Conflict::Changed };
            return Err(conflict(&record, why));
        }
        let noted = match join::noted(&parts, parts.controller) {
            Some((_, new)) if !new.identity.uid.is_another_than(&expected.uid) => new,
            Some(_) | None => return Err(conflict(&record, Conflict::OtherUid)),
        };
        let mut object = Object::new(noted.metadata(&record.name));
        object.status = Some(network::status_to_api(status));
        self.root.write_status(&self.networks, Owner::Controller, &object)
    }

    pub(super) fn write_intent(&self, intent: &Intent, expected: Option<&Meta>) -> Result<Written, Error> {
        let _lock = self.root.lock(Exclude::All)?;
        let record = self.intents.record(&intent.object_name());
        // What the worker says is not needed to write the spec, so it may be unreadable.
        let old = match &record.object {
            Slot::Absent => None,
            Slot::Good(document) => Some(&document.object),
            Slot::Bad(cause) => return Err(unreadable(&record, cause)),
        };
        let (identity, metadata) = match (old, expected) {
            (None, None) => (Identity::new()?, Metadata::named(&record.name)),
            (None, Some(_)) => return Err(conflict(&record, Conflict::Missing)),
            (Some(_), None) => return Err(conflict(&record, Conflict::Exists)),
            (Some(old), Some(expected)) => {
                let mut identity = own_identity(&record, &old.metadata, expected)?;
                if record.resource_version() != expected.resource_version {
                    return Err(conflict(&record, Conflict::Changed));
                }
                if old.spec.as_ref() == Some(&intent::to_api(intent)) {
                    return Ok(Written::Same);
                }
                identity.generation += 1;
                (identity, old.metadata.clone())
            }
        };
        let mut object = Object::new(metadata);
        identity.write(&mut object.metadata);
        mark_managed(&mut object.metadata);
        object.spec = Some(intent::to_api(intent));
        self.root.write_object(&self.intents, &object)
    }

    pub(super) fn delete_intent(&self, name: &str, expected: &Meta) -> Result<Written, Error> {
        let _lock = self.root.lock(Exclude::All)?;
        let record = self.intents.record(name);
        match &record.object {
            Slot::Absent => Ok(Written::Same),
            Slot::Bad(cause) => Err(unreadable(&record, cause)),
            Slot::Good(document) => {
                own_identity(&record, &document.object.metadata, expected)?;
                self.root.remove(&self.intents, &object_file(name))
            }
        }
    }

    pub(super) fn write_gateway_networks(
        &self,
        name: &GatewayName,
        networks: &gateway::Networks,
    ) -> Result<Written, Error> {
        let _lock = self.root.lock(Exclude::All)?;
        let record = self.gateways.record(name.as_str());
        let missing = || Error::NotFound { kind: "gateways", name: name.to_string() };
        let object = match &record.object {
            Slot::Absent => return Err(missing()),
            Slot::Good(document) => document,
            Slot::Bad(cause) => return Err(unreadable(&record, cause)),
        };
        let spec_digest = spec_digest(&object.object);
        let old = match &record.controller {
            Slot::Absent => None,
            Slot::Good(document) => Noted::from(&document.object.metadata),
            Slot::Bad(cause) => return Err(unreadable(&record, cause)),
        };
        let noted = match old {
            Some(old) => old.for_spec(spec_digest),
            None => Noted { identity: Identity::new()?, spec_digest },
        };
        let mut object = Object::new(noted.metadata(&record.name));
        object.status = Some(gateway::networks_to_api(networks));
        self.root.write_status(&self.gateways, Owner::Controller, &object)
    }
}

/// The identity of an intent that a controller of ours wrote and that is still the expected one.
fn own_identity<S: Kind>(
    record: &Record<S>,
    metadata: &Metadata,
    expected: &Meta,
) -> Result<Identity, Error> {
    if !is_managed(metadata) {
        return Err(Error::NotManaged { name: record.name.clone() });
    }
    match Identity::of_metadata(metadata) {
        Some(identity) if identity.uid == expected.uid => Ok(identity),
        Some(_) | None => Err(conflict(record, Conflict::OtherUid)),
    }
}

fn parts<S: Kind>(record: &Record<S>) -> Result<Option<Parts<'_, S>>, Error> {
    join::parts(record).map_err(|fault| unreadable(record, &fault.cause))
}

fn conflict<S: Kind>(record: &Record<S>, why: Conflict) -> Error {
    Error::Conflict { kind: S::PLURAL, name: record.name.clone(), why }
}

fn unreadable<S: Kind>(record: &Record<S>, cause: &str) -> Error {
    Error::Unreadable { kind: S::PLURAL, name: record.name.clone(), cause: cause.to_owned() }
}
