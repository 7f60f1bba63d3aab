//! `pgrig history`: results over time, and what Apache Otava finds in them.

use std::process::Command;

use record::comparison::{
    ComparedMetric, Comparison, ComparisonFigure, FigureVerdict, MetricRatio, PairResults,
};
use record::{
    AttemptEnding, MachineFact, Moment, PairingAttempt, RecordHeader, RecordWriter, RunState,
};
use spec::StudyFolder;

use crate::Desk;

/// A record of a comparison with this throughput of B ÷ A.
fn write_record(desk: &Desk, name: &str, time: &str, ratio: f64) {
    let figure = |metric: ComparedMetric, value: f64| ComparisonFigure {
        metric,
        unit: metric.unit().to_owned(),
        a: 1000.0,
        b: 1000.0 * value,
        b_over_a: Some(MetricRatio {
            value,
            low: value - 0.01,
            high: value + 0.01,
            confidence: 0.975,
            n: 100,
            method: "confidence sequence".to_owned(),
        }),
        verdict: FigureVerdict::CannotTell,
        deciding: true,
    };
    let decides = ComparedMetric::DECIDING.to_vec();
    let comparison = Comparison { threshold: 0.03, decides, ..Comparison::default() };
    let processor =
        MachineFact { group: "machine".into(), name: "processor".into(), value: "one".to_owned() };
    let header = RecordHeader {
        format: record::FORMAT,
        pgrig: "0.1.0".to_owned(),
        study: "compare".to_owned(),
        profile: "quick".to_owned(),
        seed: 1,
        rounds: None,
        only: None,
        again: "pgrig compare".to_owned(),
        started_at: time.to_owned(),
        ended_at: None,
        state: RunState::Done,
        plan: Vec::new(),
        facts: vec![processor],
        notes: Vec::new(),
        comparison: Some(comparison),
        unprepared: Vec::new(),
        search: None,
    };
    let study = "question = \"?\"\n[variants.A]\n[variants.B]\n[workloads.load]\n\
                 builtin = \"select-only\"\n[scenarios.load]\nrun = [\"load\"]\n";
    let files = [("study.toml".to_owned(), study.to_owned())].into();
    let folder = StudyFolder { name: "compare".to_owned(), files, is_private: false };
    let figures = vec![figure(ComparedMetric::Throughput, ratio), figure(ComparedMetric::P99, 1.0)];
    let paired = PairingAttempt {
        number: 1,
        attempt: 1,
        above: "B".to_owned(),
        below: "A".to_owned(),
        scenario: "load".to_owned(),
        below_scenario: None,
        axes: Default::default(),
        below_axes: None,
        ending: AttemptEnding::Done,
        started_at: time.to_owned(),
        began: Moment(0),
        ended: Moment(1),
        precision: 0.01,
        series: Vec::new(),
        shown: PairResults { pairs: 200, figures, ..PairResults::default() },
    };
    let writer = RecordWriter::create(&desk.path(name), header, &folder).expect("a record");
    writer.add_pairs(&paired).expect("added");
}

/// Forty days with little noise, on the last fifteen of which B is 7 % slower.
fn fill(desk: &Desk) {
    let first = jiff::Timestamp::now() - jiff::SignedDuration::from_hours(41 * 24);
    for day in 0..40i32 {
        let time = first + jiff::SignedDuration::from_hours(i64::from(day) * 24);
        let time = time.strftime("%Y-%m-%dT%H:%M:%SZ").to_string();
        let level = if day < 25 { 1.0 } else { 0.93 };
        let noise = f64::from((day * 7) % 11 - 5) / 1_000.0;
        let name = format!("record-{day}");
        write_record(desk, &name, &time, level + noise);
        let commit = format!("commit{day}");
        desk.pgrig(&["history", "add", &name, "--commit", &commit]).ended(0);
    }
}

