//! The key that a worker starts with: the one that it keeps, else the one that its devices still carry if that is
//! published, else a new one. It refuses to make a key before its own
//! Gateway was read, because the new generation counts from the published one.

use spanwire_dataplane::key::SecretKey;
use spanwire_engine::{GatewayName, PublicKey, port::WorkerStore};

use super::STORE_LIMIT;
use crate::{
    driver::{Outcome, Retry, Trigger, retry::LONGEST},
    fault::{Noted, limited},
    key_file::OwnKey,
    keys::{self, Keys},
    stop::Stop,
};

/// Where a key may still be that was not kept.
pub trait LostKeys {
    /// The private key of `public`, if it is still somewhere on this host.
    fn secret_of(&self, public: &PublicKey) -> impl Future<Output = Option<SecretKey>>;
}

/// Why there is no key yet.
#[derive(Debug)]
pub enum NotYet {
    /// The own Gateway does not exist.
    Waiting(String),
    /// The control store could not be read, or the key not stored.
    Failed(Noted),
}

impl From<NotYet> for Outcome {
    fn from(not_yet: NotYet) -> Self {
        match not_yet {
            NotYet::Waiting(reason) => Outcome::waiting(reason),
            NotYet::Failed(fault) => Outcome::failed(fault),
        }
    }
}

/// The key, if there is one or one can be made now.
///
/// # Errors
/// It is there and can't be used: a person has to look at it, or the place of keys does not answer.
pub async fn own_key(
    keys: &Keys,
    me: &GatewayName,
    control: &impl WorkerStore,
    lost: &impl LostKeys,
) -> Result<Result<OwnKey, NotYet>, keys::Error> {
    if let Some(key) = keys.load().await? {
        return Ok(Ok(key));
    }
    Ok(make(keys, me, control, lost).await)
}

async fn make(
    keys: &Keys,
    me: &GatewayName,
    control: &impl WorkerStore,
    lost: &impl LostKeys,
) -> Result<OwnKey, NotYet> {
    let read = limited("cannot read the control store", STORE_LIMIT, control.read(me)).await;
    let view = read.map_err(NotYet::Failed)?;
    let Some(own) = view.gateways.get(me) else {
        let unreadable = view.unreadable.iter().find(|object| object.name == me.as_str());
        let why = unreadable.map_or("there is none, create it", |object| object.cause.as_str());
        return Err(NotYet::Waiting(format!("the Gateway {me} in the control store ({why}), to make a key")));
    };
    let published = own.facts.public_key.as_ref().and_then(|text| text.parse().ok());
    let restored = match published {
        Some(public) => lost.secret_of(&public).await,
        None => None,
    };
    let key = match restored {
        Some(secret) => keys.store(secret, own.facts.key_generation).await,
        None => keys.create(own.facts.key_generation.max(0) + 1).await,
    };
    let key =
        key.map_err(|error| NotYet::Failed(Noted::new("cannot keep the key of this gateway", &error)))?;
    tracing::info!(generation = key.generation, "no key was there: made or restored from a device");
    Ok(key)
}

/// Waits until there is a key; `None`: the end was asked for first.
///
/// # Errors
/// It is there and can't be used.
pub async fn wait_for_key(
    keys: &Keys,
    me: &GatewayName,
    control: &impl WorkerStore,
    lost: &impl LostKeys,
    (trigger, stop): (&Trigger, &Stop),
) -> Result<Option<OwnKey>, keys::Error> {
    let mut retry = Retry::new();
    let mut said = String::new();
    loop {
        trigger.take();
        let not_yet = match own_key(keys, me, control, lost).await? {
            Ok(key) => return Ok(Some(key)),
            Err(not_yet) => not_yet,
        };
        let text = match &not_yet {
            NotYet::Waiting(reason) => reason.clone(),
            NotYet::Failed(fault) => fault.message.clone(),
        };
        if said != text {
            tracing::warn!("waits for {text}");
            said = text;
        }
        let now = tokio::time::Instant::now();
        let again = retry.after(&not_yet.into(), true, now).unwrap_or(now + LONGEST);
        tokio::select! {
            () = stop.requested() => return Ok(None),
            () = trigger.fired() => {}
            () = tokio::time::sleep_until(again) => {}
        }
    }
}
