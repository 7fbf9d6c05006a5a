//! The records that are there. It refuses a record under another name than its content's.

use spanwire_api::{AppliedIntentSpec, Kind, TunnelLinkSpec};
use spanwire_engine::{
    Uid, Unreadable,
    worker::{AppliedIntent, Recorded, RecordedLink},
};

use super::Inner;
use crate::convert::{applied_intent, link};
use crate::dir::{
    Error,
    folder::{Record, Slot},
    join,
    layout::{Owner, status_file},
    lock::Exclude,
};

#[derive(Debug, Default)]
struct Gathered {
    recorded: Recorded,
    /// Temporary files of a killed writer.
    link_leftovers: Vec<String>,
    intent_leftovers: Vec<String>,
    /// Links of which only a status is left.
    orphans: Vec<String>,
}

impl Inner {
    pub(super) fn read(&self) -> Result<Recorded, Error> {
        let Gathered { recorded, link_leftovers, intent_leftovers, orphans } = {
            let _lock = self.root.lock(Exclude::Writers)?;
            self.gather()?
        };
        if !(link_leftovers.is_empty() && intent_leftovers.is_empty() && orphans.is_empty()) {
            let _lock = self.root.lock(Exclude::All)?;
            self.root.sweep(&self.links, &link_leftovers)?;
            self.root.sweep(&self.intents, &intent_leftovers)?;
            for name in orphans {
                if matches!(self.links.record(&name).object, Slot::Absent) {
                    self.root.remove(&self.links, &status_file(&name, Owner::Worker))?;
                }
            }
        }
        Ok(recorded)
    }

    fn gather(&self) -> Result<Gathered, Error> {
        let mut gathered = Gathered::default();
        self.gather_intents(&mut gathered)?;
        self.gather_links(&mut gathered)?;
        gathered.recorded.unreadable.sort();
        Ok(gathered)
    }

    fn gather_intents(&self, gathered: &mut Gathered) -> Result<(), Error> {
        let records = self.intents.read(|_| true)?;
        gathered.intent_leftovers = records.leftovers;
        let recorded = &mut gathered.recorded;
        recorded.unreadable.extend(records.misnamed);
        for record in records.records.values() {
            match intent(record) {
                Ok(Some(intent)) => drop(recorded.intents.insert(intent.intent.network.clone(), intent)),
                Ok(None) => {}
                Err(fault) => recorded.unreadable.push(fault),
            }
        }
        Ok(())
    }

    fn gather_links(&self, gathered: &mut Gathered) -> Result<(), Error> {
        let records = self.links.read(|_| true)?;
        gathered.link_leftovers = records.leftovers;
        let recorded = &mut gathered.recorded;
        recorded.unreadable.extend(records.misnamed);
        for record in records.records.values() {
            match recorded_link(record) {
                Ok(Some(link)) => drop(recorded.links.insert(link.id.clone(), link)),
                Ok(None) => gathered.orphans.push(record.name.clone()),
                Err(fault) => recorded.unreadable.push(fault),
            }
        }
        Ok(())
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
    let uid = Uid(parts.object.object.metadata.uid.clone().unwrap_or_default());
    let worker = parts.worker.filter(|worker| join::speaks_of(&worker.object.metadata, &uid));
    let status = worker.and_then(|worker| worker.object.status.clone()).unwrap_or_default();
    let link = link::to_engine(parts.spec, &status).map_err(|fault| {
        let of_status = fault.path.starts_with("status");
        join::field(record, worker.filter(|_| of_status).unwrap_or(parts.object), &fault)
    })?;
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
