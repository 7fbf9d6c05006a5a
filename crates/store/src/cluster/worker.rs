//! A worker's side of an API server: all gateways, and its own intents by name, which is what its account may read. It
//! refuses to take an intent that it may not read for one that is gone.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{Arc, Mutex, PoisonError},
};

use spanwire_api::{GatewaySpec, Kind, Object, WorkerSliceConfigSpec};
use spanwire_engine::{
    Gateway, GatewayFacts, GatewayName, Meta, NetworkName, Stored, WorkerStatus,
    port::{WorkerStore, WorkerView, Written},
};
use tokio::sync::watch;

use super::{
    Connection, Error, News,
    apply::{Kept, Manager, check_uid, conflict},
    mirror::Held,
    view,
};
use crate::{
    Conflict,
    convert::{gateway, worker_status},
};

type KeptIntent = Arc<Kept<WorkerSliceConfigSpec>>;

/// A worker's handle on a namespace. Clones share what was read.
#[derive(Clone)]
pub struct Worker(Arc<Inner>);

struct Inner {
    connection: Connection,
    gateways: Kept<GatewaySpec>,
    /// One watch an intent, by object name.
    intents: Mutex<BTreeMap<String, KeptIntent>>,
    /// Networks that the worker knows from its own records.
    recorded: Mutex<BTreeSet<NetworkName>>,
    news: watch::Sender<()>,
}

impl Worker {
    /// Begins to list and watch. Call it within a Tokio runtime.
    pub fn new(connection: &Connection) -> Self {
        let news = watch::Sender::new(());
        Self(Arc::new(Inner {
            connection: connection.clone(),
            gateways: Kept::follow(connection, None, Manager::Worker, &news),
            intents: Mutex::default(),
            recorded: Mutex::default(),
            news,
        }))
    }

    /// Wakes when something was changed.
    pub fn watch(&self) -> News {
        News::of(&self.0.news)
    }
}

impl Inner {
    /// The watch of one intent, begun if it is new.
    fn intent(&self, name: &str) -> KeptIntent {
        let mut intents = self.intents.lock().unwrap_or_else(PoisonError::into_inner);
        let kept = intents.entry(name.to_owned()).or_insert_with(|| {
            Arc::new(Kept::follow(&self.connection, Some(name), Manager::Worker, &self.news))
        });
        Arc::clone(kept)
    }

    /// Ends the watches of networks that this gateway has left.
    fn keep(&self, me: &GatewayName, networks: &BTreeSet<NetworkName>) {
        let suffix = format!(".{me}");
        let is_in = |name: &String, _: &mut KeptIntent| {
            let network = name.strip_suffix(&suffix).and_then(|network| network.parse().ok());
            network.is_some_and(|network| networks.contains(&network))
        };
        self.intents.lock().unwrap_or_else(PoisonError::into_inner).retain(is_in);
    }

    /// Networks of which this gateway may have an intent: those that its Gateway lists, and those on record.
    fn networks(&self, own: Option<&Gateway>) -> BTreeSet<NetworkName> {
        let mut networks = self.recorded.lock().unwrap_or_else(PoisonError::into_inner).clone();
        networks.extend(own.into_iter().flat_map(|own| own.networks.keys().cloned()));
        networks
    }

    async fn add_intent(&self, me: &GatewayName, network: NetworkName, view: &mut WorkerView) {
        let name = format!("{network}.{me}");
        let kept = self.intent(&name);
        kept.mirror.first().await;
        let held = kept.mirror.object(&name);
        view.traces.extend(held.as_ref().ok().and_then(|held| held.as_ref().and_then(view::trace)));
        let read = match held {
            Ok(None) => return,
            Ok(Some(Held::Good(object))) => stored(&object).map_err(|fault| fault.to_string()),
            Ok(Some(Held::Bad { cause, version: _ })) => Err(cause.to_string()),
            Err(fault) => Err(fault.to_string()),
        };
        match read {
            Ok(intent) => drop(view.intents.insert(network, intent)),
            Err(cause) => view.unreadable.push(view::unknown::<WorkerSliceConfigSpec>(&name, cause)),
        }
    }
}

/// The worker's own status is not needed to know an intent: a broken one is written afresh.
fn stored(
    object: &Object<WorkerSliceConfigSpec>,
) -> Result<(Stored<spanwire_engine::Intent>, WorkerStatus), crate::convert::FieldFault> {
    let value = view::intent_of(object)?;
    let status = view::said(object).unwrap_or_default();
    Ok((Stored { meta: view::meta(&object.metadata), value }, status))
}

impl WorkerStore for Worker {
    type Error = Error;

    fn follow(&self, networks: BTreeSet<NetworkName>) {
        *self.0.recorded.lock().unwrap_or_else(PoisonError::into_inner) = networks;
    }

    async fn read(&self, gateway: &GatewayName) -> Result<WorkerView, Error> {
        let inner = &*self.0;
        inner.gateways.mirror.first().await;
        let found = inner.gateways.mirror.objects()?;
        let mut view = WorkerView::default();
        let gathered = view::gather(&found, view::label, view::gateway_of, &mut view.unreadable);
        view.gateways.extend(gathered);
        let networks = inner.networks(view.gateways.get(gateway));
        inner.keep(gateway, &networks);
        for network in networks {
            inner.add_intent(gateway, network, &mut view).await;
        }
        view.unreadable.sort();
        Ok(view)
    }

    async fn reread(
        &self,
        gateway: &GatewayName,
        networks: &BTreeSet<NetworkName>,
    ) -> Result<WorkerView, Error> {
        for network in networks {
            let name = format!("{network}.{gateway}");
            self.0.intent(&name).ask(&name).await?;
        }
        self.read(gateway).await
    }

    async fn write_gateway_facts(
        &self,
        gateway: &GatewayName,
        facts: &GatewayFacts,
    ) -> Result<Written, Error> {
        let (kept, name) = (&self.0.gateways, gateway.as_str());
        let missing = || Error::NotFound { kind: GatewaySpec::PLURAL, name: name.to_owned() };
        let known = kept.good(name)?.ok_or_else(missing)?;
        let stated = gateway::facts_to_api(facts);
        let mut standing = known.status.clone().unwrap_or_default();
        standing.networks.clear();
        if standing == stated {
            return Ok(Written::Same);
        }
        kept.apply_status_of(&known, stated).await
    }

    async fn write_intent_status(
        &self,
        gateway: &GatewayName,
        network: &NetworkName,
        status: &WorkerStatus,
        expected: &Meta,
    ) -> Result<Written, Error> {
        let name = format!("{network}.{gateway}");
        let kept = self.0.intent(&name);
        kept.mirror.first().await;
        let missing = || conflict::<WorkerSliceConfigSpec>(&name, Conflict::Missing);
        let known = kept.good(&name)?.ok_or_else(missing)?;
        check_uid(&known, expected)?;
        let stated = worker_status::to_api(status);
        if known.status.as_ref() == Some(&stated) {
            return Ok(Written::Same);
        }
        kept.apply_status_of(&known, stated).await
    }
}
