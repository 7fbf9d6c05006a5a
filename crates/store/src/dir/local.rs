//! A worker's own records in a directory of its own. It refuses to let other accounts read them.

use std::{path::Path, sync::Arc};

use spanwire_api::{AppliedIntentSpec, Kind, Metadata, Object, TunnelLinkSpec};
use spanwire_engine::{
    LinkId, NetworkName, Unreadable,
    port::{LocalStore, Written},
    worker::{AppliedIntent, RecordStep, Recorded, RecordedLink},
};

use super::{
    Error, Watch,
    file::Pen,
    folder::{Folder, Record, Slot},
    identity::Identity,
    join,
    layout::{Owner, object_file, status_file},
    lock::Exclude,
    root::{Root, blocking},
};
use crate::convert::{applied_intent, link};

/// A worker's handle on its local directory.
#[derive(Debug, Clone)]
pub struct Local(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    root: Root,
    intents: Folder<AppliedIntentSpec>,
    links: Folder<TunnelLinkSpec>,
}

impl Local {
    /// Opens the directory and makes it if it is missing (its parent has to be there).
    ///
    /// # Errors
    /// [`Error::Root`] if it is closed, [`Error::Write`] if it cannot be made.
    pub fn open(path: impl AsRef<Path>) -> Result<Self, Error> {
        let path = path.as_ref();
        let pen = Pen::private();
        pen.make_folder(path).map_err(|source| Error::Write { path: path.to_owned(), source })?;
        Ok(Self(Arc::new(Inner {
            root: Root::open(path, pen)?,
            intents: Folder::new(path),
            links: Folder::new(path),
        })))
    }

    /// Watches the directory.
    ///
    /// # Errors
    /// [`Error::Watch`] if the system gives no watch.
    pub fn watch(&self) -> Result<Watch, Error> {
        Watch::of(&self.0.root)
    }

    /// Files written or removed by this handle.
    pub fn writes(&self) -> u64 {
        self.0.root.writes()
    }
}

impl LocalStore for Local {
    type Error = Error;

    async fn read(&self) -> Result<Recorded, Error> {
        let inner = Arc::clone(&self.0);
        blocking(move || inner.read()).await
    }

    async fn apply(&self, step: &RecordStep) -> Result<Written, Error> {
        let (inner, step) = (Arc::clone(&self.0), step.clone());
        blocking(move || inner.apply(&step)).await
    }
}

impl Inner {
    fn read(&self) -> Result<Recorded, Error> {
        let (recorded, links, intents, orphans) = {
            let _lock = self.root.lock(Exclude::Writers)?;
            self.gather()?
        };
        if !(links.is_empty() && intents.is_empty() && orphans.is_empty()) {
            let _lock = self.root.lock(Exclude::All)?;
            self.root.sweep(&self.links, &links)?;
            self.root.sweep(&self.intents, &intents)?;
            for name in orphans {
                if matches!(self.links.record(&name).object, Slot::Absent) {
                    self.root.remove(&self.links, &status_file(&name, Owner::Worker))?;
                }
            }
        }
        Ok(recorded)
    }

    /// Records, leftovers of both folders, and links of which only a status is left.
    fn gather(&self) -> Result<(Recorded, Vec<String>, Vec<String>, Vec<String>), Error> {
        let mut recorded = Recorded::default();
        let intents = self.intents.read(|_| true)?;
        recorded.unreadable.extend(intents.misnamed);
        for record in intents.records.values() {
            match intent(record) {
                Ok(Some(intent)) => drop(recorded.intents.insert(intent.intent.network.clone(), intent)),
                Ok(None) => {}
                Err(fault) => recorded.unreadable.push(fault),
            }
        }
        let links = self.links.read(|_| true)?;
        recorded.unreadable.extend(links.misnamed);
        let mut orphans = Vec::new();
        for record in links.records.values() {
            match recorded_link(record) {
                Ok(Some(link)) => drop(recorded.links.insert(link.id.clone(), link)),
                Ok(None) => orphans.push(record.name.clone()),
                Err(fault) => recorded.unreadable.push(fault),
            }
        }
        recorded.unreadable.sort();
        Ok((recorded, links.leftovers, intents.leftovers, orphans))
    }

    fn apply(&self, step: &RecordStep) -> Result<Written, Error> {
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

fn intent(record: &Record<AppliedIntentSpec>) -> Result<Option<AppliedIntent>, Unreadable> {
    let Some(parts) = join::parts(record)? else { return Ok(None) };
    let intent =
        applied_intent::to_engine(parts.spec).map_err(|fault| join::field(record, parts.object, &fault))?;
    same_name(record, intent.intent.network.as_str())?;
    Ok(Some(intent))
}

fn recorded_link(record: &Record<TunnelLinkSpec>) -> Result<Option<RecordedLink>, Unreadable> {
    let Some(parts) = join::parts(record)? else { return Ok(None) };
    let uid = spanwire_engine::Uid(parts.object.object.metadata.uid.clone().unwrap_or_default());
    let worker = parts.worker.filter(|worker| join::speaks_of(&worker.object.metadata, &uid));
    let status = worker.and_then(|worker| worker.object.status.clone()).unwrap_or_default();
    let at = |fault| join::field(record, worker.unwrap_or(parts.object), &fault);
    let link = link::to_engine(parts.spec, &status).map_err(at)?;
    same_name(record, &link.id.to_string())?;
    Ok(Some(link))
}

fn same_name<S: Kind>(record: &Record<S>, content: &str) -> Result<(), Unreadable> {
    if record.name == content {
        Ok(())
    } else {
        Err(record.unreadable(format!("the file is called {:?} and speaks of {content:?}", record.name)))
    }
}
