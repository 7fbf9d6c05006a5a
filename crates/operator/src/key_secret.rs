//! The Secret of the private key and its generation, in the worker's own cluster. It refuses to overwrite: a Secret that
//! can't be understood is for a person to look at.

use std::{collections::BTreeMap, time::Duration};

use k8s_openapi::{ByteString, api::core::v1::Secret};
use kube::{
    Api,
    api::{Patch, PatchParams, PostParams},
};
use spanwire_api::rbac;
use spanwire_dataplane::key::SecretKey;
use spanwire_engine::{Class, GatewayName, PublicKey, port};
use spanwire_store::cluster::{Connection, Verb, call, words};
use tokio::time::timeout;
use zeroize::Zeroizing;

use crate::key_file::OwnKey;

const PRIVATE_KEY: &str = "privateKey";
const PUBLIC_KEY: &str = "publicKey";
const GENERATION: &str = "keyGeneration";
/// How long one call may take.
const LIMIT: Duration = Duration::from_secs(10);

/// Why the key could not be had.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A call failed.
    #[error("cannot {verb} the Secret {namespace}/{name}: {}", words(&**cause))]
    Call {
        /// What was to be done.
        verb: &'static str,
        /// Its namespace.
        namespace: String,
        /// Its name.
        name: String,
        /// Why; the server's own words are in the message.
        cause: Box<kube::Error>,
    },
    /// The server did not answer.
    #[error("cannot {verb} the Secret {namespace}/{name}: no answer within {} s", LIMIT.as_secs())]
    Late {
        /// What was to be done.
        verb: &'static str,
        /// Its namespace.
        namespace: String,
        /// Its name.
        name: String,
    },
    /// The Secret holds no key.
    #[error(
        "the Secret {namespace}/{name} holds no WireGuard private key in `privateKey` (44 characters of base64): it is \
         left as it is; restore it from a backup, or delete it to get a new key"
    )]
    Malformed {
        /// Its namespace.
        namespace: String,
        /// Its name.
        name: String,
    },
}

impl port::Fault for Error {
    fn class(&self) -> Class {
        match self {
            Error::Malformed { .. } => Class::NeedsHuman,
            Error::Call { cause, .. } => match &**cause {
                kube::Error::Api(status) if matches!(status.code, 400 | 401 | 403 | 422) => Class::NeedsHuman,
                _ => Class::Retry,
            },
            Error::Late { .. } => Class::Retry,
        }
    }
}

/// Where the key is.
#[derive(Clone)]
pub struct KeySecret {
    api: Api<Secret>,
    namespace: String,
    name: String,
}

impl std::fmt::Debug for KeySecret {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "KeySecret({}/{})", self.namespace, self.name)
    }
}

impl KeySecret {
    /// The key in the Secret of this gateway.
    pub fn new(connection: &Connection, gateway: &GatewayName) -> Self {
        let namespace = connection.namespace().to_owned();
        let api = Api::namespaced(connection.client().clone(), &namespace);
        Self { api, namespace, name: rbac::worker_secret_name(gateway.as_str()) }
    }

    /// The key that is there; `None`: there is no Secret.
    ///
    /// # Errors
    /// The Secret can't be read or understood.
    pub async fn load(&self) -> Result<Option<OwnKey>, Error> {
        let Some(secret) = self.call(Verb::Get, self.api.get_opt(&self.name)).await? else { return Ok(None) };
        let data = secret.data.unwrap_or_default();
        let malformed = || Error::Malformed { namespace: self.namespace.clone(), name: self.name.clone() };
        let bytes = Zeroizing::new(data.get(PRIVATE_KEY).ok_or_else(malformed)?.0.clone());
        let text = std::str::from_utf8(&bytes).map_err(|_| malformed())?;
        let secret = SecretKey::from_base64(text).map_err(|_| malformed())?;
        let public = secret.public();
        let text = |name: &str| data.get(name).and_then(|bytes| std::str::from_utf8(&bytes.0).ok());
        // The generation counts only for the key that stands beside it.
        let counted = text(PUBLIC_KEY) == Some(public.to_string().as_str());
        let generation = text(GENERATION).filter(|_| counted).and_then(|text| text.parse().ok());
        Ok(Some(OwnKey { secret, public, generation }))
    }

    /// Stores `secret` as the key of `generation` where there is none.
    ///
    /// # Errors
    /// It could not be stored; a Secret that came into being meanwhile is left as it is.
    pub async fn store(&self, secret: SecretKey, generation: i64) -> Result<OwnKey, Error> {
        let public = secret.public();
        let mut kept = Secret { type_: Some("Opaque".to_owned()), ..Secret::default() };
        kept.metadata.name = Some(self.name.clone());
        let label = ("app.kubernetes.io/managed-by".to_owned(), "spanwire-worker".to_owned());
        kept.metadata.labels = Some(BTreeMap::from([label]));
        let entry = |name: &str, text: &str| (name.to_owned(), ByteString(text.as_bytes().to_vec()));
        kept.data = Some(BTreeMap::from([
            entry(PRIVATE_KEY, &secret.to_base64()),
            entry(PUBLIC_KEY, &public.to_string()),
            entry(GENERATION, &generation.to_string()),
        ]));
        self.call(Verb::Create, self.api.create(&PostParams::default(), &kept)).await?;
        Ok(OwnKey { secret, public, generation: Some(generation) })
    }

    /// Notes the generation of a key.
    ///
    /// # Errors
    /// It could not be stored.
    pub async fn remember(&self, public: &PublicKey, generation: i64) -> Result<(), Error> {
        let patch = serde_json::json!({
            "stringData": { PUBLIC_KEY: public.to_string(), GENERATION: generation.to_string() },
        });
        let params = PatchParams::default();
        self.call(Verb::Patch, self.api.patch(&self.name, &params, &Patch::Merge(patch))).await.map(|_| ())
    }

    async fn call<T>(
        &self,
        verb: Verb,
        sent: impl Future<Output = Result<T, kube::Error>>,
    ) -> Result<T, Error> {
        let (namespace, name) = (self.namespace.clone(), self.name.clone());
        let answer = timeout(LIMIT, call(verb, "secrets", &name, sent)).await;
        let verb = verb.as_str();
        match answer {
            Ok(Ok(answer)) => Ok(answer),
            Ok(Err(cause)) => Err(Error::Call { verb, namespace, name, cause: Box::new(cause) }),
            Err(_) => Err(Error::Late { verb, namespace, name }),
        }
    }
}
