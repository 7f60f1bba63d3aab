//! Comparisons at a given rate.

use crate::Desk;
use crate::compare::{work, write_work};

#[test]
fn sides_with_a_rate_are_told_apart_by_their_latency() {
    let desk = Desk::new();
    write_work(&desk);
    // Half of what four clients can do at this latency, which is longer than what a busy machine adds.
    desk.write("slowest.sql", &work(40));
    let mut arguments = vec!["compare", "--b-sql", "slowest.sql", "--data", "data.sql"];
    arguments.extend(["-f", "work.sql", "-M", "prepared", "-c", "4", "-R", "50"]);
    // Sides that are initialised differently are loaded each by itself.
    arguments.push("--b-initdb=--wal-segsize=4");
    // It ends as soon as the median latency is decided.
    arguments.extend(["--threshold", "30%", "--gate", "p50", "--max-time", "3min"]);
    arguments.extend(["--json", "found.json"]);
    let mut said = desk.pgrig(&arguments);
    // A neighbour's load may keep a side from its rate, and that is said; once more, then.
    if said.out.contains("a side did not reach its rate") {
        said = desk.pgrig(&arguments);
    }
    let said = said.ended(4);
    let sides = "A: as it is. B: initdb --wal-segsize=4, slowest.sql.\n";
    assert!(said.out.starts_with(sides), "{}", said.out);
    assert!(said.out.contains(" is slower than A at 50 transactions a second: "), "{}", said.out);
    assert!(!said.out.contains("wal_segment_size"), "it was asked for: {}", said.out);
    let json = std::fs::read_to_string(desk.path("found.json")).expect("the JSON file");
    let json: serde_json::Value = serde_json::from_str(&json).expect("JSON");
    assert_eq!(json["comparison"]["rate"], 50.0);
    assert_eq!(json["comparison"]["data"], "loaded_twice");
    let initdb = &json["comparison"]["b"]["initdb"];
    assert_eq!(*initdb, serde_json::json!(["--wal-segsize=4"]));
    for side in ["a", "b"] {
        let tps = json["pairs"][0]["figures"][0][side].as_f64().expect("throughput");
        // As many as were due, which varies by chance; without a rate A alone would do several hundred.
        assert!((30.0..70.0).contains(&tps), "side {side} did {tps} transactions a second");
    }
}

#[test]
fn a_side_that_cannot_keep_up_with_its_rate_is_named() {
    let desk = Desk::new();
    write_work(&desk);
    // Two clients of B do about 160.
    let mut arguments = vec!["compare", "--b-sql", "slower.sql", "--data", "data.sql"];
    arguments.extend(["-f", "work.sql", "-M", "prepared", "-c", "2", "-R", "300"]);
    arguments.extend(["--max-time", "24s"]);
    let said = desk.pgrig(&arguments).ended(0);
    let named = said
        .out
        .lines()
        .any(|line| line.contains("side B did ") && line.contains(" of 300 transactions a second"));
    assert!(named, "{}", said.out);
}
