//! The CRDs as files. It refuses to write them: `cargo xtask codegen` does, from this one source.

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::{
    CustomResourceDefinition, JSONSchemaProps, JSONSchemaPropsOrArray, ValidationRule,
};
use kube::CustomResourceExt as _;

use crate::{
    AppliedIntent, AppliedIntentSpec, Gateway, GatewayNetwork, GatewayNetworkSpec, GatewaySpec, Kind,
    TunnelLink, TunnelLinkSpec, WorkerSliceConfig, WorkerSliceConfigSpec,
};

/// A definition or role that could not be written as YAML.
#[derive(Debug, thiserror::Error)]
#[error("failed to write {name} as YAML")]
pub struct CrdError {
    /// The definition.
    pub(crate) name: String,
    /// Why.
    #[source]
    pub(crate) source: serde_saphyr::ser::Error,
}

/// File name and YAML of every CRD, in the order of their names.
///
/// # Errors
/// A schema that YAML cannot express, which a test rules out.
pub fn crds() -> Result<Vec<(String, String)>, CrdError> {
    definitions()
        .into_iter()
        .map(|crd| {
            let name = crd.metadata.name.clone().unwrap_or_default();
            let file = format!("{}.yaml", crd.spec.names.plural);
            let yaml = serde_saphyr::to_string(&crd).map_err(|source| CrdError { name, source })?;
            Ok((file, yaml))
        })
        .collect()
}

/// All CRDs in the order of their names.
pub(crate) fn definitions() -> [CustomResourceDefinition; 5] {
    [
        without_rules_of_the_intent(named::<AppliedIntentSpec>(AppliedIntent::crd())),
        named::<GatewayNetworkSpec>(GatewayNetwork::crd()),
        named::<GatewaySpec>(Gateway::crd()),
        named::<TunnelLinkSpec>(TunnelLink::crd()),
        named::<WorkerSliceConfigSpec>(WorkerSliceConfig::crd()),
    ]
}

/// What was applied is recorded as it was: it may come from a directory, where no server held it against the rules.
fn without_rules_of_the_intent(mut crd: CustomResourceDefinition) -> CustomResourceDefinition {
    let schemas = crd.spec.versions.iter_mut().filter_map(|version| version.schema.as_mut());
    for schema in schemas.filter_map(|schema| schema.open_api_v3_schema.as_mut()) {
        let spec = schema.properties.as_mut().and_then(|fields| fields.get_mut("spec"));
        let intent =
            spec.and_then(|spec| spec.properties.as_mut()).and_then(|fields| fields.get_mut("intent"));
        if let Some(intent) = intent {
            for_each(intent, &|schema| schema.x_kubernetes_validations = None);
        }
    }
    crd
}

/// Adds the rule about names, which only the schema of the whole object can hold.
fn named<S: Kind>(mut crd: CustomResourceDefinition) -> CustomResourceDefinition {
    let rule = ValidationRule {
        rule: S::NAME_RULE.to_owned(),
        message: Some(S::NAME_RULE_MESSAGE.to_owned()),
        ..ValidationRule::default()
    };
    for version in &mut crd.spec.versions {
        let schema = version.schema.as_mut().and_then(|schema| schema.open_api_v3_schema.as_mut());
        if let Some(schema) = schema {
            for_each(schema, &drop_rust_formats);
            schema.x_kubernetes_validations.get_or_insert_default().push(rule.clone());
        }
    }
    crd
}

/// Rust's integer formats are unknown to API servers, which warn about each; the bounds beside them say the same.
fn drop_rust_formats(schema: &mut JSONSchemaProps) {
    if schema.format.as_deref().is_some_and(|format| format.starts_with("uint")) {
        schema.format = None;
    }
}

/// Changes a schema and all below it.
fn for_each(schema: &mut JSONSchemaProps, change: &dyn Fn(&mut JSONSchemaProps)) {
    change(schema);
    for property in schema.properties.iter_mut().flat_map(|properties| properties.values_mut()) {
        for_each(property, change);
    }
    if let Some(JSONSchemaPropsOrArray::Schema(items)) = &mut schema.items {
        for_each(items, change);
    }
}
