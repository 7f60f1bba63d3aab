//! The schema of study.toml accepts what the parser accepts, and finds the mistakes that need no look
//! at other parts of the study.

use std::fs;
use std::path::Path;

use serde_json::Value;
use testing::schema::faults;

use super::*;

fn faults_of(study: &str) -> Vec<String> {
    let schema = include_str!("../../../../docs/study.schema.json");
    let document: Value = toml::from_str(study).unwrap();
    faults(&serde_json::from_str(schema).unwrap(), &document)
}

#[test]
fn every_study_of_the_tree_fits_the_schema() {
    let studies = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../studies");
    let paths = fs::read_dir(studies).unwrap().map(|entry| entry.unwrap().path());
    let shipped = paths.filter_map(|path| fs::read_to_string(path.join("study.toml")).ok());
    let made = [spec::template("mine"), spec::explore_template("mine")]
        .map(|folder| folder.files[StudyFolder::STUDY].clone());
    let studies: Vec<String> = shipped.chain(made).chain([OWN.to_owned()]).collect();
    assert!(studies.len() > 8);
    for study in studies {
        assert_eq!(faults_of(&study), Vec::<String>::new(), "{}", &study[..study.len().min(200)]);
    }
}

#[test]
fn what_the_schema_refuses_is_refused_by_the_parser_too() {
    let check = |from: &str, to: &str, expected: &str| {
        assert!(OWN.contains(from), "{from}");
        let study = OWN.replacen(from, to, 1);
        assert!(!problems(&study).is_empty(), "{to}");
        assert!(
            faults_of(&study).iter().any(|fault| fault.contains(expected)),
            "{to}: {:?}",
            faults_of(&study)
        );
    };
    let in_load = |text: &str| format!("[scenarios.load]\n{text}\n");
    check("question =", "qestion =", "$ has no question");
    check("question =", "qestion =", "$.qestion is not described");
    check("script = \"orders.sql\"", "script = \"orders.sql\"\nclints = 8", ".clints");
    check("script = \"orders.sql\"", "script = 7", "$.workloads.orders.script");
    check("run  = [\"orders\"]", "runs = [\"orders\"]", "$.scenarios.load has no run");
    check("run  = [\"orders\"]", "run = [{ load = \"orders\" }]", "has no workload");
    check("rows   = {", "rows = { medium = 3,", ".rows.medium");
    check("rows   = {", "row = {", "$.data.row is");
    check("expect = \">= 2.0\"", "expect = 2", ".expect");
    check("expect = \">= 2.0\"", "expect = \"> 2\"\nkind = \"theorem\"", ".kind");
    check("expect = \">= 2.0\"", "expect = \"> 2\"\npairs = { max = \"1s\" }", "has no precision");
    check("[scenarios.load]", &in_load("window = 20"), "$.scenarios.load.window");
    check("[scenarios.load]", &in_load("rounds = 0"), "minimum 1");
    check("[scenarios.load]", &in_load("steady = \"yes\""), "$.scenarios.load.steady");
    check("[scenarios.load]", &in_load("on_loss = \"give up\""), "$.scenarios.load.on_loss");
    check("[scenarios.load]", &in_load("timeline = [{ kill = \"primary\" }]"), "has no at");
    check("[scenarios.load]", &in_load("timeline = [{ at = \"1s\", kil = \"primary\" }]"), ".kil");
    check(
        "[scenarios.load]",
        &in_load("timeline = [{ at = \"1s\", kill = \"primary\", mode = \"fast\" }]"),
        ".mode",
    );
    check("[scenarios.load]", &in_load("checks = [\"count\"]"), "$.scenarios.load.checks[0]");
    check("[scenarios.load]", &in_load("checks = [{ counts = \"primary\" }]"), ".counts");
    check("[scenarios.load]", &in_load("points = [{ rounds = 2 }]"), "has no at");
    check(
        "[variants.fast]",
        "[topologies.a]\nnodes.p = { kind = \"oracle\" }\n[variants.fast]",
        ".kind",
    );
    check(
        "[variants.fast]",
        "[topologies.a]\nnodes.p = { disk = { size = \"1GB\" } }\n[variants.fast]",
        "has no cut",
    );
    check(
        "[variants.fast]",
        "[topologies.a]\nnodes.p = {}\nnodes.g = { kind = \"guard\" }\n[variants.fast]",
        "$.topologies.a.nodes.g",
    );
    check("[variants.fast]", "[variants.fast]\ntopologie = \"x\"", ".topologie");
}

#[test]
fn mistakes_about_other_parts_are_for_the_parser_alone() {
    for (from, to) in [
        ("run  = [\"orders\"]", "run = [\"order\"]"),
        ("orders.sql", "order.sql"),
        ("tps('fast", "tpz('fast"),
        (">= 2.0", "about 2"),
    ] {
        let study = OWN.replacen(from, to, 1);
        assert!(!problems(&study).is_empty() && faults_of(&study).is_empty(), "{to}");
    }
}
