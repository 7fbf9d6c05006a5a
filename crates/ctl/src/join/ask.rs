//! What a join asks the control cluster, with the person's own rights. It refuses to change an object there.

use std::time::Duration;

use k8s_openapi::api::{
    authentication::v1::{TokenRequest, TokenRequestSpec},
    core::v1::{Namespace, ServiceAccount},
};
use kube::{
    Api,
    api::{DynamicObject, PostParams},
};
use spanwire_api::{GatewaySpec, rbac, resource};
use spanwire_engine::GatewayName;
use spanwire_store::cluster::{Connection, words};

use super::Error;

/// A token, and how long it is good.
pub(super) struct Token {
    /// The token itself.
    pub(super) secret: String,
    /// When it ends, as RFC 3339.
    pub(super) expires: String,
    /// How long that is from now.
    pub(super) lasts: Duration,
}

/// Looks whether the namespace is there, as far as this person may see it.
pub(super) async fn namespace(connection: &Connection) -> Result<(), Error> {
    let api: Api<Namespace> = Api::all(connection.client().clone());
    match api.get_metadata_opt(connection.namespace()).await {
        Ok(Some(_)) => Ok(()),
        Ok(None) => Err(Error::NoNamespace(connection.namespace().to_owned())),
        // Who works in one namespace alone need not be allowed to look at namespaces.
        Err(fault) if code(&fault) == Some(403) => Ok(()),
        Err(fault) => Err(failed(format!("look at the namespace {}", connection.namespace()), &fault)),
    }
}

/// Looks whether the name is free, or is that of a Gateway which says the same.
pub(super) async fn no_other_gateway(
    connection: &Connection,
    gateway: &GatewayName,
    wanted: &GatewaySpec,
) -> Result<(), Error> {
    let kind = resource::<GatewaySpec>();
    let api: Api<DynamicObject> =
        Api::namespaced_with(connection.client().clone(), connection.namespace(), &kind);
    let found = match api.get_opt(gateway.as_str()).await {
        Ok(found) => found,
        Err(fault) => {
            return Err(failed(format!("look whether there is a Gateway {gateway} already"), &fault));
        }
    };
    let Some(found) = found else { return Ok(()) };
    let there = &found.data["spec"];
    let same = serde_json::from_value::<GatewaySpec>(there.clone()).is_ok_and(|there| there == *wanted);
    if same {
        return Ok(());
    }
    Err(Error::GatewayExists {
        gateway: gateway.to_string(),
        namespace: connection.namespace().to_owned(),
        there: there.to_string(),
    })
}

/// Makes a token for the worker's account.
pub(super) async fn token(
    connection: &Connection,
    gateway: &GatewayName,
    lasts: Duration,
) -> Result<Token, Error> {
    let (account, namespace) = (rbac::worker_role_name(gateway.as_str()), connection.namespace().to_owned());
    let api: Api<ServiceAccount> = Api::namespaced(connection.client().clone(), &namespace);
    let seconds = i64::try_from(lasts.as_secs()).unwrap_or(i64::MAX);
    let spec = TokenRequestSpec { expiration_seconds: Some(seconds), ..TokenRequestSpec::default() };
    let request = TokenRequest { spec, ..TokenRequest::default() };
    let answer = api.create_token_request(&account, &PostParams::default(), &request).await;
    let answer = answer.map_err(|fault| match code(&fault) {
        Some(404) => Error::NoAccount { account, namespace, gateway: gateway.to_string() },
        Some(403) => Error::TokenRefused { account, namespace, cause: words(&fault) },
        _ => failed(format!("make a token for {namespace}/{account}"), &fault),
    })?;
    let status = answer.status.ok_or(Error::NoToken)?;
    let expires = status.expiration_timestamp.0;
    let lasts = expires.duration_since(k8s_openapi::jiff::Timestamp::now());
    Ok(Token {
        secret: status.token,
        expires: expires.to_string(),
        lasts: Duration::try_from(lasts).unwrap_or_default(),
    })
}

fn code(fault: &kube::Error) -> Option<u16> {
    match fault {
        kube::Error::Api(status) => Some(status.code),
        _ => None,
    }
}

fn failed(what: String, fault: &kube::Error) -> Error {
    Error::Call { what, cause: words(fault) }
}
