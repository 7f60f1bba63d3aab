//! `pgrig compare --clients`: the same servers with several numbers of clients.

use crate::Desk;

/// Sleeps for so long; with a lock, one session after the other.
fn function(lock: &str) -> String {
    format!(
        "CREATE OR REPLACE FUNCTION work() RETURNS void LANGUAGE plpgsql AS \
         $$ BEGIN {lock} PERFORM pg_sleep(0.004); END $$;\n"
    )
}

#[test]
fn what_costs_nothing_alone_and_much_among_many_is_told_by_number_of_clients() {
    let desk = Desk::new();
    desk.write("data.sql", &function(""));
    desk.write("queue.sql", &function("PERFORM pg_advisory_xact_lock(1);"));
    desk.write("work.sql", "SELECT work();\n");
    let mut arguments = vec!["compare", "--b-sql", "queue.sql", "--data", "data.sql"];
    arguments.extend([
        "-f",
        "work.sql",
        "-M",
        "prepared",
        "--clients",
        "1,8",
        "--threshold",
        "20%",
    ]);
    arguments.extend([
        "--max-time",
        "6min",
        "--out",
        "series",
        "--json",
        "found.json",
        "--gate",
        "throughput",
    ]);
    let said = desk.pgrig(&arguments).ended(4);
    let answer = |out: &str| {
        let line =
            out.lines().find(|line| line.starts_with("By number of clients")).map(str::to_owned);
        line.unwrap_or_else(|| panic!("{out}"))
    };
    assert!(answer(&said.out).contains("worse with 8"), "{}", said.out);
    let row = said.out.lines().find(|line| line.trim_start().starts_with("8 "));
    let row = row.unwrap_or_else(|| panic!("{}", said.out));
    assert!(row.contains("worse") && row.contains("Lock:advisory 0 % → "), "{row}");
    assert!(said.err.contains("2 of 2: 8 clients a side"), "{}", said.err);

    let json = std::fs::read_to_string(desk.path("found.json")).expect("the JSON file");
    let json: serde_json::Value = serde_json::from_str(&json).expect("JSON");
    assert_eq!(json["answer"], answer(&said.out));
    let of = |at: usize, name: &str| json["clients"][at][name].clone();
    assert_eq!([of(0, "clients"), of(1, "clients")], [serde_json::json!(1), serde_json::json!(8)]);
    for at in [0, 1] {
        let comparison = of(at, "comparison");
        crate::schemas::check("show", &comparison);
        // Two loads share the errors of 5 in 100, and each says with which load it was made.
        assert_eq!(comparison["comparison"]["confidence"], 0.975);
        let workload = comparison["comparison"]["workload"].as_str().unwrap_or_default();
        assert!(workload.ends_with(["-c 1", "-c 8"][at]), "{workload}");
    }
    let ratio = |at: usize| {
        let figure = &of(at, "comparison")["pairs"][0]["figures"][0];
        assert_eq!(figure["metric"], "throughput");
        figure["b_over_a"]["value"].as_f64().expect("a ratio")
    };
    assert!(ratio(0) > 0.8 && ratio(1) < 0.3, "{} {}", ratio(0), ratio(1));

    // What was printed is read from the records again, and each of them has a page.
    let shown = desk.pgrig(&["show", "series"]).ended(0);
    assert_eq!(answer(&shown.out), answer(&said.out));
    for name in ["clients-1", "clients-8"] {
        assert!(desk.path("series").join(name).join("report.html").exists(), "{name}");
        desk.pgrig(&["show", &format!("series/{name}")]).ended(0);
    }
}

#[test]
fn a_series_that_cannot_be_is_refused() {
    let desk = Desk::new();
    let check = |arguments: &[&str], message: &str, hint: &str| {
        let said = desk.pgrig(&[&["compare", "--self", "-S"], arguments].concat());
        assert_ne!(said.code, Some(0), "{arguments:?}");
        assert!(
            said.err.contains(message) && said.err.contains(hint),
            "{arguments:?}: {}",
            said.err
        );
        assert_eq!(said.out, "");
    };
    check(&["--clients", "1,8", "-c", "4"], "-c gives one number", "leave one of them out");
    check(&["--clients", "1,8", "--client=4"], "-c gives one number", "leave one of them out");
    check(&["--clients", "0,8"], "0", "1..=100000");
    check(&["--clients", "1,x"], "x", "invalid value");
    check(&["--clients", "8,1,8"], "--clients 8,1,8", "each number once");
    check(&["--clients", "1,8", "--junit", "x.xml"], "files for CI", "clients-N --junit");
    check(&["--clients", "1,8", "--study", "pgbench"], "--clients", "cannot be used with");
}
