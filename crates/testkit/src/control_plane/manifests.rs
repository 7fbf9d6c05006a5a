//! Puts manifests on a control plane: our CRDs, namespaces, whatever YAML a test has. It refuses other ways than
//! `kubectl apply --server-side` has.

use std::{
    fs,
    path::PathBuf,
    time::{Duration, Instant},
};

use k8s_openapi::{
    api::core::v1::Namespace, apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition,
};
use kube::{
    Api, Client, ResourceExt,
    api::{DynamicObject, Patch, PatchParams},
    core::GroupVersionKind,
    discovery::{Scope, pinned_kind},
};

use super::{ADMIN, ControlPlane, ControlPlaneError};

const MANAGER: &str = "spanwire-testkit";
const LIMIT: Duration = Duration::from_secs(30);
const LOOK_EVERY: Duration = Duration::from_millis(20);

impl ControlPlane {
    /// Applies all objects of a text with one or several YAML documents, as [`ADMIN`], in order. Objects without a
    /// namespace go to `namespace`.
    ///
    /// # Errors
    /// A document is no object, its kind is not served, or the server refused it.
    pub async fn apply(
        &self,
        namespace: &str,
        manifests: &str,
    ) -> Result<Vec<DynamicObject>, ControlPlaneError> {
        let client = self.client(ADMIN).await?;
        let objects: Vec<DynamicObject> = serde_saphyr::from_multiple(manifests)
            .map_err(|error| ControlPlaneError::Manifest { reason: error.to_string() })?;
        let mut applied = Vec::new();
        for object in objects {
            applied.push(apply(&client, namespace, &object).await?);
        }
        Ok(applied)
    }

    /// Applies one object that is a value here.
    ///
    /// # Errors
    /// As [`ControlPlane::apply`].
    pub async fn apply_object(
        &self,
        namespace: &str,
        object: &impl serde::Serialize,
    ) -> Result<DynamicObject, ControlPlaneError> {
        let fault = |error: serde_json::Error| ControlPlaneError::Manifest { reason: error.to_string() };
        let object = serde_json::to_value(object).and_then(serde_json::from_value).map_err(fault)?;
        apply(&self.client(ADMIN).await?, namespace, &object).await
    }

    /// Makes a namespace where there is none of the name. There is nobody who would empty it again: give each test
    /// its own.
    ///
    /// # Errors
    /// The server refused it.
    pub async fn namespace(&self, name: &str) -> Result<(), ControlPlaneError> {
        let namespaces: Api<Namespace> = Api::all(self.client(ADMIN).await?);
        let mut namespace = Namespace::default();
        namespace.metadata.name = Some(name.to_owned());
        let made = namespaces.patch(name, &PatchParams::apply(MANAGER), &Patch::Apply(&namespace)).await;
        made.map(drop).map_err(|source| refused(format!("making the namespace {name}"), source))
    }

    /// Applies the CRDs under charts/spanwire/files/crds and waits until they are served.
    ///
    /// # Errors
    /// The server refused one, or did not serve it in time.
    pub async fn apply_crds(&self) -> Result<(), ControlPlaneError> {
        let mut names = Vec::new();
        for path in crd_files()? {
            let text =
                fs::read_to_string(&path).map_err(|source| ControlPlaneError::File { path, source })?;
            names.extend(self.apply("", &text).await?.iter().map(ResourceExt::name_any));
        }
        let definitions: Api<CustomResourceDefinition> = Api::all(self.client(ADMIN).await?);
        for name in &names {
            wait_until_served(&definitions, name).await?;
        }
        Ok(())
    }
}

fn crd_files() -> Result<Vec<PathBuf>, ControlPlaneError> {
    let folder = crate::folder::workspace().join("charts/spanwire/files/crds");
    let listed = fs::read_dir(&folder).and_then(|entries| {
        entries.map(|entry| entry.map(|entry| entry.path())).collect::<std::io::Result<Vec<_>>>()
    });
    listed.map_err(|source| ControlPlaneError::File { path: folder, source })
}

async fn apply(
    client: &Client,
    namespace: &str,
    object: &DynamicObject,
) -> Result<DynamicObject, ControlPlaneError> {
    let types = object.types.clone().unwrap_or_default();
    let name = object.name_any();
    let action = format!("applying {} {name}", types.kind);
    let kind = GroupVersionKind::try_from(&types)
        .map_err(|error| ControlPlaneError::Manifest { reason: format!("{action}: {error}") })?;
    let (resource, capabilities) =
        pinned_kind(client, &kind).await.map_err(|source| refused(action.clone(), source))?;
    let namespace = object.namespace().unwrap_or_else(|| namespace.to_owned());
    let api: Api<DynamicObject> = match capabilities.scope {
        Scope::Cluster => Api::all_with(client.clone(), &resource),
        Scope::Namespaced => Api::namespaced_with(client.clone(), &namespace, &resource),
    };
    let parameters = PatchParams::apply(MANAGER).force().validation_strict();
    api.patch(&name, &parameters, &Patch::Apply(object)).await.map_err(|source| refused(action, source))
}

async fn wait_until_served(
    definitions: &Api<CustomResourceDefinition>,
    name: &str,
) -> Result<(), ControlPlaneError> {
    let end = Instant::now() + LIMIT;
    loop {
        let definition =
            definitions.get(name).await.map_err(|source| refused(format!("reading {name}"), source))?;
        let conditions = definition.status.and_then(|status| status.conditions).unwrap_or_default();
        if conditions.iter().any(|condition| condition.type_ == "Established" && condition.status == "True") {
            return Ok(());
        }
        if Instant::now() >= end {
            return Err(ControlPlaneError::Late { what: format!("{name} was not served"), limit: LIMIT });
        }
        tokio::time::sleep(LOOK_EVERY).await;
    }
}

fn refused(action: String, source: kube::Error) -> ControlPlaneError {
    ControlPlaneError::Request { action, source: Box::new(source) }
}
