//! `--json` keeps to `docs/bench.schema.json`, and every key is described there.

mod common;

use std::fs;

use common::Server;
use serde_json::Value;

const SCHEMA: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/bench.schema.json");

/// The keywords that the schema uses. A validator for all of JSON Schema would be a hundred crates.
const KEYWORDS: [&str; 11] = [
    "$schema",
    "$defs",
    "$ref",
    "title",
    "description",
    "type",
    "const",
    "enum",
    "properties",
    "required",
    "items",
];

/// What is wrong with `value`, each with its place; a key that the schema does not know, too.
fn faults(schema: &Value, root: &Value, value: &Value, place: &str, found: &mut Vec<String>) {
    if let Some(name) = schema["$ref"].as_str() {
        let defined = root.pointer(name.trim_start_matches('#')).expect("a definition");
        return faults(defined, root, value, place, found);
    }
    for keyword in schema.as_object().expect("a schema").keys() {
        let is_known = KEYWORDS.contains(&keyword.as_str()) || keyword == "additionalProperties";
        assert!(is_known, "{place}: this test does not know {keyword}");
    }
    let types: Vec<&str> = match &schema["type"] {
        Value::String(name) => vec![name],
        Value::Array(names) => names.iter().filter_map(Value::as_str).collect(),
        _ => Vec::new(),
    };
    let is = |name: &str| match name {
        "null" => value.is_null(),
        "boolean" => value.is_boolean(),
        "integer" => value.is_u64() || value.is_i64(),
        "number" => value.is_number(),
        "string" => value.is_string(),
        "array" => value.is_array(),
        _ => value.is_object(),
    };
    if !types.is_empty() && !types.iter().any(|name| is(name)) {
        found.push(format!("{place} is no {types:?}: {value}"));
    }
    if schema.get("const").is_some_and(|constant| constant != value)
        || schema["enum"].as_array().is_some_and(|known| !known.contains(value))
    {
        found.push(format!("{place} may not be {value}"));
    }
    if let Some(entries) = value.as_object() {
        for name in schema["required"].as_array().into_iter().flatten().filter_map(Value::as_str) {
            if !entries.contains_key(name) {
                found.push(format!("{place} has no {name}"));
            }
        }
        for (name, entry) in entries {
            let own = schema.pointer(&format!("/properties/{name}"));
            match own.or(schema.get("additionalProperties")) {
                Some(own) => faults(own, root, entry, &format!("{place}.{name}"), found),
                None => found.push(format!("{place}.{name} is not described")),
            }
        }
    }
    if let (Some(items), Some(each)) = (schema.get("items"), value.as_array()) {
        for (index, item) in each.iter().enumerate() {
            faults(items, root, item, &format!("{place}[{index}]"), found);
        }
    }
}

#[test]
fn what_is_written_keeps_to_the_schema() {
    let text = fs::read_to_string(SCHEMA).expect("the schema");
    let schema: Value = serde_json::from_str(&text).expect("JSON");
    let server = Server::start(&[]);
    assert_eq!(server.ours("postgres", "-i -q --partitions=2").code, 0);
    let folder = tempfile::tempdir().expect("a folder");
    let (json, fails) = (folder.path().join("run.json"), folder.path().join("fails.sql"));
    fs::write(&fails, "select 1/0;\n").expect("a script");
    let abort = format!("-n -t 1 -f {}", fails.display());
    let other = format!("{abort} --continue-on-error -c 2");
    let mut last = Value::Null;
    for (line, code) in [
        ("-n -t 5", 0),
        ("-n -T 1 -R 100 -L 100 -r -S -N -c 2 -j 2 -P 1 --max-tries=2", 0),
        ("-n -S -T 1 --reconnect --baseline --warmup=0", 0),
        ("-n -S -T 1 --warmup=0 --find-clients=mean<9s", 2),
        (&abort, 2),
        (&other, 0),
    ] {
        let ended = server.ours("postgres", &format!("{line} --json={}", json.display()));
        assert_eq!(ended.code, code, "{line}: {ended:?}");
        let text = fs::read_to_string(&json).expect("the document");
        last = serde_json::from_str(&text).expect("JSON");
        let mut found = Vec::new();
        faults(&schema, &schema, &last, "$", &mut found);
        assert!(found.is_empty(), "{line}: {found:#?}");
    }

    // What does not keep to it is found.
    let check = |change: &dyn Fn(&mut Value), expected: &str| {
        let mut changed = last.clone();
        change(&mut changed);
        let mut found = Vec::new();
        faults(&schema, &schema, &changed, "$", &mut found);
        assert_eq!(found, [expected]);
    };
    check(&|told| told["scale"] = "1".into(), "$.scale is no [\"integer\"]: \"1\"");
    check(&|told| told["end"] = "well".into(), "$.end may not be \"well\"");
    check(&|told| told["new"] = 1.into(), "$.new is not described");
    check(
        &|told| drop(told["latency"].as_object_mut().expect("an object").remove("p99_ns")),
        "$.latency has no p99_ns",
    );
}
