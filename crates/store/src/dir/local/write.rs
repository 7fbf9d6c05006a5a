//! The steps that a worker records. It refuses to write what is recorded already.

use spanwire_api::{Kind, Metadata, Object};
use spanwire_engine::{
    LinkId, NetworkName,
    port::Written,
    worker::{AppliedIntent, RecordStep, RecordedLink},
};

use super::Inner;
use crate::convert::{applied_intent, link};
use crate::dir::{
    Error,
    folder::{Folder, Record, Slot},
    identity::Identity,
    layout::{Owner, object_file, status_file},
    lock::Exclude,
};

impl Inner {
    pub(super) fn apply(&self, step: &RecordStep) -> Result<Written, Error> {
        let _lock = self.root.lock(Exclude::All)?;
        match step {
            RecordStep::Intent(intent) => self.write_intent(intent),
            RecordStep::Link(link) => self.write_link(link),
            RecordStep::ForgetLink(id) => self.forget_link(id),
            RecordStep::ForgetIntent(network) => self.forget_intent(network),
        }
    }

    fn write_intent(&self, intent: &AppliedIntent) -> Result<Written, Error> {
        let record = self.intents.record(intent.intent.network.as_str());
        self.write(&self.intents, &record, applied_intent::to_api(intent)).map(|(written, _)| written)
    }

    fn write_link(&self, recorded: &RecordedLink) -> Result<Written, Error> {
        let record = self.links.record(&recorded.id.to_string());
        let (spec, identity) = self.write(&self.links, &record, link::spec_to_api(recorded))?;
        let mut metadata = Metadata::named(&record.name);
        metadata.uid = Some(identity.uid.0);
        let mut status = Object::new(metadata);
        status.status = Some(link::status_to_api(&recorded.status, identity.generation));
        let status = self.root.write_status(&self.links, Owner::Worker, &status)?;
        Ok(if spec == Written::Same { status } else { spec })
    }

    /// Writes a spec under the identity that the object has, or a new one. A record that cannot be read is replaced:
    /// its content is the worker's own, and it knows it better.
    fn write<S: Kind>(
        &self,
        folder: &Folder<S>,
        record: &Record<S>,
        spec: S,
    ) -> Result<(Written, Identity), Error> {
        let old = match &record.object {
            Slot::Good(document) => {
                Identity::of_metadata(&document.object.metadata).zip(document.object.spec.as_ref())
            }
            Slot::Absent | Slot::Bad(_) => None,
        };
        let identity = match old {
            Some((identity, old)) if *old == spec => return Ok((Written::Same, identity)),
            Some((Identity { uid, generation }, _)) => Identity { uid, generation: generation + 1 },
            None => Identity::new()?,
        };
        let mut object = Object::new(Metadata::named(&record.name));
        identity.write(&mut object.metadata);
        object.spec = Some(spec);
        Ok((self.root.write_object(folder, &object)?, identity))
    }

    fn forget_link(&self, id: &LinkId) -> Result<Written, Error> {
        let name = id.to_string();
        let written = self.root.remove(&self.links, &object_file(&name))?;
        self.root.remove(&self.links, &status_file(&name, Owner::Worker))?;
        Ok(written)
    }

    fn forget_intent(&self, network: &NetworkName) -> Result<Written, Error> {
        self.root.remove(&self.intents, &object_file(network.as_str()))
    }
}
