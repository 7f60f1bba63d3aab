//! A history as other checkers read it.

use history::export::{ExportNotation, OperationModel, export};

use crate::written::{history_of, runs};

fn exported(lines: &[&str], model: OperationModel, notation: ExportNotation) -> String {
    let mut out = Vec::new();
    export(&history_of(runs(lines)), model, notation, &mut out).unwrap();
    String::from_utf8(out).unwrap()
}

/// Client 1 does not hear of its first transaction, and is another process in its second.
const LINES: [&str; 4] =
    ["0 10-30 ok: a5=1 r5=1 g6=", "1 20-20 ?: a5=2", "1 40-50 ok: r5=1,2", "0 60-70 fail: w6=3"];

#[test]
fn edn_has_an_operation_on_each_line() {
    let lists = "\
{:index 0, :type :invoke, :process 0, :time 10, :f :txn, :value [[:append 5 1] [:r 5 nil]]}
{:index 1, :type :invoke, :process 1, :time 20, :f :txn, :value [[:append 5 2]]}
{:index 2, :type :info, :process 1, :time 20, :f :txn, :value [[:append 5 2]]}
{:index 3, :type :ok, :process 0, :time 30, :f :txn, :value [[:append 5 1] [:r 5 [1]]]}
{:index 4, :type :invoke, :process 3, :time 40, :f :txn, :value [[:r 5 nil]]}
{:index 5, :type :ok, :process 3, :time 50, :f :txn, :value [[:r 5 [1 2]]]}
";
    assert_eq!(exported(&LINES, OperationModel::ListAppend, ExportNotation::Edn), lists);
    let registers = "\
{:index 0, :type :invoke, :process 0, :time 10, :f :txn, :value [[:r 6 nil]]}
{:index 1, :type :ok, :process 0, :time 30, :f :txn, :value [[:r 6 nil]]}
{:index 2, :type :invoke, :process 0, :time 60, :f :txn, :value [[:w 6 3]]}
{:index 3, :type :fail, :process 0, :time 70, :f :txn, :value [[:w 6 3]]}
";
    assert_eq!(exported(&LINES, OperationModel::RwRegister, ExportNotation::Edn), registers);
    let bank = "\
{:index 0, :type :invoke, :process 0, :time 1, :f :read, :value nil}
{:index 1, :type :ok, :process 0, :time 2, :f :read, :value {0 3 1 7}}
";
    assert_eq!(exported(&["0 1-2 ok: s10=3,7"], OperationModel::Bank, ExportNotation::Edn), bank);
}

#[test]
fn json_is_an_array_of_objects() {
    let text = exported(&LINES, OperationModel::ListAppend, ExportNotation::Json);
    let events: serde_json::Value = serde_json::from_str(&text).unwrap();
    let types: Vec<&str> =
        events.as_array().unwrap().iter().map(|event| event["type"].as_str().unwrap()).collect();
    assert_eq!(types, ["invoke", "invoke", "info", "ok", "invoke", "ok"]);
    assert_eq!(events[3]["value"], serde_json::json!([["append", 5, 1], ["r", 5, [1]]]));
    assert_eq!(events[3]["time"], 30);
    let bank = exported(&["0 1-2 ok: s10=3,7"], OperationModel::Bank, ExportNotation::Json);
    let events: serde_json::Value = serde_json::from_str(&bank).unwrap();
    assert_eq!(events[1]["value"], serde_json::json!({"0": 3, "1": 7}));
}
