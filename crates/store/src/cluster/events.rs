//! Events on objects of ours, for people. It refuses to write one twice: what happens again is counted on the Event that
//! is there.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, PoisonError},
};

use jiff::Timestamp;
use k8s_openapi::{
    api::{core::v1::ObjectReference, events::v1::Event},
    apimachinery::pkg::apis::meta::v1::{MicroTime, ObjectMeta},
};
use kube::{
    Api,
    api::{Patch, PatchParams, PostParams},
};
use sha2::{Digest as _, Sha256};
use spanwire_api::{API_VERSION, Kind};

use super::{
    Connection, Error,
    call::{Verb, call},
};

const EVENTS: &str = "events";
/// The longest text that an API server takes, in bytes.
const NOTE: usize = 1024;
/// How many Events are counted on at once; an API server forgets them after an hour anyway.
const KEPT: usize = 1_000;

/// What happened to which object.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Happening {
    /// The kind of the object.
    pub kind: &'static str,
    /// Its name.
    pub name: String,
    /// Its UID.
    pub uid: String,
    /// One word for it.
    pub reason: &'static str,
    /// Words for people.
    pub note: String,
    /// Whether somebody should look.
    pub warns: bool,
}

impl Happening {
    /// On an object of this kind; it does not warn.
    pub fn on<S: Kind>(
        name: impl Into<String>,
        uid: impl Into<String>,
        reason: &'static str,
        note: String,
    ) -> Self {
        Self { kind: S::KIND, name: name.into(), uid: uid.into(), reason, note, warns: false }
    }

    /// The same, for somebody to look at.
    #[must_use]
    pub fn warning(self) -> Self {
        Self { warns: true, ..self }
    }

    /// The name of its Event: the same for the same words on the same object.
    fn event_name(&self) -> String {
        let digest = Sha256::digest(format!("{} {} {}", self.uid, self.reason, self.note));
        let digest: String = digest.iter().take(8).map(|byte| format!("{byte:02x}")).collect();
        format!("{}.{digest}", self.name)
    }
}

/// Writes Events into the namespace of a connection.
pub struct EventWriter {
    api: Api<Event>,
    namespace: String,
    reporter: &'static str,
    counted: Mutex<BTreeMap<String, i32>>,
}

impl EventWriter {
    /// As a controller of this name.
    pub fn new(connection: &Connection, reporter: &'static str) -> Self {
        let namespace = connection.namespace().to_owned();
        let api = Api::namespaced(connection.client().clone(), &namespace);
        Self { api, namespace, reporter, counted: Mutex::default() }
    }

    /// Writes it, or counts it on the Event that says the same.
    ///
    /// # Errors
    /// The server does not answer, or refuses it.
    pub async fn write(&self, happening: &Happening) -> Result<(), Error> {
        let name = happening.event_name();
        let event = self.event(&name, happening);
        let made = call(Verb::Create, EVENTS, &name, self.api.create(&PostParams::default(), &event)).await;
        match made {
            Ok(_) => drop(self.counted().insert(name, 1)),
            Err(kube::Error::Api(status)) if status.is_already_exists() => {
                let series = Patch::Merge(serde_json::json!({
                    "series": { "count": self.count(&name), "lastObservedTime": MicroTime(Timestamp::now()) },
                }));
                let params = PatchParams::default();
                let sent = self.api.patch(&name, &params, &series);
                call(Verb::Patch, EVENTS, &name, sent).await.map_err(|cause| failed(name, cause))?;
            }
            Err(cause) => return Err(failed(name, cause)),
        }
        Ok(())
    }

    fn counted(&self) -> std::sync::MutexGuard<'_, BTreeMap<String, i32>> {
        self.counted.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// How often it happened by now; what another process counted is not known.
    fn count(&self, name: &str) -> i32 {
        let mut counted = self.counted();
        if counted.len() >= KEPT {
            counted.clear();
        }
        let count = counted.entry(name.to_owned()).or_insert(1);
        *count = count.saturating_add(1);
        *count
    }

    fn event(&self, name: &str, happening: &Happening) -> Event {
        let Happening { kind, name: object, uid, reason, note, warns } = happening;
        let mut note = note.clone();
        note.truncate(note.floor_char_boundary(NOTE));
        Event {
            metadata: ObjectMeta {
                name: Some(name.to_owned()),
                namespace: Some(self.namespace.clone()),
                ..ObjectMeta::default()
            },
            regarding: Some(ObjectReference {
                api_version: Some(API_VERSION.to_owned()),
                kind: Some((*kind).to_owned()),
                name: Some(object.clone()),
                namespace: Some(self.namespace.clone()),
                uid: Some(uid.clone()),
                ..ObjectReference::default()
            }),
            action: Some("Reconcile".to_owned()),
            reason: Some((*reason).to_owned()),
            note: Some(note),
            type_: Some(if *warns { "Warning" } else { "Normal" }.to_owned()),
            event_time: Some(MicroTime(Timestamp::now())),
            reporting_controller: Some(format!("spanwire.dev/{}", self.reporter)),
            reporting_instance: Some(self.reporter.to_owned()),
            ..Event::default()
        }
    }
}

fn failed(name: String, cause: kube::Error) -> Error {
    Error::Call { verb: "write", kind: EVENTS, name, cause: Arc::new(cause) }
}
