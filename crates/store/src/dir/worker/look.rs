//! What a worker sees: all gateways, its own intents. It refuses to take a vanished intent for deleted before it has
//! stayed away.

use spanwire_api::{Kind, Object, TRACEPARENT, WorkerSliceConfigSpec};
use spanwire_engine::{GatewayName, Intent, NetworkName, Stored, Unreadable, WorkerStatus, port::WorkerView};

use super::Inner;
use crate::dir::{
    Error,
    folder::{Folder, Record, Records, Slot},
    identity::{Identity, Noted, spec_digest},
    join::{self, Parts},
    layout::{Owner, status_file},
    lock::Exclude,
};
use crate::managed::is_managed;

#[derive(Debug, Default)]
struct Gathered {
    view: WorkerView,
    /// Identities of hand-written intents that are new or were edited.
    notes: Vec<(String, Noted)>,
    /// Own status files of intents that are gone for good.
    gone_intents: Vec<String>,
    /// The own gateway is gone for good.
    gone_gateway: Vec<String>,
    /// Temporary files of killed writers.
    leftovers: Vec<String>,
}

type Seen = (NetworkName, (Stored<Intent>, WorkerStatus));

impl Inner {
    /// Reads what the worker of `me` may read; notes what is new under the writers' lock first.
    pub(super) fn read(&self, me: &GatewayName) -> Result<WorkerView, Error> {
        {
            let _lock = self.root.lock(Exclude::Writers)?;
            let Gathered { view, notes, gone_intents, gone_gateway, leftovers } = self.gather(me)?;
            if notes.is_empty() && gone_intents.is_empty() && gone_gateway.is_empty() && leftovers.is_empty()
            {
                return Ok(view);
            }
        }
        let _lock = self.root.lock(Exclude::All)?;
        let gathered = self.gather(me)?;
        self.settle(&gathered)?;
        self.gather(me).map(|gathered| gathered.view)
    }

    fn gather(&self, me: &GatewayName) -> Result<Gathered, Error> {
        let mut gathered = Gathered::default();
        self.gather_gateways(me, &mut gathered)?;
        self.gather_intents(me, &mut gathered)?;
        gathered.view.unreadable.sort();
        Ok(gathered)
    }

    fn gather_gateways(&self, me: &GatewayName, gathered: &mut Gathered) -> Result<(), Error> {
        let Records { records, misnamed, leftovers: _, moved } = self.gateways.read(|_| true)?;
        gathered.view.unreadable.extend(misnamed);
        for record in records.values() {
            if record.name == me.as_str()
                && self.is_gone(&self.gateways, record, moved, &mut gathered.view.unreadable)
            {
                gathered.gone_gateway.push(record.name.clone());
            }
            let joined = join::parts(record).and_then(|parts| {
                let Some(parts) = parts else { return Ok(None) };
                let identity = join::noted(&parts, parts.controller).map(|(old, _)| old.identity);
                join::gateway(record, &parts, identity.as_ref()).map(Some)
            });
            match joined {
                Ok(Some((name, gateway))) => drop(gathered.view.gateways.insert(name, gateway)),
                Ok(None) => {}
                Err(fault) => gathered.view.unreadable.push(fault),
            }
        }
        Ok(())
    }

    fn gather_intents(&self, me: &GatewayName, gathered: &mut Gathered) -> Result<(), Error> {
        let Records { records, misnamed, leftovers, moved } =
            self.intents.read(|name| may_be_for(me, name))?;
        gathered.leftovers = leftovers;
        gathered.view.unreadable.extend(misnamed);
        for record in records.values() {
            if self.is_gone(&self.intents, record, moved, &mut gathered.view.unreadable) {
                gathered.gone_intents.push(record.name.clone());
            }
            match seen(me, record, &mut gathered.notes) {
                Ok(Some((network, intent))) => {
                    gathered.view.traces.extend(trace(record));
                    gathered.view.intents.insert(network, intent);
                }
                Ok(None) => {}
                Err(fault) => gathered.view.unreadable.extend(join::under_both_names(record, fault)),
            }
        }
        Ok(())
    }

