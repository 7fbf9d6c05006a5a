//! What the controller sees, and what it has to note down before it acts: identities of new and edited objects. It
//! refuses to note anything for an object that it could not read.

use spanwire_api::{GatewayNetworkSpec, Kind, Object, TRACEPARENT, WorkerSliceConfigSpec};
use spanwire_engine::{
    Unreadable,
    port::{ControlView, NetworkView, controller_store::IntentView},
};

use super::Inner;
use crate::convert::network;
use crate::dir::{
    Error,
    folder::{Folder, Record, Records, Slot},
    identity::{Identity, Noted, spec_digest},
    join::{self, Parts},
    layout::{Owner, status_file},
    lock::Exclude,
};
use crate::managed::is_managed;

/// What was seen, and what has to be written.
#[derive(Debug, Default)]
pub(super) struct Gathered {
    pub(super) view: ControlView,
    gateways: Chores,
    networks: Chores,
    intents: Chores,
}

/// What has to be written in one folder.
#[derive(Debug, Default)]
struct Chores {
    /// Identities of new and edited objects.
    notes: Vec<(String, Noted)>,
    /// Names of objects that are gone for good.
    gone: Vec<String>,
    /// Temporary files of killed writers.
    leftovers: Vec<String>,
}

impl Chores {
    fn is_empty(&self) -> bool {
        self.notes.is_empty() && self.gone.is_empty() && self.leftovers.is_empty()
    }
}

impl Inner {
    /// Reads everything; notes what is new under the writers' lock first.
    pub(super) fn read(&self) -> Result<ControlView, Error> {
        {
            let _lock = self.root.lock(Exclude::Writers)?;
            let gathered = self.gather()?;
            if gathered.gateways.is_empty() && gathered.networks.is_empty() && gathered.intents.is_empty() {
                return Ok(gathered.view);
            }
        }
        let _lock = self.root.lock(Exclude::All)?;
        let gathered = self.gather()?;
        self.settle(&self.gateways, &gathered.gateways)?;
        self.settle(&self.networks, &gathered.networks)?;
        self.settle(&self.intents, &gathered.intents)?;
        self.gather().map(|gathered| gathered.view)
    }

    /// Reads everything and writes nothing.
    pub(super) fn gather(&self) -> Result<Gathered, Error> {
        let mut gathered = Gathered::default();
        self.gather_gateways(&mut gathered)?;
        self.gather_networks(&mut gathered)?;
        self.gather_intents(&mut gathered)?;
        gathered.view.unreadable.sort();
        Ok(gathered)
    }

    fn gather_gateways(&self, gathered: &mut Gathered) -> Result<(), Error> {
        let Gathered { view, gateways: chores, networks: _, intents: _ } = gathered;
        for record in self.records(&self.gateways, chores, &mut view.unreadable)? {
            let joined = join::parts(&record).and_then(|parts| {
                let Some(parts) = parts else { return Ok(None) };
                let identity = note(&record, &parts, chores);
                join::gateway(&record, &parts, identity.as_ref()).map(Some)
            });
            keep(joined, &mut view.unreadable, |(name, gateway)| drop(view.gateways.insert(name, gateway)));
        }
        Ok(())
    }

    fn gather_networks(&self, gathered: &mut Gathered) -> Result<(), Error> {
        let Gathered { view, networks: chores, gateways: _, intents: _ } = gathered;
        for record in self.records(&self.networks, chores, &mut view.unreadable)? {
            let joined = join::parts(&record).and_then(|parts| {
                let Some(parts) = parts else { return Ok(None) };
                let name = record.name.parse().map_err(|fault| record.unreadable(format!("{fault}")))?;
                let identity = note(&record, &parts, chores);
                view.traces.extend(parts.object.object.metadata.annotations.get(TRACEPARENT).cloned());
                network_view(&record, &parts, identity.as_ref()).map(|network| Some((name, network)))
            });
            keep(joined, &mut view.unreadable, |(name, network)| drop(view.networks.insert(name, network)));
        }
        Ok(())
    }

    fn gather_intents(&self, gathered: &mut Gathered) -> Result<(), Error> {
        let Gathered { view, intents: chores, gateways: _, networks: _ } = gathered;
        let records = self.intents.read(|_| true)?;
        chores.leftovers = records.leftovers;
        view.unreadable.extend(records.misnamed);
        for record in records.records.into_values() {
            let joined = join::parts(&record).and_then(|parts| {
                let Some(parts) = parts else { return Ok(None) };
                let name = join::intent_names(&record.name)
                    .ok_or_else(|| join::misnamed_intent(&record, parts.object))?;
                intent_view(&record, &parts).map(|intent| Some((name, intent)))
            });
            match joined {
                Ok(Some((name, intent))) => drop(view.intents.insert(name, intent)),
                Ok(None) => {}
                Err(fault) => view.unreadable.extend(join::under_both_names(&record, fault)),
            }
        }
        Ok(())
    }