#[test]
fn a_history_is_shown_drawn_and_exported() {
    let desk = Desk::new();
    let said = desk.pgrig(&["history", "show"]).ended(1);
    assert!(said.err.contains("history add"), "{}", said.err);
    fill(&desk);
    let lines = std::fs::read_to_string(desk.path("history.jsonl")).unwrap();
    assert_eq!(lines.lines().count(), 40);
    let said = desk.pgrig(&["history", "add", "record-3"]).ended(1);
    assert!(said.err.contains("already"), "{}", said.err);

    let listed = desk.pgrig(&["history", "show"]).ended(0).out;
    assert_eq!(listed.lines().filter(|line| line.contains("commit")).count(), 40, "{listed}");
    let shown = desk.pgrig(&["history", "show", "--only", "throughput"]).ended(0).out;
    assert!(shown.starts_with("compare, B ÷ A: throughput\n"), "{shown}");
    assert!(!shown.contains("p99"), "{shown}");
    let json = desk.pgrig(&["history", "show", "--only", "throughput", "--json"]).ended(0).out;
    let series: serde_json::Value = serde_json::from_str(&json).unwrap();
    assert_eq!((&series[0]["name"], &series[1]), (&"throughput".into(), &serde_json::Value::Null));
    assert_eq!(series[0]["points"].as_array().map(Vec::len), Some(40));
    assert!(series[0]["points"][0]["low"].as_f64() < series[0]["points"][0]["high"].as_f64());
    let said = desk.pgrig(&["history", "show", "--only", "latency"]).ended(1);
    assert!(said.err.contains("compare, B ÷ A: p99"), "{}", said.err);

    // Only what ran to its end tells of a change.
    let begun = lines.lines().next().unwrap().replacen('{', r#"{"mark":"interrupted","#, 1);
    std::fs::write(desk.path("begun.jsonl"), begun).unwrap();
    let said = desk.pgrig(&["history", "--file", "begun.jsonl", "otava", "begun"]).ended(1);
    assert!(said.err.contains("has no whole result"), "{}", said.err);
    assert!(!desk.path("begun").exists());

    desk.pgrig(&["history", "plot", "--out", "page.html"]).ended(0);
    let page = std::fs::read_to_string(desk.path("page.html")).unwrap();
    assert!(page.contains("2 figures of 40 results"));

    desk.pgrig(&["history", "otava", "exported"]).ended(0);
    let csv = desk.path("exported/compare-b-a-throughput.csv");
    let csv = std::fs::read_to_string(csv).unwrap();
    assert_eq!(csv.lines().next(), Some("time,commit,value,low,high"));
    assert_eq!(csv.lines().count(), 41);

    let Some(otava) = otava() else {
        return testing::skip::because("needs Apache Otava (scripts/setup test)");
    };
    let output = Command::new(otava)
        .args(["analyze", "compare-b-a-throughput", "--config-file", "otava.yaml"])
        .current_dir(desk.path("exported"))
        .output()
        .expect("otava runs");
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(output.status.success(), "{said}{}", String::from_utf8_lossy(&output.stderr));
    // The change lies between the results of commits 24 and 25: the line behind the mark.
    let lines: Vec<&str> = said.lines().collect();
    let is_mark = |line: &str| line.trim().starts_with('-') && line.trim().ends_with('%');
    let mark = lines.iter().position(|line| is_mark(line)).expect(&said);
    assert!(lines[mark..].iter().any(|line| line.contains("commit25")), "{said}");
    let before = lines[..mark].iter().rev().find(|line| line.contains("commit"));
    assert!(before.is_some_and(|line| line.contains("commit24")), "{said}");
}

/// Otava as `scripts/setup test` installs it, or as it is on the path.
fn otava() -> Option<std::path::PathBuf> {
    let own = concat!(env!("CARGO_MANIFEST_DIR"), "/../../target/otava/bin/otava");
    let candidates = [own.into(), std::path::PathBuf::from("otava")];
    candidates.into_iter().find(|program| {
        Command::new(program).arg("--help").output().is_ok_and(|output| output.status.success())
    })
}
