//! The command lines of the chart, as its value sets render to them, are ones that the program takes. It refuses a list of
//! flags: what is recorded is read.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test may fail here")]

use std::{collections::BTreeSet, fs};

use clap::Parser as _;
use serde_json::Value;
use spanwire::cli::Cli;

/// The arguments of every container of a text with several objects.
fn command_lines(text: &str) -> Vec<Vec<String>> {
    let objects: Vec<Value> = serde_saphyr::from_multiple(text).unwrap();
    let containers = objects.iter().filter_map(|object| object.pointer("/spec/template/spec/containers"));
    let arguments = containers.filter_map(Value::as_array).flatten().map(|container| &container["args"]);
    arguments.map(|arguments| serde_json::from_value(arguments.clone()).unwrap()).collect()
}

#[test]
fn every_command_line_of_the_chart_is_taken() {
    let folder = spanwire_testkit::folder::workspace().join("charts/spanwire/tests/golden");
    let mut commands = BTreeSet::new();
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        for line in command_lines(&fs::read_to_string(&path).unwrap()) {
            let parsed =
                Cli::try_parse_from(std::iter::once("spanwire").chain(line.iter().map(String::as_str)));
            parsed.unwrap_or_else(|error| panic!("{}: {line:?}: {error}", path.display()));
            commands.insert(line[0].clone());
        }
    }
    assert_eq!(commands.into_iter().collect::<Vec<_>>(), ["controller", "dataplane", "worker"]);
}
