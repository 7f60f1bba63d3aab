//! `pgrig compare`: two servers side by side.

use crate::Desk;

/// A script whose cost is that of a function, which each side may have its own of.
fn write_work(desk: &Desk) {
    desk.write("work.sql", "SELECT work();\n");
    let work = |rows: u32| {
        format!(
            "CREATE OR REPLACE FUNCTION work() RETURNS bigint LANGUAGE plpgsql AS \
             $$ BEGIN RETURN (SELECT count(*) FROM generate_series(1, {rows})); END $$;\n"
        )
    };
    desk.write("data.sql", &work(200));
    desk.write("slower.sql", &work(3_000));
}

#[test]
fn a_slower_side_is_found_and_fails_the_gate() {
    let desk = Desk::new();
    write_work(&desk);
    let said = desk.pgrig(&[
        "compare",
        "--b-sql",
        "slower.sql",
        "--data",
        "data.sql",
        "-f",
        "work.sql",
        "-M",
        "prepared",
        "-c",
        "2",
        "--threshold",
        "20%",
        "--max-time",
        "60s",
        "--json",
        "found.json",
        "--gate",
    ]);
    let said = said.ended(4);
    assert!(said.out.starts_with("B is slower: 0."), "{}", said.out);
    let json = std::fs::read_to_string(desk.path("found.json")).expect("the JSON file");
    let json: serde_json::Value = serde_json::from_str(&json).expect("JSON");
    let tps = &json["figures"][0];
    assert_eq!((&tps["metric"], &tps["verdict"]), (&"throughput".into(), &"worse".into()));
    let bound = |name: &str| tps["b_over_a"][name].as_f64().expect(name);
    assert!(0.0 < bound("lower") && bound("upper") < 0.8, "{tps}");
    assert_eq!(json["b"]["sql"], "slower.sql");
    assert_eq!(json["same_files"], true);
    let transactions = said.out.lines().find(|line| line.contains("throughput, 1/s"));
    assert!(transactions.is_some_and(|line| line.ends_with("worse")), "{}", said.out);
}

#[test]
fn what_a_comparison_cannot_follow_is_refused() {
    let desk = Desk::new();
    write_work(&desk);
    let check = |arguments: &[&str], message: &str, hint: &str| {
        let said = desk.pgrig(&[&["compare"], arguments].concat()).ended(1);
        assert!(said.err.contains(message), "{arguments:?}: {}", said.err);
        assert!(said.err.contains(hint), "{arguments:?}: {}", said.err);
        assert_eq!(said.out, "");
    };
    check(&["-S"], "both sides are the same", "--self");
    check(&["--self", "-S", "--b-set", "jit=on"], "--self compares", "side B is given a setting");
    check(&["--self", "-S", "-R", "100"], "option -R", "sides take turns");
    check(&["--self", "-S", "-C"], "option -C", "keep their connections open");
    check(&["--self", "-S", "-T", "5"], "option -t, -T", "--max-time");
    check(&["--self", "-i"], "not for -i", "the scale of -s");
    check(&["--self", "-f", "missing.sql"], "missing.sql", "could not");
    check(&["--self", "-S", "--max-time", "0s"], "--max-time", "more than 0 s");
    check(&["--self", "-S", "--precision", "x"], "--precision", "as in 1%");
    check(&["--self", "-S", "--set", "work_mem"], "--set", "NAME=VALUE");
    check(&["--self", "-S", "--data", "missing.sql"], "reading missing.sql", "No such file");
    check(&["--self", "-S", "--set", "no_such=1"], "no_such", "");
    desk.write("broken.sql", "CREATE TABEL t ();\n");
    check(&["-S", "--b-sql", "broken.sql"], "filling side B: broken.sql", "TABEL");
    desk.write("fails.sql", "SELECT no_such_column;\n");
    check(&["--self", "-f", "fails.sql"], "no transaction of side A ended well", "no_such_column");
}
