//! Files and output in JSON keep to the schemas in docs/.

use std::path::Path;

use serde_json::Value;

/// Holds a document to `docs/NAME.schema.json`.
#[track_caller]
pub(crate) fn check(name: &str, document: &Value) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs");
    let path = path.join(format!("{name}.schema.json"));
    let schema = std::fs::read_to_string(&path).unwrap_or_else(|_| panic!("{}", path.display()));
    let faults = testing::schema::faults(&serde_json::from_str(&schema).unwrap(), document);
    assert_eq!(faults, Vec::<String>::new(), "{name}");
}

/// Holds the files of a record to their schemas.
#[track_caller]
pub(crate) fn check_record(record: &Path) {
    let read = |path: &Path| -> Value {
        serde_json::from_str(&std::fs::read_to_string(path).expect("a file")).expect("JSON")
    };
    check("record", &read(&record.join("record.json")));
    let trials = std::fs::read_dir(record.join("trials")).expect("trials");
    for trial in trials.map(|entry| entry.expect("a trial").path()) {
        let file = trial.join("trial.json");
        if file.is_file() {
            check("trial", &read(&file));
        }
    }
    let pairs = std::fs::read_dir(record.join("pairs")).into_iter().flatten();
    for file in pairs.map(|entry| entry.expect("pairs").path()) {
        if file.extension().is_some_and(|extension| extension == "json") {
            check("pairs", &read(&file));
        }
    }
}

/// The inventory of the manual.
#[test]
fn an_inventory_keeps_to_its_schema() {
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/many-hosts.md");
    let page = std::fs::read_to_string(page).expect("the page");
    let blocks = page.split("```toml\n").skip(1).filter_map(|rest| rest.split("```").next());
    let mut n = 0;
    for block in blocks {
        let table: toml::Table = block.parse().expect("TOML");
        let mut document = serde_json::to_value(&table).expect("JSON");
        // A block that shows only a part.
        document
            .as_object_mut()
            .expect("a table")
            .entry("hosts")
            .or_insert_with(|| serde_json::json!({}));
        check("inventory", &document);
        n += 1;
    }
    assert!(n >= 2, "{n} inventories");
}
