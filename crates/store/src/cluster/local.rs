//! A worker's own records in its own cluster. Nobody else writes them, so what was heard last counts while the server
//! is away. It refuses to write what is recorded already.

use std::sync::Arc;

use spanwire_api::{AppliedIntentSpec, Kind, Metadata, Object, TunnelLinkSpec};
use spanwire_engine::{
    LinkId, NetworkName,
    port::{LocalStore, Written},
    worker::{AppliedIntent, RecordStep, Recorded, RecordedLink},
};
use tokio::sync::watch;

use super::{
    Connection, Error, News,
    apply::{Kept, Manager},
    mirror::Held,
    view,
};
use crate::convert::{FieldFault, applied_intent, link};

/// A worker's handle on the namespace of its records. Clones share what was read.
#[derive(Clone)]
pub struct Local(Arc<Inner>);

struct Inner {
    intents: Kept<AppliedIntentSpec>,
    links: Kept<TunnelLinkSpec>,
    news: watch::Sender<()>,
}

impl Local {
    /// Begins to list and watch. Call it within a Tokio runtime.
    pub fn new(connection: &Connection) -> Self {
        let news = watch::Sender::new(());
        Self(Arc::new(Inner {
            intents: Kept::follow(connection, None, Manager::Worker, &news),
            links: Kept::follow(connection, None, Manager::Worker, &news),
            news,
        }))
    }

    /// Wakes when something was changed.
    pub fn watch(&self) -> News {
        News::of(&self.0.news)
    }
}

impl Inner {
    async fn write_intent(&self, applied: &AppliedIntent) -> Result<Written, Error> {
        let name = applied.intent.network.as_str();
        state(&self.intents, name, applied_intent::to_api(applied)).await.map(|(written, _)| written)
    }

    async fn write_link(&self, recorded: &RecordedLink) -> Result<Written, Error> {
        let name = recorded.id.to_string();
        let (spec, known) = state(&self.links, &name, link::spec_to_api(recorded)).await?;
        let stated = link::status_to_api(&recorded.status, known.metadata.generation.unwrap_or_default());
        if known.status.as_ref() == Some(&stated) {
            return Ok(spec);
        }
        self.links.apply_status_of(&known, stated).await
    }
}

/// States a spec; the object as it stands then. A record that can't be understood is stated anew: its content is the
/// worker's own, and it knows it better.
async fn state<S: Kind + Send + Sync + 'static>(
    kept: &Kept<S>,
    name: &str,
    spec: S,
) -> Result<(Written, Arc<Object<S>>), Error>
where
    S::Status: Send + Sync,
{
    if let Some(Held::Good(known)) = kept.mirror.own_object(name)?
        && known.spec.as_ref() == Some(&spec)
    {
        return Ok((Written::Same, known));
    }
    let mut object = Object::new(Metadata::named(name));
    object.spec = Some(spec);
    kept.apply_spec(&object, true).await?;
    let missing = || Error::NotFound { kind: S::PLURAL, name: name.to_owned() };
    match kept.mirror.own_object(name)? {
        Some(Held::Good(known)) => Ok((Written::Changed, known)),
        Some(Held::Bad { .. }) | None => Err(missing()),
    }
}

async fn forget<S: Kind + Send + Sync + 'static>(kept: &Kept<S>, name: &str) -> Result<Written, Error>
where
    S::Status: Send + Sync,
{
    match kept.mirror.own_object(name)? {
        None => Ok(Written::Same),
        Some(Held::Good(known)) => kept.delete(name, known.metadata.uid.as_deref().unwrap_or_default()).await,
        Some(Held::Bad { cause, version: _ }) => {
            Err(Error::Unreadable { kind: S::PLURAL, name: name.to_owned(), cause: cause.to_string() })
        }
    }
}

fn intent_of(object: &Object<AppliedIntentSpec>) -> Result<AppliedIntent, FieldFault> {
    applied_intent::to_engine(view::spec(object)?)
}

fn link_of(object: &Object<TunnelLinkSpec>) -> Result<RecordedLink, FieldFault> {
    link::to_engine(view::spec(object)?, &object.status.clone().unwrap_or_default())
}

/// Names are taken from the content, which must agree with the object's.
fn named<T>(entries: Vec<(String, T)>, name_of: impl Fn(&T) -> String) -> (Vec<T>, Vec<String>) {
    let (good, bad): (Vec<_>, Vec<_>) =
        entries.into_iter().partition(|(name, value)| *name == name_of(value));
    (good.into_iter().map(|(_, value)| value).collect(), bad.into_iter().map(|(name, _)| name).collect())
}

impl LocalStore for Local {
    type Error = Error;

    async fn read(&self) -> Result<Recorded, Error> {
        let Inner { intents, links, news: _ } = &*self.0;
        tokio::join!(intents.mirror.first(), links.mirror.first());
        let mut recorded = Recorded::default();
        let unreadable = &mut recorded.unreadable;
        let text = |name: &str| Ok(name.to_owned());
        let found = view::gather(&intents.mirror.own_objects()?, text, intent_of, unreadable);
        let (good, misnamed) = named(found, |applied| applied.intent.network.to_string());
        recorded.intents.extend(good.into_iter().map(|applied| (applied.intent.network.clone(), applied)));
        let speaks = "it speaks of another name than its own";
        unreadable.extend(misnamed.iter().map(|name| view::unknown::<AppliedIntentSpec>(name, speaks)));
        let found = view::gather(&links.mirror.own_objects()?, text, link_of, unreadable);
        let (good, misnamed) = named(found, |link| link.id.to_string());
        recorded.links.extend(good.into_iter().map(|link| (link.id.clone(), link)));
        unreadable.extend(misnamed.iter().map(|name| view::unknown::<TunnelLinkSpec>(name, speaks)));
        unreadable.sort();
        Ok(recorded)
    }

    fn uid(&self, link: &LinkId) -> Option<String> {
        match self.0.links.mirror.own_object(&link.to_string()).ok()?? {
            Held::Good(object) => object.metadata.uid.clone(),
            Held::Bad { .. } => None,
        }
    }

    async fn apply(&self, step: &RecordStep) -> Result<Written, Error> {
        let inner = &*self.0;
        match step {
            RecordStep::Intent(applied) => inner.write_intent(applied).await,
            RecordStep::Link(recorded) => inner.write_link(recorded).await,
            RecordStep::ForgetLink(id) => forget_link(inner, id).await,
            RecordStep::ForgetIntent(network) => forget_intent(inner, network).await,
        }
    }
}

async fn forget_link(inner: &Inner, id: &LinkId) -> Result<Written, Error> {
    forget(&inner.links, &id.to_string()).await
}

async fn forget_intent(inner: &Inner, network: &NetworkName) -> Result<Written, Error> {
    forget(&inner.intents, network.as_str()).await
}
