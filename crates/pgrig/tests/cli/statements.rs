//! `pgrig compare` of a mixed load: a verdict for each script.

use crate::Desk;

/// Scripts of which one fails on B, one does not end there, and one returns something else: each is named, and the others
/// are judged.
#[test]
fn a_script_that_cannot_be_compared_is_named_and_the_others_are_compared() {
    let desk = Desk::new();
    let function = |name: &str, body: &str| {
        format!("CREATE OR REPLACE FUNCTION {name}() RETURNS int LANGUAGE sql AS $$ {body} $$;\n")
    };
    let all = ["fails", "hangs", "other", "works"];
    desk.write(
        "data.sql",
        &all.map(|name| function(name, "SELECT 1 FROM pg_sleep(0.005)")).concat(),
    );
    let b = [
        function("fails", "SELECT 1 / (SELECT count(*)::int FROM pg_class WHERE relname = 'none')"),
        function("hangs", "SELECT 1 FROM pg_sleep(3600)"),
        function("other", "SELECT 2 FROM pg_sleep(0.005)"),
    ];
    desk.write("b.sql", &b.concat());
    let mut arguments = vec!["compare", "--data", "data.sql", "--b-sql", "b.sql", "-c", "2"];
    let files = all.map(|name| {
        desk.write(&format!("{name}.sql"), &format!("SELECT {name}();\n"));
        format!("{name}.sql")
    });
    arguments.extend(files.iter().flat_map(|file| ["-f", file.as_str()]));
    arguments.extend(["--max-time", "40s", "--gate", "--json", "found.json", "--out", "record"]);
    let said = desk.pgrig(&arguments).ended(4);
    let json = std::fs::read_to_string(desk.path("found.json")).expect("the JSON file");
    let json: serde_json::Value = serde_json::from_str(&json).expect("JSON");
    crate::schemas::check("show", &json);
    let statements = json["pairs"][0]["statements"].as_array().expect("statements");
    for (name, verdict, why) in [
        ("fails.sql", "fails", "division by zero"),
        ("hangs.sql", "does_not_end", "not within 5 s, and on A within "),
        ("other.sql", "different_results", "returns other rows on B"),
    ] {
        let one = statements.iter().find(|one| one["script"] == name).expect(name);
        assert_eq!(one["verdict"], verdict, "{one}");
        assert!(one["why"].as_str().is_some_and(|words| words.contains(why)), "{one}");
    }
    let works = statements.iter().find(|one| one["script"] == "works.sql").expect("works.sql");
    assert!(
        works["why"].is_null() && works["alone"]["executions"][1].as_u64() > Some(10),
        "{works}"
    );
    let counted = "1 does something else (other.sql), 1 fails on B (fails.sql), 1 does not end on B (hangs.sql)";
    assert!(said.out.contains(counted), "{}", said.out);
}

/// Where one script is left, the one that fails is still named, and fails the gate.
#[test]
fn a_script_that_fails_beside_a_single_other_one_is_named() {
    let desk = Desk::new();
    desk.write("data.sql", "CREATE TABLE t AS SELECT 1 AS a;\n");
    desk.write("b.sql", "ALTER TABLE t RENAME a TO b;\n");
    desk.write("fails.sql", "SELECT a FROM t;\n");
    desk.write("works.sql", "SELECT count(*) FROM t;\n");
    // Their queries say nothing against B.
    desk.write("empty.sql", "\\setrow k query none.sql\nSELECT :k;\n");
    desk.write("none.sql", "SELECT 1 AS k WHERE false;\n");
    desk.write("missing.sql", "\\setrow k query gone.sql\nSELECT :k;\n");
    desk.write("gone.sql", "SELECT k FROM gone;\n");
    let mut arguments = vec!["compare", "--data", "data.sql", "--b-sql", "b.sql", "-c", "2"];
    let files = ["fails.sql", "works.sql", "empty.sql", "missing.sql"];
    arguments.extend(files.iter().flat_map(|file| ["-f", *file]));
    arguments.extend(["--max-time", "15s", "--gate"]);
    let said = desk.pgrig(&arguments).ended(4);
    assert!(said.out.contains("1 fails on B (fails.sql)"), "{}", said.out);
    for expected in [
        "column \"a\" does not exist",
        "2 cannot be told",
        "none.sql returns no row",
        "the query of its rows fails: relation \"gone\" does not exist",
    ] {
        assert!(said.out.contains(expected), "{expected}: {}", said.out);
    }
}

