//! A namespace of a real API server as a place. What one handle wrote another one sees a moment later, so each handle
//! here is asked only once it shows what a new one reads. It refuses to let that wait last for ever.

use std::{
    collections::{BTreeMap, BTreeSet},
    net::IpAddr,
    sync::{
        Arc, Mutex,
        atomic::{AtomicU32, Ordering},
    },
};

use kube::{
    Config,
    api::{Api, ApiResource, DeleteParams, DynamicObject},
    config::{KubeConfigOptions, Kubeconfig},
};
use spanwire_engine::{
    GatewayFacts, GatewayName, Intent, Meta, NetworkName, NetworkStatus, WorkerStatus,
    port::{Changes, ControlView, ControllerStore, Fault, LocalStore, WorkerStore, WorkerView, Written},
    worker::{RecordStep, Recorded},
};
use spanwire_store::cluster::{Connection, Controller, Error, Local, News, Worker};
use spanwire_testkit::control_plane::{ADMIN, ControlPlane};

use super::{Place, eventually, values::name};

pub(crate) struct ClusterPlace {
    plane: &'static ControlPlane,
    connection: Connection,
}

static PLACES: AtomicU32 = AtomicU32::new(0);

impl ClusterPlace {
    /// A namespace of its own; `None`: this machine has no API server.
    pub(crate) async fn new() -> Option<Self> {
        let plane = ControlPlane::shared()?;
        let namespace = format!("place-{}", PLACES.fetch_add(1, Ordering::Relaxed));
        plane.namespace(&namespace).await.unwrap();
        let kubeconfig = Kubeconfig::from_yaml(&plane.kubeconfig(ADMIN).unwrap()).unwrap();
        let options = KubeConfigOptions::default();
        let mut config = Config::from_custom_kubeconfig(kubeconfig, &options).await.unwrap();
        config.default_namespace = namespace;
        Some(Self { plane, connection: Connection::with(config).unwrap() })
    }
}

impl Place for ClusterPlace {
    type Controller = Settled<Controller>;
    type Worker = Settled<Worker>;
    type Local = Settled<Local>;
    type Watch = Passes;

    fn controller(&self) -> Settled<Controller> {
        Settled::new(&self.connection, Controller::new(&self.connection))
    }

    fn worker(&self) -> Settled<Worker> {
        Settled::new(&self.connection, Worker::new(&self.connection))
    }

    fn local(&self) -> Settled<Local> {
        Settled::new(&self.connection, Local::new(&self.connection))
    }

    fn watch(&self, worker: &Settled<Worker>) -> Passes {
        Passes { news: worker.store.watch(), worker: worker.clone() }
    }

    async fn apply(&self, yaml: &str) {
        self.plane.apply(self.connection.namespace(), yaml).await.unwrap();
    }

    async fn delete(&self, plural: &str, name: &str) {
        let resource = ApiResource {
            group: "spanwire.dev".to_owned(),
            version: "v1alpha1".to_owned(),
            api_version: "spanwire.dev/v1alpha1".to_owned(),
            kind: String::new(),
            plural: plural.to_owned(),
        };
        let (client, namespace) = (self.connection.client().clone(), self.connection.namespace());
        let api: Api<DynamicObject> = Api::namespaced_with(client, namespace, &resource);
        api.delete(name, &DeleteParams::default()).await.unwrap();
    }

    fn is_conflict(error: &dyn Fault) -> bool {
        let error: &(dyn std::error::Error + 'static) = error;
        error.downcast_ref::<Error>().is_some_and(Error::is_conflict)
    }
}

/// A worker that reads after each wake, as one that runs does: an intent is watched from the first read that names it.
pub(crate) struct Passes {
    news: News,
    worker: Settled<Worker>,
}

impl Changes for Passes {
    async fn changed(&mut self) {
        self.worker.read(&name("spoke-1")).await.unwrap();
        self.news.changed().await;
    }
}

/// A handle that has heard of everything before it answers.
#[derive(Clone)]
pub(crate) struct Settled<S> {
    store: S,
    connection: Connection,
    /// What a worker's records would name.
    known: Arc<Mutex<BTreeSet<NetworkName>>>,
}

impl<S> Settled<S> {
    fn new(connection: &Connection, store: S) -> Self {
        Self { store, connection: connection.clone(), known: Arc::default() }
    }
}

impl ControllerStore for Settled<Controller> {
    type Error = Error;

    async fn read(&self) -> Result<ControlView, Error> {
        eventually("the controller has heard of everything", async || {
            let fresh = Controller::new(&self.connection).read().await.ok()?;
            self.store.read().await.ok().filter(|known| *known == fresh)
        })
        .await;
        self.store.read().await
    }

    async fn write_network_status(
        &self,
        network: &NetworkName,
        status: &NetworkStatus,
        expected: &Meta,
    ) -> Result<Written, Error> {
        self.read().await?;
        self.store.write_network_status(network, status, expected).await
    }

    async fn write_intent(&self, intent: &Intent, expected: Option<&Meta>) -> Result<Written, Error> {
        self.read().await?;
        self.store.write_intent(intent, expected).await
    }

    async fn delete_intent(
        &self,
        network: &NetworkName,
        gateway: &GatewayName,
        expected: &Meta,
    ) -> Result<Written, Error> {
        self.read().await?;
        self.store.delete_intent(network, gateway, expected).await
    }

    async fn write_gateway_networks(
        &self,
        gateway: &GatewayName,
        networks: &BTreeMap<NetworkName, Option<IpAddr>>,
    ) -> Result<Written, Error> {
        self.read().await?;
        self.store.write_gateway_networks(gateway, networks).await
    }
}

impl WorkerStore for Settled<Worker> {
    type Error = Error;

    async fn read(&self, gateway: &GatewayName) -> Result<WorkerView, Error> {
        let all = Controller::new(&self.connection).read().await?;
        let own = all.intents.keys().filter(|(_, of)| of == gateway).map(|(network, _)| network.clone());
        let known = {
            let mut known = self.known.lock().unwrap();
            known.extend(own);
            known.clone()
        };
        self.store.follow(known.clone());
        eventually("the worker has heard of everything", async || {
            let fresh = Worker::new(&self.connection);
            fresh.follow(known.clone());
            let fresh = fresh.read(gateway).await.ok()?;
            self.store.read(gateway).await.ok().filter(|known| *known == fresh)
        })
        .await;
        self.store.read(gateway).await
    }

    async fn write_gateway_facts(
        &self,
        gateway: &GatewayName,
        facts: &GatewayFacts,
    ) -> Result<Written, Error> {
        self.read(gateway).await?;
        self.store.write_gateway_facts(gateway, facts).await
    }

    async fn write_intent_status(
        &self,
        gateway: &GatewayName,
        network: &NetworkName,
        status: &WorkerStatus,
        expected: &Meta,
    ) -> Result<Written, Error> {
        self.read(gateway).await?;
        self.store.write_intent_status(gateway, network, status, expected).await
    }
}

impl LocalStore for Settled<Local> {
    type Error = Error;

    async fn read(&self) -> Result<Recorded, Error> {
        eventually("the records are all known", async || {
            let fresh = Local::new(&self.connection).read().await.ok()?;
            self.store.read().await.ok().filter(|known| *known == fresh)
        })
        .await;
        self.store.read().await
    }

    async fn apply(&self, step: &RecordStep) -> Result<Written, Error> {
        self.read().await?;
        self.store.apply(step).await
    }
}
