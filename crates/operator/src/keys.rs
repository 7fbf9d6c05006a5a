//! Where a worker keeps its private key: a file, or a Secret of its own cluster. It refuses to know a third place: the
//! key never leaves its worker's side.

use spanwire_dataplane::key::SecretKey;
use spanwire_engine::{Class, PublicKey, port};

use crate::{
    key_file::{self, KeyFile, OwnKey},
    key_secret::{self, KeySecret},
};

/// A place for one private key and its generation.
#[derive(Debug, Clone)]
pub enum Keys {
    /// A file.
    File(KeyFile),
    /// A Secret.
    Secret(Box<KeySecret>),
}

/// Why the key could not be had.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// Of a file.
    #[error(transparent)]
    File(#[from] key_file::Error),
    /// Of a Secret.
    #[error(transparent)]
    Secret(#[from] key_secret::Error),
    /// The system gave no unpredictable bytes.
    #[error("cannot make a private key")]
    Generate(#[source] spanwire_dataplane::key::Error),
}

impl port::Fault for Error {
    fn class(&self) -> Class {
        match self {
            Error::File(error) => error.class(),
            Error::Secret(error) => error.class(),
            Error::Generate(_) => Class::Retry,
        }
    }
}

impl Keys {
    /// The key that is there; `None`: there is none.
    ///
    /// # Errors
    /// There is one that can't be read or understood.
    pub async fn load(&self) -> Result<Option<OwnKey>, Error> {
        Ok(match self {
            Keys::File(file) => file.load()?,
            Keys::Secret(secret) => secret.load().await?,
        })
    }

    /// Makes a key of `generation` where there is none. It is durable when this returns.
    ///
    /// # Errors
    /// No key could be made or stored; one that came into being meanwhile is left as it is.
    pub async fn create(&self, generation: i64) -> Result<OwnKey, Error> {
        self.store(SecretKey::generate().map_err(Error::Generate)?, generation).await
    }

    /// Stores `secret` as the key of `generation` where there is none. It is durable when this returns.
    ///
    /// # Errors
    /// The key could not be stored; one that came into being meanwhile is left as it is.
    pub async fn store(&self, secret: SecretKey, generation: i64) -> Result<OwnKey, Error> {
        Ok(match self {
            Keys::File(file) => file.store(secret, generation)?,
            Keys::Secret(kept) => kept.store(secret, generation).await?,
        })
    }

    /// Notes the generation of a key. It is durable when this returns.
    ///
    /// # Errors
    /// It could not be stored.
    pub async fn remember(&self, public: &PublicKey, generation: i64) -> Result<(), Error> {
        match self {
            Keys::File(file) => file.remember(public, generation)?,
            Keys::Secret(secret) => secret.remember(public, generation).await?,
        }
        Ok(())
    }
}
