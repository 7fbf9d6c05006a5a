//! Verb 2, validate: whether this worker still acts for its gateway, and what is wanted here. It refuses to follow a
//! control store that speaks for another worker.

use spanwire_engine::{
    GatewayName,
    worker::{self, Desired, Settings, Situation},
};

use super::{
    identity::{Identity, Standing},
    observe::Fetched,
};
use crate::fault::Noted;

/// What was read, and what it means.
#[derive(Debug)]
pub struct Validated {
    /// What was read.
    pub fetched: Fetched,
    /// Whether this worker acts for its gateway.
    pub standing: Standing,
    /// What is wanted here.
    pub desired: Desired,
}

/// Judges what was read.
///
/// # Errors
/// The generation of the key could not be kept: then it must not be published.
pub async fn validate(
    me: &GatewayName,
    identity: &mut Identity,
    settings: &Settings,
    fetched: Fetched,
) -> Result<Validated, Noted> {
    let own = fetched.view.as_ref().ok().and_then(|view| view.gateways.get(me));
    let standing = identity.stand(own).await;
    let standing = standing.map_err(|error| Noted::new("cannot keep the generation of the key", &error))?;
    let view = match standing {
        Standing::Acts { .. } | Standing::Unknown => fetched.view.as_ref().ok(),
        Standing::TakenOver { .. } => None,
    };
    let desired = worker::desire(&Situation {
        me,
        own_key: identity.public,
        view,
        consistent: true,
        recorded: &fetched.recorded,
        host: &fetched.host,
        settings,
    });
    Ok(Validated { fetched, standing, desired })
}
