//! The generated CRDs: checked-in files are current, and every default obeys its own schema. It refuses a second
//! generator.
#![cfg(feature = "kube")]
#![allow(clippy::unwrap_used, reason = "a test may fail here")]

use serde_json::Value;

fn generated() -> Vec<(String, Value)> {
    let files = spanwire_api::crds().unwrap();
    files.into_iter().map(|(file, yaml)| (file, serde_saphyr::from_str(&yaml).unwrap())).collect()
}

fn walk(path: &str, schema: &Value, visit: &mut dyn FnMut(&str, &Value)) {
    visit(path, schema);
    for (name, property) in schema["properties"].as_object().into_iter().flatten() {
        walk(&format!("{path}.{name}"), property, visit);
    }
    if schema["items"].is_object() {
        walk(&format!("{path}[]"), &schema["items"], visit);
    }
}

fn root(crd: &Value) -> &Value {
    &crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"]
}

#[test]
fn checked_in_files_are_current() {
    let folder = spanwire_testkit::folder::workspace().join("charts/spanwire/files/crds");
    for (file, yaml) in spanwire_api::crds().unwrap() {
        let checked_in = std::fs::read_to_string(folder.join(&file)).unwrap();
        assert_eq!(checked_in, yaml, "{file} is stale: run cargo xtask codegen");
    }
}

#[test]
fn checked_in_roles_and_the_reference_are_current() {
    let root = spanwire_testkit::folder::workspace();
    let roles = spanwire_api::rbac::manifests().unwrap().into_iter();
    let roles = roles.map(|(file, text)| (format!("charts/spanwire/files/roles/{file}"), text));
    for (file, text) in roles.chain([("docs/api.md".to_owned(), spanwire_api::reference())]) {
        let checked_in = std::fs::read_to_string(root.join(&file)).unwrap();
        assert!(checked_in == text, "{file} is stale: run cargo xtask codegen");
    }
}

#[test]
fn defaults_obey_their_schema_and_only_known_formats_are_named() {
    for (file, crd) in generated() {
        walk("", root(&crd), &mut |path, schema| {
            let at = format!("{file} {path}");
            assert!(schema["x-kubernetes-preserve-unknown-fields"].is_null(), "{at}");
            let format = schema["format"].as_str().unwrap_or("int64");
            assert!(["int32", "int64"].contains(&format), "{at} {format}");
            if let Some(text) = schema["default"].as_str() {
                assert!(text.len() as u64 >= schema["minLength"].as_u64().unwrap_or(0), "{at}");
                let words = schema["enum"].as_array();
                assert!(words.is_none_or(|words| words.contains(&schema["default"])), "{at}");
            }
            let words: Vec<_> = schema["enum"].as_array().into_iter().flatten().collect();
            let different: std::collections::BTreeSet<_> = words.iter().map(ToString::to_string).collect();
            assert_eq!(words.len(), different.len(), "{at}: a word twice in {words:?}");
            if let Some(list) = schema["default"].as_array() {
                assert!(list.len() as u64 >= schema["minItems"].as_u64().unwrap_or(0), "{at}");
            }
        });
    }
}

#[test]
fn every_field_is_described_and_every_list_is_bounded_and_says_how_it_is_merged() {
    for (file, crd) in generated() {
        walk("", root(&crd), &mut |path, schema| {
            let of_items = path.ends_with("[]");
            assert!(of_items || schema["description"].is_string(), "{file} {path}: no description");
            if schema["type"] == "array" {
                assert!(schema["maxItems"].is_u64(), "{file} {path}: no limit");
                assert!(schema["x-kubernetes-list-type"].is_string(), "{file} {path}: no list type");
            }
        });
    }
}

#[test]
fn list_map_keys_are_required() {
    for (file, crd) in generated() {
        walk("", root(&crd), &mut |path, schema| {
            for key in schema["x-kubernetes-list-map-keys"].as_array().into_iter().flatten() {
                let required = schema["items"]["required"].as_array();
                assert!(required.is_some_and(|required| required.contains(key)), "{file} {path} {key}");
            }
        });
    }
}

#[test]
fn every_kind_has_a_rule_for_its_name_and_a_status_subresource() {
    for (file, crd) in generated() {
        let rules = root(&crd)["x-kubernetes-validations"].as_array().unwrap();
        assert!(rules.iter().any(|rule| rule["rule"].as_str().unwrap().contains("metadata.name")), "{file}");
        assert!(crd["spec"]["versions"][0]["subresources"]["status"].is_object(), "{file}");
        assert_eq!(crd["spec"]["scope"], "Namespaced", "{file}");
    }
}

#[test]
fn topology_stays_open_and_peers_nullable() {
    for (file, crd) in generated() {
        let spec = &root(&crd)["properties"]["spec"]["properties"];
        assert!(spec["topology"]["enum"].is_null(), "{file}");
        if file == "workersliceconfigs.yaml" {
            assert_eq!(spec["peers"]["nullable"], true);
            assert_eq!(spec["peers"]["x-kubernetes-list-type"], "atomic");
            assert!(spec["peers"]["default"].is_null(), "a default would hide that the list is absent");
        }
    }
}
