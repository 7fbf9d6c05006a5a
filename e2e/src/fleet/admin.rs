//! A person at a control cluster: reads an object or all of ours, applies one. It refuses to touch a status.

use anyhow::{Context as _, Result};
use kube::{
    Api, Client,
    api::{DynamicObject, ListParams, Patch, PatchParams},
};
use spanwire_api::{
    AppliedIntentSpec, GatewayNetworkSpec, GatewaySpec, Kind, Object, TunnelLinkSpec, WorkerSliceConfigSpec,
    resource,
};
use tokio::runtime::{Builder, Runtime};

/// Who owns the fields that a person writes.
const MANAGER: &str = "e2e";

/// A client and the runtime that it works on.
pub(crate) struct Admin {
    pub(super) runtime: Runtime,
    client: Client,
    namespace: &'static str,
}

impl Admin {
    /// With a client that was made on the runtime.
    pub(super) fn new(runtime: Runtime, client: Client, namespace: &'static str) -> Self {
        Self { runtime, client, namespace }
    }

    /// An object; `None`: there is none.
    pub(super) fn object<S: Kind>(&self, name: &str) -> Result<Option<Object<S>>> {
        let read = || format!("reading {} {name}", S::PLURAL);
        let found = self.runtime.block_on(self.api::<S>().get_opt(name)).with_context(read)?;
        let value = found.map(serde_json::to_value).transpose().with_context(read)?;
        value.map(serde_json::from_value).transpose().with_context(read)
    }

    /// Applies an object, over a connection that stands: what follows is timed from here.
    pub(super) fn apply<S: Kind>(&self, name: &str, text: &str) -> Result<()> {
        let action = || format!("applying {} {name}", S::PLURAL);
        let object: DynamicObject = serde_saphyr::from_str(text).with_context(action)?;
        let parameters = PatchParams::apply(MANAGER).force().validation_strict();
        self.runtime
            .block_on(self.api::<S>().patch(name, &parameters, &Patch::Apply(&object)))
            .map(drop)
            .with_context(action)
    }

    fn api<S: Kind>(&self) -> Api<DynamicObject> {
        Api::namespaced_with(self.client.clone(), self.namespace, &resource::<S>())
    }

    /// All objects of ours as YAML.
    pub(super) fn objects(&self) -> Result<String> {
        self.runtime.block_on(objects(&self.client))
    }
}

/// A runtime with a thread of its own, so that watches go on.
pub(super) fn runtime() -> Result<Runtime> {
    Builder::new_multi_thread().worker_threads(1).enable_all().build().context("making a runtime")
}

/// All objects of ours as YAML.
pub(super) async fn objects(client: &Client) -> Result<String> {
    let resources = [
        resource::<GatewaySpec>(),
        resource::<GatewayNetworkSpec>(),
        resource::<WorkerSliceConfigSpec>(),
        resource::<TunnelLinkSpec>(),
        resource::<AppliedIntentSpec>(),
    ];
    let mut text = String::new();
    for resource in resources {
        let api: Api<DynamicObject> = Api::all_with(client.clone(), &resource);
        for mut object in api.list(&ListParams::default()).await.context("listing objects")? {
            object.metadata.managed_fields = None;
            text.push_str("---\n");
            text.push_str(&serde_saphyr::to_string(&object).context("expressing an object")?);
        }
    }
    Ok(text)
}
