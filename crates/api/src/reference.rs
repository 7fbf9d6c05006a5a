//! The reference of the kinds as a page, from the same schemas that the server has. It refuses text of its own: what a
//! field means is said once, at the field.

use std::fmt::Write as _;

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::{
    CustomResourceDefinition, JSONSchemaProps, JSONSchemaPropsOrArray,
};

use crate::crds::definitions;

const INTRODUCTION: &str = "\
# The kinds

Generated from the types in `crates/api` by `cargo xtask codegen`; the same text is in `kubectl explain`.

All kinds are namespaced, have a status subresource, and are in the category `spanwire` (`kubectl get spanwire`).
";

/// The page in Markdown.
#[must_use]
pub fn reference() -> String {
    let mut page = INTRODUCTION.to_owned();
    for definition in definitions() {
        kind(&mut page, &definition);
    }
    page
}

fn kind(page: &mut String, definition: &CustomResourceDefinition) {
    let names = &definition.spec.names;
    let short = names.short_names.iter().flatten().map(|name| format!(", `{name}`")).collect::<String>();
    line(page, &format!("\n## {}\n", names.kind));
    for version in &definition.spec.versions {
        let schema = version.schema.as_ref().and_then(|schema| schema.open_api_v3_schema.as_ref());
        let Some(schema) = schema else { continue };
        line(
            page,
            &format!("{}.\n", schema.description.as_deref().unwrap_or_default().trim_end_matches('.')),
        );
        let group = &definition.spec.group;
        line(page, &format!("`apiVersion: {group}/{}` · `{}`{short}\n", version.name, names.plural));
        for rule in schema.x_kubernetes_validations.iter().flatten() {
            line(page, &format!("Rule: {}.\n", rule.message.as_deref().unwrap_or(&rule.rule)));
        }
        line(page, "| field | type | meaning |\n|---|---|---|");
        fields(page, "", schema);
    }
}

/// One row a field, parents first.
fn fields(page: &mut String, above: &str, schema: &JSONSchemaProps) {
    for (name, field) in schema.properties.iter().flatten() {
        let path = if above.is_empty() { name.clone() } else { format!("{above}.{name}") };
        let required = schema.required.iter().flatten().any(|required| required == name);
        line(page, &format!("| `{path}` | {} | {} |", type_of(field), meaning(field, required)));
        fields(page, &path, field);
        if let Some(JSONSchemaPropsOrArray::Schema(items)) = &field.items {
            fields(page, &format!("{path}[]"), items);
        }
    }
}

fn type_of(field: &JSONSchemaProps) -> String {
    let name = field.type_.as_deref().unwrap_or("any");
    match &field.items {
        Some(JSONSchemaPropsOrArray::Schema(items)) => {
            let limit = field.max_items.map(|most| format!(", at most {most}")).unwrap_or_default();
            format!("list of {}{limit}", items.type_.as_deref().unwrap_or("any"))
        }
        _ => name.to_owned(),
    }
}

fn meaning(field: &JSONSchemaProps, required: bool) -> String {
    let mut text = field.description.clone().unwrap_or_default().replace('\n', " ").replace('|', "\\|");
    let words: Vec<String> = field
        .enum_
        .iter()
        .flatten()
        .filter(|word| !word.0.is_null())
        .map(|word| format!("`{}`", plain(&word.0)))
        .collect();
    if !words.is_empty() {
        let _ = write!(text, " One of {}.", words.join(", "));
    }
    if let Some(default) = field.default.as_ref().filter(|default| says_something(&default.0)) {
        let _ = write!(text, " Default: `{}`.", plain(&default.0));
    }
    for rule in field.x_kubernetes_validations.iter().flatten() {
        let _ = write!(text, " Rule: {}.", rule.message.as_deref().unwrap_or(&rule.rule));
    }
    if let Some(JSONSchemaPropsOrArray::Schema(items)) = &field.items {
        for rule in items.x_kubernetes_validations.iter().flatten() {
            let _ = write!(text, " Rule for each: {}.", rule.message.as_deref().unwrap_or(&rule.rule));
        }
    }
    if required { format!("**Required.** {text}") } else { text }
}

/// Empty defaults are what every reader expects, and those of objects stand at their fields.
fn says_something(default: &serde_json::Value) -> bool {
    use serde_json::Value::{Array, Bool, Null, Number, Object, String};
    match default {
        String(text) => !text.is_empty(),
        Number(number) => number.as_f64() != Some(0.0),
        Bool(_) => true,
        Null | Array(_) | Object(_) => false,
    }
}

fn plain(value: &serde_json::Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

fn line(page: &mut String, text: &str) {
    // What stands in angle brackets would be taken for a tag.
    page.push_str(&text.replace('<', "\\<"));
    page.push('\n');
}
