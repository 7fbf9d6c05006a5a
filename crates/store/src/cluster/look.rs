//! One look at the control store, for people. It refuses to follow it, and to show half of it.

use std::sync::Arc;

use kube::api::ListParams;
use spanwire_api::Kind;
use spanwire_engine::port::ControlView;

use super::{
    Connection, Error,
    mirror::{Held, Objects},
    view,
};

/// Objects of one page.
const PAGE: u32 = 500;

/// Reads everything once, as the account of the connection may.
///
/// # Errors
/// A list failed, or its last page did not come.
pub async fn look(connection: &Connection) -> Result<ControlView, Error> {
    let (gateways, networks, intents) =
        tokio::try_join!(list(connection), list(connection), list(connection))?;
    Ok(view::control_view(&gateways, &networks, &intents))
}

async fn list<S: Kind>(connection: &Connection) -> Result<Objects<S>, Error> {
    let api = connection.objects::<S>();
    let mut objects = Objects::new();
    let mut page = ListParams::default().limit(PAGE);
    loop {
        let listed =
            api.list(&page).await.map_err(|cause| Error::List { kind: S::PLURAL, cause: Arc::new(cause) })?;
        objects.extend(listed.items.into_iter().map(Held::parse));
        match listed.metadata.continue_.filter(|token| !token.is_empty()) {
            Some(token) => page = page.continue_token(&token),
            None => return Ok(objects),
        }
    }
}
