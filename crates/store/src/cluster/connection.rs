//! How an API server is reached, and in which namespace. It refuses to wait for one that does not take connections.

use std::time::Duration;

use kube::{Api, Client, Config, api::DynamicObject, client::ClientBuilder, config::KubeConfigOptions};
use sha2::{Digest as _, Sha256};
use spanwire_api::{Kind, resource};
use spanwire_engine::port::Changes;
use tokio::sync::watch;

use super::{Error, Requests};

/// How long a connection may take to open.
const CONNECT: Duration = Duration::from_secs(5);
/// How long an answer may be silent: longer than a watch lasts, so that only a dead connection is.
const SILENCE: Duration = Duration::from_secs(55);

/// A namespace of an API server.
#[derive(Clone)]
pub struct Connection {
    client: Client,
    server: String,
    namespace: String,
    requests: Requests,
}

impl std::fmt::Debug for Connection {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Connection").field("namespace", &self.namespace).finish_non_exhaustive()
    }
}

impl Connection {
    /// By a context of the kubeconfig; without one, the kubeconfig's current one or, in a pod, the pod's own account.
    /// `namespace`: another one than the context's. Tokens in files are read again when they change.
    ///
    /// # Errors
    /// [`Error::Config`] if there is no usable configuration. Whether the server answers is seen by the first call.
    pub async fn open(context: Option<&str>, namespace: Option<&str>) -> Result<Self, Error> {
        let config = match context {
            Some(name) => {
                let options =
                    KubeConfigOptions { context: Some(name.to_owned()), ..KubeConfigOptions::default() };
                Config::from_kubeconfig(&options).await.map_err(|fault| Error::config(context, fault))?
            }
            None => Config::infer().await.map_err(|fault| Error::config(context, fault))?,
        };
        Self::of(config, context, namespace)
    }

    /// By the account of the pod in which this runs, also where a kubeconfig names other servers. Its token is read
    /// again when it changes.
    ///
    /// # Errors
    /// [`Error::NotInPod`] where this is no pod, or one without an account.
    pub fn in_cluster(namespace: Option<&str>) -> Result<Self, Error> {
        let config = Config::incluster().map_err(|fault| Error::not_in_pod(&fault))?;
        Self::of(config, None, namespace)
    }

    /// As [`Connection::open`], from a configuration that is there already.
    ///
    /// # Errors
    /// [`Error::Config`] if no client can be made of it.
    pub fn with(config: Config) -> Result<Self, Error> {
        Self::of(config, None, None)
    }

    fn of(mut config: Config, context: Option<&str>, namespace: Option<&str>) -> Result<Self, Error> {
        config.connect_timeout = Some(CONNECT);
        config.read_timeout = Some(SILENCE);
        config.reset_reader_on_write = true;
        let namespace = namespace.unwrap_or(&config.default_namespace).to_owned();
        let server = config.cluster_url.to_string();
        let requests = Requests::default();
        let client = ClientBuilder::try_from(config).map_err(|fault| Error::config(context, fault))?;
        let client = client.with_layer(&requests).build();
        Ok(Self { client, server, namespace, requests })
    }

    /// The client, for objects that are not Spanwire's own.
    pub fn client(&self) -> &Client {
        &self.client
    }

    /// The requests that went to the server over this connection and its clones.
    pub fn requests(&self) -> &Requests {
        &self.requests
    }

    /// A name for a lock among processes of one host that act for this namespace.
    pub fn lock_name(&self) -> String {
        let digest = Sha256::digest(format!("{} {}", self.server, self.namespace));
        let digest: String = digest.iter().take(8).map(|byte| format!("{byte:02x}")).collect();
        format!("spanwire/controller-{digest}")
    }

    /// The namespace.
    pub fn namespace(&self) -> &str {
        &self.namespace
    }

    /// Objects of one kind.
    pub(super) fn objects<S: Kind>(&self) -> Api<DynamicObject> {
        Api::namespaced_with(self.client.clone(), &self.namespace, &resource::<S>())
    }
}

/// Wakes when an object that a store reads has changed, or can be read again.
#[derive(Debug)]
pub struct News(watch::Receiver<()>);

impl News {
    pub(super) fn of(sender: &watch::Sender<()>) -> Self {
        Self(sender.subscribe())
    }
}

impl Changes for News {
    async fn changed(&mut self) {
        if self.0.changed().await.is_err() {
            // The store is gone: nothing will change any more.
            std::future::pending::<()>().await;
        }
    }
}
