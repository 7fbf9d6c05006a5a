//! Server-side apply with one field manager a role. It refuses to state a field that the role does not own.

use std::sync::Arc;

use kube::api::{Api, DeleteParams, DynamicObject, Patch, PatchParams, Preconditions};
use spanwire_api::{Kind, Metadata, Object};
use spanwire_engine::{Meta, port::Written};
use tokio::sync::watch;

use super::{
    Connection, Error,
    call::{Verb, call},
    mirror::{Held, Mirror},
};
use crate::Conflict;

/// Who writes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Manager {
    /// The controller.
    Controller,
    /// A worker.
    Worker,
}

impl Manager {
    pub(super) fn as_str(self) -> &'static str {
        match self {
            Manager::Controller => "spanwire-controller",
            Manager::Worker => "spanwire-worker",
        }
    }
}

/// Metadata that names an object, and that it must still be the one with this UID.
pub(super) fn of_uid(name: &str, uid: &str) -> Metadata {
    Metadata { uid: Some(uid.to_owned()), ..Metadata::named(name) }
}

/// Everything of one kind: the calls, and the mirror that learns of what they answer.
pub(super) struct Kept<S: Kind> {
    api: Api<DynamicObject>,
    pub(super) mirror: Mirror<S>,
    manager: Manager,
}

impl<S: Kind + Send + Sync + 'static> Kept<S>
where
    S::Status: Send + Sync,
{
    /// Begins to follow all objects of the kind, or the one called `name`; `news` hears of every change.
    pub(super) fn follow(
        connection: &Connection,
        name: Option<&str>,
        manager: Manager,
        news: &watch::Sender<()>,
    ) -> Self {
        let api = connection.objects::<S>();
        Self { mirror: Mirror::start(api.clone(), name, news.clone()), api, manager }
    }

    /// The object as it is known; a bad one is an error.
    pub(super) fn good(&self, name: &str) -> Result<Option<Arc<Object<S>>>, Error> {
        match self.mirror.object(name)? {
            None => Ok(None),
            Some(Held::Good(object)) => Ok(Some(object)),
            Some(Held::Bad { cause, version: _ }) => {
                Err(Error::Unreadable { kind: S::PLURAL, name: name.to_owned(), cause: cause.to_string() })
            }
        }
    }

    /// States the spec. `force`: the object is ours, whoever touched its fields.
    pub(super) async fn apply_spec(&self, object: &Object<S>, force: bool) -> Result<(), Error> {
        let name = &object.metadata.name;
        let stated = Patch::Apply(self.express(object)?);
        let params = PatchParams { force, ..PatchParams::apply(self.manager.as_str()) };
        let since = self.mirror.moment(name);
        let sent = self.api.patch(name, &params, &stated);
        let answer = call(Verb::Apply, S::PLURAL, name, sent).await;
        let answer = answer.map_err(|source| refused::<S>("write", name, source))?;
        self.mirror.absorb(answer, since);
        Ok(())
    }

    /// States this role's part of the status of an object that is known.
    pub(super) async fn apply_status_of(
        &self,
        known: &Object<S>,
        status: S::Status,
    ) -> Result<Written, Error> {
        let uid = known.metadata.uid.as_deref().unwrap_or_default();
        let mut object = Object::new(of_uid(&known.metadata.name, uid));
        object.status = Some(status);
        self.apply_status(&object).await
    }

    /// The same, under the metadata that the object gives.
    pub(super) async fn apply_status(&self, object: &Object<S>) -> Result<Written, Error> {
        let name = &object.metadata.name;
        let stated = Patch::Apply(self.express(object)?);
        let params = PatchParams { force: true, ..PatchParams::apply(self.manager.as_str()) };
        let since = self.mirror.moment(name);
        let sent = self.api.patch_status(name, &params, &stated);
        let answer = call(Verb::ApplyStatus, S::PLURAL, name, sent).await;
        let answer = answer.map_err(|source| refused::<S>("write the status of", name, source))?;
        self.mirror.absorb(answer, since);
        Ok(Written::Changed)
    }

    /// Deletes the object if it still has that UID. A missing one is no error.
    pub(super) async fn delete(&self, name: &str, uid: &str) -> Result<Written, Error> {
        let preconditions = Preconditions { uid: Some(uid.to_owned()), resource_version: None };
        let params = DeleteParams { preconditions: Some(preconditions), ..DeleteParams::default() };
        let since = self.mirror.moment(name);
        let written = match call(Verb::Delete, S::PLURAL, name, self.api.delete(name, &params)).await {
            Ok(answer) => {
                // An object with a finalizer is answered as it stands from now on.
                if let Some(object) = answer.left().filter(|object| object.metadata.finalizers.is_some()) {
                    self.mirror.absorb(object, since);
                    return Ok(Written::Changed);
                }
                Written::Changed
            }
            Err(kube::Error::Api(status)) if status.is_not_found() => Written::Same,
            Err(source) => return Err(refused::<S>("delete", name, source)),
        };
        self.mirror.forget(name, Some(uid));
        Ok(written)
    }

    /// Asks the server itself, and takes over what it says, also where it is older than what was known.
    pub(super) async fn ask(&self, name: &str) -> Result<(), Error> {
        let answer = call(Verb::Get, S::PLURAL, name, self.api.get_opt(name)).await;
        let answer = answer.map_err(|source| refused::<S>("read", name, source))?;
        if let Some(object) = answer {
            self.mirror.believe(object);
        }
        Ok(())
    }

    fn express(&self, object: &Object<S>) -> Result<serde_json::Value, Error> {
        serde_json::to_value(object).map_err(|fault| Error::Express {
            kind: S::PLURAL,
            name: object.metadata.name.clone(),
            source: Arc::new(fault),
        })
    }
}

/// A refused call: a conflict where the server says so.
fn refused<S: Kind>(verb: &'static str, name: &str, source: kube::Error) -> Error {
    let (kind, name) = (S::PLURAL, name.to_owned());
    match &source {
        kube::Error::Api(status) if status.code == 409 => {
            Error::Conflict { kind, name, why: Conflict::Changed }
        }
        kube::Error::Api(status) if status.is_not_found() && verb != "read" => {
            Error::Conflict { kind, name, why: Conflict::Missing }
        }
        _ => Error::Call { verb, kind, name, cause: Arc::new(source) },
    }
}

/// That an object is still the one that was read.
pub(super) fn check_uid<S: Kind>(known: &Object<S>, expected: &Meta) -> Result<(), Error> {
    if known.metadata.uid.as_deref() == Some(expected.uid.0.as_str()) {
        Ok(())
    } else {
        Err(conflict::<S>(&known.metadata.name, Conflict::OtherUid))
    }
}

/// A conflict on one object.
pub(super) fn conflict<S: Kind>(name: &str, why: Conflict) -> Error {
    Error::Conflict { kind: S::PLURAL, name: name.to_owned(), why }
}
