//! The kinds on a real API server: what it takes, what it refuses and with which words, what it shows. It refuses to
//! test with a schema library: the server is the judge.
#![allow(clippy::panic, clippy::unwrap_used, reason = "a test may fail here")]

mod chart;
mod columns;
mod examples;
mod fields;
mod owners;
mod refusals;
mod roles;

use spanwire_testkit::control_plane::{ADMIN, ControlPlane};

use kube::{
    Client,
    api::{Api, DynamicObject, Patch, PatchParams},
    core::{ApiResource, GroupVersionKind},
};

/// The API of one of our kinds.
fn api(client: &Client, namespace: &str, kind: &str) -> Api<DynamicObject> {
    let kind = GroupVersionKind::gvk(spanwire_api::GROUP, spanwire_api::VERSION, kind);
    Api::namespaced_with(client.clone(), namespace, &ApiResource::from_gvk(&kind))
}

/// A client of the administrator and a namespace of the test's own.
async fn client(control: &ControlPlane, namespace: &str) -> Client {
    control.namespace(namespace).await.unwrap();
    control.client(ADMIN).await.unwrap()
}

/// An object of one of our kinds from the YAML of its spec.
fn object(kind: &str, name: &str, spec: &str) -> DynamicObject {
    let text = format!(
        "apiVersion: spanwire.dev/v1alpha1\nkind: {kind}\nmetadata: {{name: {name}}}\nspec: {spec}\n"
    );
    serde_saphyr::from_str(&text).unwrap_or_else(|error| panic!("{text}: {error}"))
}

/// What the server answers to a server-side apply: the object, or its words.
async fn apply(client: &Client, namespace: &str, object: &DynamicObject) -> Result<DynamicObject, String> {
    let kind = &object.types.as_ref().unwrap().kind;
    let name = object.metadata.name.as_ref().unwrap();
    let parameters = PatchParams::apply("test").force().validation_strict();
    let answer = api(client, namespace, kind).patch(name, &parameters, &Patch::Apply(object)).await;
    answer.map_err(words)
}

/// What the server says.
fn words(error: kube::Error) -> String {
    match error {
        kube::Error::Api(status) => format!("{} {}", status.code, status.message),
        other => panic!("no answer: {other:?}"),
    }
}
