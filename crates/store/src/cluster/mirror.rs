//! One kind of objects as the server shows it, kept by a paged list and a watch with bookmarks. It refuses to answer
//! before the first list is complete, and from the moment when the watch fails until the next list is complete.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use backon::{BackoffBuilder as _, ExponentialBuilder};
use futures::{StreamExt as _, pin_mut};
use kube::{
    api::{Api, DynamicObject},
    runtime::watcher,
};
use spanwire_api::{Kind, Object};
use tokio::{sync::watch, task::JoinHandle, time::sleep};

use super::Error;

/// Objects of one page of the first list.
const PAGE: u32 = 500;
/// Seconds after which the server ends a watch and a new one goes on where it ended; a connection that died without a
/// word is noticed soon after.
const WATCH: u32 = 45;
/// From a failure to the next list.
const FIRST_PAUSE: Duration = Duration::from_millis(200);
const LONGEST_PAUSE: Duration = Duration::from_secs(30);

/// One object, parsed once.
#[derive(Debug)]
pub(super) enum Held<S: Kind> {
    /// It is understood.
    Good(Arc<Object<S>>),
    /// It is there and can't be understood.
    Bad {
        /// What was expected.
        cause: Arc<str>,
        /// Its resource version.
        version: String,
    },
}

impl<S: Kind> Clone for Held<S> {
    fn clone(&self) -> Self {
        match self {
            Held::Good(object) => Held::Good(Arc::clone(object)),
            Held::Bad { cause, version } => Held::Bad { cause: Arc::clone(cause), version: version.clone() },
        }
    }
}

impl<S: Kind> Held<S> {
    pub(super) fn parse(mut object: DynamicObject) -> (String, Self) {
        object.metadata.managed_fields = None;
        let name = object.metadata.name.clone().unwrap_or_default();
        let version = object.metadata.resource_version.clone().unwrap_or_default();
        let parsed = serde_json::to_value(object).and_then(serde_json::from_value::<Object<S>>);
        let held = match parsed {
            Ok(object) => Held::Good(Arc::new(object)),
            Err(fault) => Held::Bad { cause: fault.to_string().into(), version },
        };
        (name, held)
    }

    fn version(&self) -> &str {
        match self {
            Held::Good(object) => object.metadata.resource_version.as_deref().unwrap_or_default(),
            Held::Bad { cause: _, version } => version,
        }
    }
}

/// All objects of one kind, by name.
pub(super) type Objects<S> = BTreeMap<String, Held<S>>;

struct State<S: Kind> {
    objects: Objects<S>,
    /// What a list that is under way has shown so far.
    listed: Option<Objects<S>>,
    complete: bool,
    fault: Option<Arc<watcher::Error>>,
    /// How often each name was seen to go.
    removals: BTreeMap<String, u64>,
    /// How many lists were completed.
    lists: u64,
}

/// What was known of removals when a call began: an answer that comes after the object's deletion was seen must not bring
/// it back.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Moment {
    removals: u64,
    lists: u64,
}

impl<S: Kind> State<S> {
    fn moment(&self, name: &str) -> Moment {
        Moment { removals: self.removals.get(name).copied().unwrap_or_default(), lists: self.lists }
    }

    fn heard(&self) -> Result<&Self, Error> {
        match &self.fault {
            Some(cause) => Err(Error::Unheard { kind: S::PLURAL, cause: Arc::clone(cause) }),
            None => self.listed_once(),
        }
    }

    fn listed_once(&self) -> Result<&Self, Error> {
        match &self.fault {
            _ if self.complete => Ok(self),
            Some(cause) => Err(Error::Unheard { kind: S::PLURAL, cause: Arc::clone(cause) }),
            None => Err(Error::NotRead { kind: S::PLURAL }),
        }
    }
}

struct Shared<S: Kind> {
    state: Mutex<State<S>>,
    settled: watch::Sender<()>,
    news: watch::Sender<()>,
}

/// See the module. Dropping it ends the watch.
pub(super) struct Mirror<S: Kind> {
    shared: Arc<Shared<S>>,
    task: JoinHandle<()>,
}