#[test]
fn each_script_of_a_mixed_load_has_a_verdict() {
    let desk = Desk::new();
    // They sleep: the same on a busy machine.
    let function = |name: &str, ms: u32| {
        format!(
            "CREATE OR REPLACE FUNCTION {name}() RETURNS int LANGUAGE sql AS \
             $$ SELECT 1 FROM pg_sleep({ms} / 1e3) $$;\n"
        )
    };
    let data = ["often", "rare", "same"].map(|name| function(name, 5)).concat();
    desk.write("data.sql", &data);
    desk.write("b.sql", &(function("rare", 25) + &function("same", 5)));
    for name in ["often", "rare", "same"] {
        desk.write(&format!("{name}.sql"), &format!("SELECT {name}();\n"));
    }
    let mut arguments = vec!["compare", "--data", "data.sql", "--b-sql", "b.sql", "-c", "4"];
    arguments.extend(["-f", "often.sql@96", "-f", "rare.sql@2", "-f", "same.sql@2"]);
    arguments.extend(["--max-time", "75s", "--threshold", "25%", "--precision", "0.01%", "--gate"]);
    arguments.extend(["--fail-on", "worse", "--json", "found.json", "--junit", "found.xml"]);
    arguments.extend(["--out", "record"]);
    // The mix is as fast within the threshold, and the gate fails by the one script.
    let said = desk.pgrig(&arguments).ended(4);
    assert!(said.out.contains("1 is slower (rare.sql "), "{}", said.out);
    let json = std::fs::read_to_string(desk.path("found.json")).expect("the JSON file");
    let json: serde_json::Value = serde_json::from_str(&json).expect("JSON");
    crate::schemas::check("show", &json);
    let statements = json["pairs"][0]["statements"].as_array().expect("statements");
    assert_eq!(statements.len(), 3, "{statements:?}");
    let of = |name: &str| {
        let one = statements.iter().find(|one| one["script"] == name);
        one.unwrap_or_else(|| panic!("no {name}: {statements:?}"))
    };
    assert_eq!(of("rare.sql")["verdict"], "slower", "{statements:?}");
    for name in ["often.sql", "same.sql"] {
        assert_ne!(of(name)["verdict"], "slower", "{statements:?}");
    }
    assert_eq!(of("often.sql")["calls"], 0.96);
    let low = of("rare.sql")["alone"]["median"]["low"].as_f64();
    assert!(low.is_some_and(|low| low > 1.25), "{statements:?}");
    let junit = std::fs::read_to_string(desk.path("found.xml")).expect("the JUnit file");
    assert!(junit.contains("rare.sql does the same on B and takes no longer"), "{junit}");
    let page = std::fs::read_to_string(desk.path("record/report.html")).expect("the report");
    assert!(page.contains("Scripts") && page.contains("rare.sql"), "the report has the table");
}

/// A script that is slower has a reason: the node that differs, and the change that makes it fast again.
#[test]
fn a_slower_script_has_its_reason() {
    let desk = Desk::new();
    let table = |name: &str| {
        format!(
            "CREATE TABLE {name} AS SELECT k, k % 5000 AS a FROM generate_series(1, 60000) k;
             CREATE INDEX {name}_a ON {name} (a);\n"
        )
    };
    let others = "CREATE TABLE waits (a int);\nVACUUM ANALYZE;\n";
    desk.write("data.sql", &(table("lost") + &table("kept") + others));
    let b = "DROP INDEX lost_a;\nINSERT INTO waits SELECT 1 FROM generate_series(1, 3);\n";
    desk.write("b.sql", b);
    for name in ["lost", "kept"] {
        let text = format!("\\set a random(1, 4999)\nSELECT count(*) FROM {name} WHERE a = :a;\n");
        desk.write(&format!("{name}.sql"), &text);
    }
    desk.write("endless.sql", "SELECT pg_sleep(count(*) * 1000) FROM waits;\n");
    let mut arguments = vec!["compare", "--data", "data.sql", "--b-sql", "b.sql", "-c", "1"];
    arguments.extend(["--b-set", "random_page_cost=100000"]);
    let files = ["lost.sql", "kept.sql", "endless.sql"];
    arguments.extend(files.iter().flat_map(|file| ["-f", *file]));
    arguments.extend(["--max-time", "80s", "--gate"]);
    arguments.extend(["--json", "found.json", "--junit", "found.xml", "--out", "record"]);
    let said = desk.pgrig(&arguments).ended(4);
    let json = std::fs::read_to_string(desk.path("found.json")).expect("the JSON file");
    let json: serde_json::Value = serde_json::from_str(&json).expect("JSON");
    crate::schemas::check("show", &json);
    let statements = json["pairs"][0]["statements"].as_array().expect("statements");
    let reason = |name: &str| {
        let one = statements.iter().find(|one| one["script"] == name);
        &one.unwrap_or_else(|| panic!("no {name}: {statements:?}"))["reason"]
    };
    for (name, table) in [("lost.sql", "lost"), ("kept.sql", "kept")] {
        let differs = &reason(name)["differs"];
        assert_eq!(differs[1], format!("Seq Scan on {table}"), "{statements:?}");
        let index = format!("using {table}_a on {table}");
        assert!(differs[0].as_str().is_some_and(|node| node.contains(&index)), "{differs}");
    }
    assert_eq!(reason("kept.sql")["cures"][0]["change"], "random_page_cost = 4");
    assert_eq!(reason("lost.sql")["cures"].as_array().map(Vec::len), Some(0));
    // It was planned, and ended by its limit.
    assert!(reason("endless.sql")["plans"][1]["ms"].is_null());
    let cured = "; with random_page_cost = 4 it takes ";
    let junit = std::fs::read_to_string(desk.path("found.xml")).expect("the JUnit file");
    let page = std::fs::read_to_string(desk.path("record/report.html")).expect("the report");
    assert!(said.out.contains(cured) && junit.contains(cured), "{}{junit}", said.out);
    assert!(page.contains("Why kept.sql is slower") && page.contains("with ANALYZE"));
}
