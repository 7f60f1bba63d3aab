//! The schema of study.toml describes what the parser asks for: every field, no other, with the same
//! limits and words.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

use serde_json::Value;

use crate::fields::trace;
use crate::{Study, StudyFolder, StudyProfile, explore_template, template};

#[test]
fn the_schema_has_every_field_that_the_parser_asks_for_and_no_other() {
    let schema = include_str!("../../../../docs/study.schema.json");
    let schema: Value = serde_json::from_str(schema).unwrap();
    for folder in folders() {
        for profile in StudyProfile::of(&folder) {
            Study::parse(&folder, profile).unwrap();
        }
    }
    let asked = trace::taken();
    let described = described(&schema);
    let mut wrong = Vec::new();
    for (table, key, may_be) in &asked {
        match described.get(&(*table, *key)) {
            _ if REFUSED.contains(&(table, key)) => {}
            None => wrong.push(format!("{table} has no {key}")),
            // The upper limit of second_cuts is another field.
            Some(says) if *key == "second_cuts" || fits(may_be, says) => {}
            Some(says) => wrong.push(format!("{table}: {key} is {may_be:?}, and here {says:?}")),
        }
    }
    assert!(wrong.is_empty(), "the schema:\n{}", wrong.join("\n"));
    let asked: BTreeSet<(&str, &str)> =
        asked.iter().map(|(table, key, _)| (*table, *key)).collect();
    // Read without a table of its own: its keys are names that a workload uses.
    let is_read = |at: &(&str, &str)| asked.contains(at) || at.0 == "an entry of run";
    let unread: Vec<_> = described.keys().filter(|at| !is_read(at)).collect();
    assert!(unread.is_empty(), "the parser never asks for {unread:?}");
}

/// True if the schema says this of a value. The words of a choice may be spread over several tables, such
/// as the kinds of nodes.
fn fits(may_be: &str, says: &BTreeSet<String>) -> bool {
    let words: BTreeSet<&str> = says.iter().flat_map(|one| one.split(" | ")).collect();
    may_be.is_empty() || says.contains(may_be) || may_be.split(" | ").eq(words)
}

/// Fields that the parser looks for in order to refuse them.
const REFUSED: [(&str, &str); 2] = [("a check", "counts"), ("a check", "placement")];

/// Every study in the tree, and one with what none of them has.
fn folders() -> Vec<StudyFolder> {
    let studies = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../studies");
    let files_of = |path: &Path| {
        let files = fs::read_dir(path).unwrap().map(|entry| entry.unwrap().path());
        files
            .map(|file| {
                let name = file.file_name().unwrap().to_str().unwrap().to_owned();
                (name, fs::read_to_string(file).unwrap())
            })
            .collect()
    };
    let paths = fs::read_dir(studies).unwrap().map(|entry| entry.unwrap().path());
    let shipped = paths.filter(|path| path.is_dir()).map(|path| StudyFolder {
        name: "shipped".to_owned(),
        files: files_of(&path),
        is_private: false,
    });
    let mut rest = template("rest");
    rest.files.insert(StudyFolder::STUDY.to_owned(), REST.to_owned());
    shipped.chain([template("mine"), explore_template("mine"), rest]).collect()
}

/// The values of each (table, key), by the titles of the schema's tables.
fn described(schema: &Value) -> BTreeMap<(&str, &str), BTreeSet<String>> {
    let mut described: BTreeMap<_, BTreeSet<String>> = BTreeMap::new();
    let mut left = vec![schema];
    while let Some(value) = left.pop() {
        match value {
            Value::Array(items) => left.extend(items),
            Value::Object(entries) => left.extend(entries.values()),
            _ => {}
        }
        let (Some(title), Some(keys)) = (value["title"].as_str(), value["properties"].as_object())
        else {
            continue;
        };
        for (key, own) in keys {
            values(own, schema, described.entry((title, key.as_str())).or_default());
        }
    }
    described
}

/// Collects what a value may be, in the words of the trace.
fn values(own: &Value, schema: &Value, into: &mut BTreeSet<String>) {
    if let Some(name) = own["$ref"].as_str() {
        return values(schema.pointer(name.trim_start_matches('#')).unwrap(), schema, into);
    }
    if let Some(words) = own["enum"].as_array() {
        into.insert(trace::one_of(words.iter().filter_map(Value::as_str)));
    }
    if let Some(low) = own["minimum"].as_i64() {
        let high = own["maximum"].as_i64().unwrap_or(i64::MAX);
        into.insert(format!("{low} to {high}"));
    }
    if own["type"] == "boolean" {
        into.insert("true or false".to_owned());
    }
    for branch in own["anyOf"].as_array().into_iter().flatten() {
        values(branch, schema, into);
    }
}

/// A study with the fields that no other in the tree has.
const REST: &str = r#"
question = "?"

[topologies.all.nodes]
primary = { disk = { cut = "block" } }
follower = { bin = "/usr/lib/postgresql/15/bin", subscribes = { to = "primary", begin = "action", tables = ["orders"] } }

[workloads.orders]
script = "orders.sql"

[workloads.made]
builtin = [{ name = "select-only", weight = 2 }]

[nemesis]
trial = "load"
promises = ["sql_check_failures == 0"]
faults = ["pause", { name = "stall", begin = { pause = "{victim}" }, end = { continue = "{victim}" }, victims = ["primary"], length = "1ms .. 5ms" }]
victims = ["primary"]
steps = "1 .. 2"
length = "1ms .. 5ms"
gap = "0s .. 5ms"
overlap = 0.5
settle = "100ms"

[scenarios.load]
run = ["orders", "made"]
checks = [{ sql = "SELECT 1", as = "one", expect = "1" }, { same_rows = ["primary", "follower"], tables = ["orders"], extra = "follower" }, { same_objects = ["primary", "follower"] }]
phases = [{ name = "whole", for = "1s" }]
timeline = [{ at = "10ms", hold_snapshot = "primary" }, { at = "20ms", release_snapshot = "primary" }, { at = "50ms", slow_disk = "primary", flush = 2, by = "1ms" }, { at = "100ms", fail_disk = "primary", error = "EIO" }, { when = { caught_up = "follower", within = "10ms" }, subscribe = "follower" }, { when = { sql = "SELECT true", on = "follower", within = "10ms" }, sql = "SELECT 1", on = "follower" }]
"#;