    /// The records of a kind whose identity the controller keeps; those that are gone become chores.
    fn records<S: Kind>(
        &self,
        folder: &Folder<S>,
        chores: &mut Chores,
        unreadable: &mut Vec<Unreadable>,
    ) -> Result<Vec<Record<S>>, Error> {
        let Records { records, misnamed, leftovers, moved } = folder.read(|_| true)?;
        chores.leftovers = leftovers;
        unreadable.extend(misnamed);
        let absences = self.root.absences();
        for record in records.values() {
            let (gone, known) =
                (matches!(record.object, Slot::Absent), !matches!(record.controller, Slot::Absent));
            if !gone || !known {
                absences.forget(S::PLURAL, &record.name);
            } else if absences.is_settled(S::PLURAL, &record.name, moved) {
                chores.gone.push(record.name.clone());
            } else {
                unreadable.push(record.unreadable(folder.gone(&record.name)));
            }
        }
        Ok(records.into_values().collect())
    }

    /// Does the chores of a folder, under the writers' lock.
    fn settle<S: Kind>(&self, folder: &Folder<S>, chores: &Chores) -> Result<(), Error> {
        let Chores { notes, gone, leftovers } = chores;
        self.root.sweep(folder, leftovers)?;
        for name in gone {
            self.root.remove(folder, &status_file(name, Owner::Controller))?;
            self.root.absences().forget(S::PLURAL, name);
        }
        for (name, noted) in notes {
            let mut object = match folder.record(name).controller {
                Slot::Good(document) => document.object.clone(),
                Slot::Absent => Object::new(noted.metadata(name)),
                Slot::Bad(_) => continue,
            };
            object.metadata = noted.metadata(name);
            self.root.write_status(folder, Owner::Controller, &object)?;
        }
        Ok(())
    }
}

/// The identity of an object as it should be noted, with a chore where it is not noted yet. A new object has none
/// before it is noted.
fn note<S: Kind>(record: &Record<S>, parts: &Parts<'_, S>, chores: &mut Chores) -> Option<Identity> {
    match join::noted(parts, parts.controller) {
        Some((old, new)) => {
            if old != new {
                chores.notes.push((record.name.clone(), new.clone()));
            }
            Some(new.identity)
        }
        None => {
            if let Ok(identity) = Identity::new() {
                let spec_digest = spec_digest(&parts.object.object);
                chores.notes.push((record.name.clone(), Noted { identity, spec_digest }));
            }
            None
        }
    }
}

pub(super) fn network_view(
    record: &Record<GatewayNetworkSpec>,
    parts: &Parts<'_, GatewayNetworkSpec>,
    identity: Option<&Identity>,
) -> Result<NetworkView, Unreadable> {
    let status = match parts.controller {
        Some(controller) => {
            let status = controller.object.status.clone().unwrap_or_default();
            network::status_to_engine(&status).map_err(|fault| join::field(record, controller, &fault))?
        }
        None => spanwire_engine::NetworkStatus::default(),
    };
    let mut meta = identity.map(|identity| record.meta(identity)).unwrap_or_default();
    meta.resource_version = record.resource_version();
    Ok(NetworkView { meta, spec: network::spec_to_engine(parts.spec), status })
}

pub(super) fn intent_view(
    record: &Record<WorkerSliceConfigSpec>,
    parts: &Parts<'_, WorkerSliceConfigSpec>,
) -> Result<IntentView, Unreadable> {
    let intent = join::intent(record, parts)?;
    let identity = join::intent_identity(record, parts)?;
    let mut meta = identity.map(|identity| record.meta(&identity)).unwrap_or_default();
    meta.resource_version = record.resource_version();
    let status = join::worker_status(record, parts.worker, &meta.uid)?;
    Ok(IntentView {
        meta,
        intent,
        status,
        managed: is_managed(&parts.object.object.metadata),
        deleting: None,
    })
}

/// Files a joined object or its fault.
fn keep<T>(joined: Result<Option<T>, Unreadable>, unreadable: &mut Vec<Unreadable>, insert: impl FnOnce(T)) {
    match joined {
        Ok(Some(object)) => insert(object),
        Ok(None) => {}
        Err(fault) => unreadable.push(fault),
    }
}
