//! A JSON document against its schema, as far as the schemas of this project go.

use serde_json::Value;

/// The keywords that the schema uses. A validator for all of JSON Schema would be a hundred crates.
const KEYWORDS: [&str; 15] = [
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
    "anyOf",
    "minimum",
    "maximum",
    "pattern",
];

/// Faults of `document`, each with its place; a key that the schema does not know is one, too.
///
/// # Panics
/// If the schema is not valid, or has a keyword that is not known here.
pub fn faults(schema: &Value, document: &Value) -> Vec<String> {
    let mut found = Vec::new();
    collect(schema, schema, document, "$", &mut found);
    found
}

fn collect(schema: &Value, root: &Value, value: &Value, place: &str, found: &mut Vec<String>) {
    if let Some(name) = schema["$ref"].as_str() {
        let defined = root.pointer(name.trim_start_matches('#')).expect("a definition");
        return collect(defined, root, value, place, found);
    }
    for keyword in schema.as_object().expect("a schema").keys() {
        let is_known = KEYWORDS.contains(&keyword.as_str()) || keyword == "additionalProperties";
        assert!(is_known, "{place}: {keyword} is not known here");
    }
    if let Some(branches) = schema["anyOf"].as_array() {
        let faults_of = |branch| {
            let mut faults = Vec::new();
            collect(branch, root, value, place, &mut faults);
            faults
        };
        // The branch that was meant has the kind of this value, and the fewest faults.
        let is_another = |faults: &Vec<String>| {
            let of_kind = [format!("{place} is no"), format!("{place} may not be")];
            faults.iter().any(|fault| of_kind.iter().any(|kind| fault.starts_with(kind)))
        };
        let nearest =
            branches.iter().map(faults_of).min_by_key(|faults| (is_another(faults), faults.len()));
        found.extend(nearest.unwrap_or_default());
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
    for (keyword, is_beyond) in
        [("minimum", (|a, b| a < b) as fn(f64, f64) -> bool), ("maximum", |a, b| a > b)]
    {
        if let (Some(limit), Some(number)) = (schema[keyword].as_f64(), value.as_f64())
            && is_beyond(number, limit)
        {
            found.push(format!("{place} is beyond its {keyword} {limit}: {number}"));
        }
    }
    if let (Some(pattern), Some(text)) = (schema["pattern"].as_str(), value.as_str()) {
        let piece = pattern.strip_prefix('[').and_then(|rest| rest.strip_suffix(']'));
        let piece = piece.expect("a pattern is one character in brackets, as in [{]");
        if !text.contains(piece) {
            found.push(format!("{place} has no {piece}: {text}"));
        }
    }
    if let Some(entries) = value.as_object().filter(|_| {
        ["properties", "required", "additionalProperties"]
            .iter()
            .any(|key| schema.get(key).is_some())
    }) {
        for name in schema["required"].as_array().into_iter().flatten().filter_map(Value::as_str) {
            if !entries.contains_key(name) {
                found.push(format!("{place} has no {name}"));
            }
        }
        for (name, entry) in entries {
            let own = schema.pointer(&format!("/properties/{name}"));
            match own.or(schema.get("additionalProperties")) {
                Some(Value::Bool(true)) => {}
                None | Some(Value::Bool(false)) => {
                    found.push(format!("{place}.{name} is not described"));
                }
                Some(own) => collect(own, root, entry, &format!("{place}.{name}"), found),
            }
        }
    }
    if let (Some(items), Some(each)) = (schema.get("items"), value.as_array()) {
        for (index, item) in each.iter().enumerate() {
            collect(items, root, item, &format!("{place}[{index}]"), found);
        }
    }
}