impl<S: Kind> Drop for Mirror<S> {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl<S: Kind + Send + Sync + 'static> Mirror<S>
where
    S::Status: Send + Sync,
{
    /// Follows all objects that `api` shows, or the one called `name`; `news` hears of every change.
    pub(super) fn start(api: Api<DynamicObject>, name: Option<&str>, news: watch::Sender<()>) -> Self {
        let state = State {
            objects: BTreeMap::new(),
            listed: None,
            complete: false,
            fault: None,
            removals: BTreeMap::new(),
            lists: 0,
        };
        let shared = Arc::new(Shared { state: Mutex::new(state), settled: watch::Sender::new(()), news });
        let mut config = watcher::Config::default().page_size(PAGE).timeout(WATCH);
        if let Some(name) = name {
            config = config.fields(&format!("metadata.name={name}"));
        }
        let task = tokio::spawn(follow(Arc::clone(&shared), api, config));
        Self { shared, task }
    }

    /// Waits until the first list is complete or has failed.
    pub(super) async fn first(&self) {
        let mut settled = self.shared.settled.subscribe();
        loop {
            let known = {
                let state = self.shared.lock();
                state.complete || state.fault.is_some()
            };
            if known || settled.changed().await.is_err() {
                return;
            }
        }
    }

    /// All objects as they are.
    ///
    /// # Errors
    /// The first list is not complete, or the server can't be heard: nothing is known.
    pub(super) fn objects(&self) -> Result<Objects<S>, Error> {
        self.shared.lock().heard().map(|state| state.objects.clone())
    }

    /// One object as it is.
    ///
    /// # Errors
    /// As [`Mirror::objects`].
    pub(super) fn object(&self, name: &str) -> Result<Option<Held<S>>, Error> {
        self.shared.lock().heard().map(|state| state.objects.get(name).cloned())
    }

    /// All objects as they were heard last, also while the server can't be heard: for what nobody else writes.
    ///
    /// # Errors
    /// There never was a complete list.
    pub(super) fn own_objects(&self) -> Result<Objects<S>, Error> {
        self.shared.lock().listed_once().map(|state| state.objects.clone())
    }

    /// One object as it was heard last.
    ///
    /// # Errors
    /// As [`Mirror::own_objects`].
    pub(super) fn own_object(&self, name: &str) -> Result<Option<Held<S>>, Error> {
        self.shared.lock().listed_once().map(|state| state.objects.get(name).cloned())
    }

    /// To be asked before a call whose answer is to be absorbed.
    pub(super) fn moment(&self, name: &str) -> Moment {
        self.shared.lock().moment(name)
    }

    /// Takes over what a call of our own answered that began at `since`, so that the next read knows of it.
    pub(super) fn absorb(&self, object: DynamicObject, since: Moment) {
        self.shared.put(object, Freshness::Answer(since));
    }

    /// Takes over what a consistent read showed, also where it is older: the server was restored from a backup.
    pub(super) fn believe(&self, object: DynamicObject) {
        self.shared.put(object, Freshness::Any);
    }

    /// Forgets an object that a call of our own removed, if it is still that one.
    pub(super) fn forget(&self, name: &str, uid: Option<&str>) {
        let mut state = self.shared.lock();
        let is_it = |held: &Held<S>| match held {
            Held::Good(object) => object.metadata.uid.as_deref() == uid,
            Held::Bad { .. } => true,
        };
        if state.objects.get(name).is_some_and(is_it) {
            state.objects.remove(name);
            self.shared.news.send_replace(());
        }
    }
}

/// Which of two versions of an object counts.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Freshness {
    /// The newer one.
    Newer,
    /// The newer one, unless the object went meanwhile.
    Answer(Moment),
    /// The one that came last.
    Any,
}

impl<S: Kind> Shared<S> {
    fn lock(&self) -> MutexGuard<'_, State<S>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn put(&self, object: DynamicObject, freshness: Freshness) {
        let (name, held) = Held::parse(object);
        let mut state = self.lock();
        let known = state.objects.get(&name).map(Held::version);
        let news = match freshness {
            Freshness::Answer(since) if known.is_none() => state.moment(&name) == since,
            Freshness::Newer | Freshness::Answer(_) => {
                known.is_none_or(|known| is_newer(held.version(), known))
            }
            Freshness::Any => known != Some(held.version()),
        };
        if news {
            state.objects.insert(name, held);
            drop(state);
            self.news.send_replace(());
        }
    }

    fn take(&self, event: watcher::Event<DynamicObject>) {
        match event {
            watcher::Event::Apply(object) => self.put(object, Freshness::Newer),
            watcher::Event::Delete(object) => {
                let name = object.metadata.name.unwrap_or_default();
                let mut state = self.lock();
                let known = state.objects.remove(&name).is_some();
                *state.removals.entry(name).or_default() += 1;
                drop(state);
                if known {
                    self.news.send_replace(());
                }
            }
            watcher::Event::Init => self.lock().listed = Some(BTreeMap::new()),
            watcher::Event::InitApply(object) => {
                let (name, held) = Held::parse(object);
                self.lock().listed.get_or_insert_default().insert(name, held);
            }
            watcher::Event::InitDone => {
                let mut state = self.lock();
                state.objects = state.listed.take().unwrap_or_default();
                state.complete = true;
                state.lists += 1;
                state.fault = None;
                drop(state);
                self.settled.send_replace(());
                self.news.send_replace(());
            }
        }
    }

    fn fail(&self, fault: watcher::Error) {
        tracing::debug!(kind = S::PLURAL, %fault, "the watch failed");
        let known = self.lock().fault.replace(Arc::new(fault)).is_some();
        self.settled.send_replace(());
        if !known {
            self.news.send_replace(());
        }
    }
}

/// Versions of one resource can be compared as numbers (KEP 5504); what is no number counts as newer.
fn is_newer(version: &str, known: &str) -> bool {
    match (version.parse::<u128>(), known.parse::<u128>()) {
        (Ok(version), Ok(known)) => version > known,
        _ => version != known,
    }
}

/// A watch that failed begins anew with a list: only a complete list says that everything is known again.
async fn follow<S: Kind>(shared: Arc<Shared<S>>, api: Api<DynamicObject>, config: watcher::Config) {
    let pauses = ExponentialBuilder::default()
        .with_min_delay(FIRST_PAUSE)
        .with_max_delay(LONGEST_PAUSE)
        .with_jitter()
        .without_max_times();
    let mut pause = pauses.build();
    loop {
        let events = watcher(api.clone(), config.clone());
        pin_mut!(events);
        while let Some(heard) = events.next().await {
            match heard {
                Ok(event) => {
                    if matches!(event, watcher::Event::InitDone) {
                        pause = pauses.build();
                    }
                    shared.take(event);
                }
                Err(fault) => {
                    shared.fail(fault);
                    break;
                }
            }
        }
        sleep(pause.next().unwrap_or(LONGEST_PAUSE)).await;
    }
}

#[cfg(test)]
mod tests;
