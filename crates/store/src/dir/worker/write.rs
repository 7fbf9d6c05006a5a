//! A worker's writes: the status of its own gateway and intents. It refuses to say anything of an object that was made
//! again.

use spanwire_api::{Metadata, Object};
use spanwire_engine::{GatewayFacts, GatewayName, Meta, WorkerStatus, port::Written};

use super::Inner;
use crate::Conflict;
use crate::convert::{gateway, worker_status};
use crate::dir::{
    Error,
    folder::Slot,
    identity::{Identity, Noted},
    layout::Owner,
    lock::Exclude,
};
use crate::managed::is_managed;

const GATEWAYS: &str = "gateways";
const INTENTS: &str = "workersliceconfigs";

impl Inner {
    pub(super) fn write_gateway_facts(
        &self,
        name: &GatewayName,
        facts: &GatewayFacts,
    ) -> Result<Written, Error> {
        let _lock = self.root.lock(Exclude::All)?;
        let record = self.gateways.record(name.as_str());
        match &record.object {
            Slot::Absent => return Err(Error::NotFound { kind: GATEWAYS, name: name.to_string() }),
            Slot::Good(_) => {}
            Slot::Bad(cause) => return Err(unreadable(GATEWAYS, name.as_str(), cause)),
        }
        if let Slot::Bad(cause) = &record.worker {
            // The generation of the key that is published there is not known, and must not go back.
            return Err(unreadable(GATEWAYS, name.as_str(), cause));
        }
        let mut metadata = Metadata::named(name.as_str());
        // Facts outlive their gateway's file; the UID tells facts of an earlier one.
        metadata.uid = match &record.controller {
            Slot::Good(document) => document.object.metadata.uid.clone(),
            Slot::Absent => None,
            Slot::Bad(cause) => return Err(unreadable(GATEWAYS, name.as_str(), cause)),
        };
        let mut object = Object::new(metadata);
        object.status = Some(gateway::facts_to_api(facts));
        self.root.write_status(&self.gateways, Owner::Worker, &object)
    }

    pub(super) fn write_intent_status(
        &self,
        name: &str,
        status: &WorkerStatus,
        expected: &Meta,
    ) -> Result<Written, Error> {
        let _lock = self.root.lock(Exclude::All)?;
        let record = self.intents.record(name);
        let conflict = |why| Error::Conflict { kind: INTENTS, name: name.to_owned(), why };
        let object = match &record.object {
            Slot::Absent => return Err(conflict(Conflict::Missing)),
            Slot::Good(document) => &document.object,
            Slot::Bad(cause) => return Err(unreadable(INTENTS, name, cause)),
        };
        let metadata = if is_managed(&object.metadata) {
            let mut metadata = Metadata::named(name);
            metadata.uid = Identity::of_metadata(&object.metadata).map(|identity| identity.uid.0);
            metadata
        } else {
            let noted = match &record.worker {
                Slot::Absent => None,
                Slot::Good(document) => Noted::from(&document.object.metadata),
                Slot::Bad(cause) => return Err(unreadable(INTENTS, name, cause)),
            };
            // The spec may have been edited since: its generation moves at the next read, not here.
            noted.map(|noted| noted.metadata(name)).unwrap_or_else(|| Metadata::named(name))
        };
        if metadata.uid.as_deref() != Some(expected.uid.0.as_str()) {
            return Err(conflict(Conflict::OtherUid));
        }
        let mut object = Object::new(metadata);
        object.status = Some(worker_status::to_api(status));
        self.root.write_status(&self.intents, Owner::Worker, &object)
    }
}

fn unreadable(kind: &'static str, name: &str, cause: &str) -> Error {
    Error::Unreadable { kind, name: name.to_owned(), cause: cause.to_owned() }
}
