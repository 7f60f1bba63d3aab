//! Phases of a scenario.

use super::*;

const PHASED: &str = r#"
question = "Does it come back?"
[data]
script = "init.sql"
[workloads.orders]
script = "orders.sql"
clients = 4
rate = 100
[scenarios.hours]
run = ["orders"]
timeline = [{ at = "1min", checkpoint = "primary" }]
[[scenarios.hours.phases]]
name = "clean"
for = { smoke = "2s", quick = "10min", full = "1h" }
[[scenarios.hours.phases]]
name = "pressure"
for = "20min"
rate = "1.5x"
timeline = [{ at = "30s", sql = "SELECT 1" }, { at = "random(1min,2min)", sql = "SELECT 2" }]
[[scenarios.hours.phases]]
name = "recovery"
for = "5min"
[[claims]]
says = "half is left"
value = "tps('default/hours', 'phase=pressure') / tps('default/hours/orders', 'phase=clean')"
expect = ">= 0.5"
"#;

#[test]
fn the_window_is_as_long_as_its_phases_and_actions_count_from_theirs() {
    let study = parse(PHASED);
    let point = &study.points[0];
    assert_eq!(point.window_ms, 35 * 60_000);
    let phases: Vec<_> =
        point.phases.iter().map(|one| (one.name.as_str(), one.from_ms, one.rate_times)).collect();
    assert_eq!(
        phases,
        [("clean", 0, 1.0), ("pressure", 600_000, 1.5), ("recovery", 1_800_000, 1.0)]
    );
    let moments: Vec<_> =
        point.timeline.iter().map(|one| (one.earliest_ms, one.latest_ms)).collect();
    assert_eq!(moments, [(60_000, 60_000), (630_000, 630_000), (660_000, 720_000)]);
    assert!(!point.must_be_steady);
    let ClaimSubject::Value { value, .. } = &study.claims[0].about else { panic!() };
    let scopes: Vec<&str> = value.references().iter().map(|one| one.scope.as_str()).collect();
    assert_eq!(scopes, ["@pressure", "orders@clean"]);
    assert_eq!(value.ratio(), Some((0, 1)));
    let table = &study.tables[0];
    let rows: Vec<&str> = table.rows.iter().map(|row| row.says.as_str()).collect();
    assert_eq!((table.title.as_str(), rows.len()), ("Phases", 3));
    assert!(rows[1].ends_with(", phase pressure"), "{rows:?}");
    assert_eq!(table.rows[1].values.len(), table.columns.len());
}

#[test]
fn without_phases_nothing_is_other_than_before() {
    let study = parse(OWN);
    assert!(study.points.iter().all(|point| point.phases.is_empty() && point.must_be_steady));
    assert!(study.tables.iter().all(|table| table.title != "Phases"));
}

#[test]
fn a_wrong_phase_is_named_with_its_fault() {
    let check = |from: &str, to: &str, expected: &str| {
        assert!(PHASED.contains(from), "{from}");
        let found = problems(&PHASED.replacen(from, to, 1));
        assert!(found.contains(expected), "{to}: {found}");
    };
    check("name = \"clean\"\n", "", "a phase has no name");
    check("for = \"20min\"", "", "a phase has no for");
    check("for = \"20min\"", "for = \"0s\"", "a phase must be longer than 0 s");
    check("name = \"recovery\"", "name = \"clean\"", "two phases are called \"clean\"");
    check("rate = \"1.5x\"", "rate = \"150\"", "\"150\" is no multiple above 0");
    check("rate = \"1.5x\"", "rate = \"0x\"", "\"0x\" is no multiple above 0");
    check("rate = 100\n", "", "no workload of the scenario has a rate");
    check("at = \"30s\"", "at = \"20min\"", "at: the phase ends after 1200 s");
    check(
        "run = [\"orders\"]\n",
        "run = [\"orders\"]\nwindow = \"1h\"\n",
        "the window is as long as",
    );
    check("'phase=pressure'", "'phase=presure'", "has no phase \"presure\"; did you mean");
    check("'phase=pressure'", "'phase=clean,phase=pressure'", "one phase at a time");
    check(
        "tps('default/hours', 'phase=pressure')",
        "generator_cores('default/hours', 'phase=pressure')",
        "whole window",
    );
    check("sql = \"SELECT 1\"", "release_snapshot = \"primary\"", "no snapshot of primary is held");
    check("rate = \"1.5x\"", "rat = \"1.5x\"", "a phase has no field \"rat\"");
    let of_none = OWN.replace("'clients=8')", "'clients=8,phase=clean')");
    assert_ne!(of_none, OWN);
    assert!(problems(&of_none).contains("has no phases"), "{}", problems(&of_none));
}