    /// Whether an object that this worker spoke of is gone for good; until then it is unknown.
    fn is_gone<S: Kind>(
        &self,
        folder: &Folder<S>,
        record: &Record<S>,
        moved: Option<std::time::SystemTime>,
        unreadable: &mut Vec<Unreadable>,
    ) -> bool {
        let absences = self.root.absences();
        if !matches!(record.object, Slot::Absent) || matches!(record.worker, Slot::Absent) {
            absences.forget(S::PLURAL, &record.name);
            return false;
        }
        let gone = absences.is_settled(S::PLURAL, &record.name, moved);
        if !gone {
            unreadable.push(record.unreadable(folder.gone(&record.name)));
        }
        gone
    }

    fn settle(&self, gathered: &Gathered) -> Result<(), Error> {
        let Gathered { view: _, notes, gone_intents, gone_gateway, leftovers } = gathered;
        self.root.sweep(&self.intents, leftovers)?;
        for name in gone_intents {
            self.root.remove(&self.intents, &status_file(name, Owner::Worker))?;
            self.root.absences().forget(WorkerSliceConfigSpec::PLURAL, name);
        }
        for name in gone_gateway {
            self.root.remove(&self.gateways, &status_file(name, Owner::Worker))?;
            self.root.absences().forget("gateways", name);
        }
        for (name, noted) in notes {
            let mut object = match self.intents.record(name).worker {
                Slot::Good(document) => document.object.clone(),
                Slot::Absent => Object::new(noted.metadata(name)),
                Slot::Bad(_) => continue,
            };
            object.metadata = noted.metadata(name);
            self.root.write_status(&self.intents, Owner::Worker, &object)?;
        }
        Ok(())
    }
}

/// Own intents, and files whose name belongs to no gateway.
fn may_be_for(me: &GatewayName, name: &str) -> bool {
    join::intent_names(name).is_none_or(|(_, gateway)| gateway == *me)
}

/// The trace that an intent names.
fn trace(record: &Record<WorkerSliceConfigSpec>) -> Option<String> {
    match &record.object {
        Slot::Good(document) => document.object.metadata.annotations.get(TRACEPARENT).cloned(),
        Slot::Absent | Slot::Bad(_) => None,
    }
}

/// One intent. The worker's own status is not needed to know a managed one: a broken status is written afresh.
fn seen(
    me: &GatewayName,
    record: &Record<WorkerSliceConfigSpec>,
    notes: &mut Vec<(String, Noted)>,
) -> Result<Option<Seen>, Unreadable> {
    let object = match &record.object {
        Slot::Absent => return Ok(None),
        Slot::Good(object) => object,
        Slot::Bad(cause) => return Err(record.unreadable(cause)),
    };
    let managed = is_managed(&object.object.metadata);
    let worker = match &record.worker {
        Slot::Absent => None,
        Slot::Good(worker) => Some(worker),
        Slot::Bad(_) if managed => None,
        Slot::Bad(cause) => return Err(record.unreadable(cause)),
    };
    let Some(spec) = &object.object.spec else { return Ok(None) };
    let parts = Parts { object, spec, controller: None, worker };
    if join::intent_names(&record.name).is_none() {
        let another = spec.gateway != me.as_str() && !spec.gateway.is_empty();
        return if another { Ok(None) } else { Err(join::misnamed_intent(record, object)) };
    }
    let intent = join::intent(record, &parts)?;
    let identity = match join::intent_identity(record, &parts)? {
        Some(identity) => identity,
        None => Identity { uid: spanwire_engine::Uid::default(), generation: 0 },
    };
    if !managed {
        note(record, &parts, notes);
    }
    let status = match join::worker_status(record, worker, &identity.uid) {
        Err(_) if managed => WorkerStatus::default(),
        status => status?,
    };
    let network = intent.network.clone();
    Ok(Some((network, (Stored { meta: record.meta(&identity), value: intent }, status))))
}

/// A chore where the identity of a hand-written intent is not noted yet.
fn note(
    record: &Record<WorkerSliceConfigSpec>,
    parts: &Parts<'_, WorkerSliceConfigSpec>,
    notes: &mut Vec<(String, Noted)>,
) {
    match join::noted(parts, parts.worker) {
        Some((old, new)) if old == new => {}
        Some((_, new)) => notes.push((record.name.clone(), new)),
        None => {
            if let Ok(identity) = Identity::new() {
                notes.push((
                    record.name.clone(),
                    Noted { identity, spec_digest: spec_digest(&parts.object.object) },
                ));
            }
        }
    }
}
