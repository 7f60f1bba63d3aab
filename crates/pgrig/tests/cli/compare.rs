//! `pgrig compare`: two servers side by side.

use std::io::{BufRead, BufReader, Read};
use std::process::{Command, Stdio};

use lab::{Endpoint, Host, Lab, Node, NodeConfig};
use rustix::process::Signal;

use crate::interruption::signal;
use crate::{Desk, Said};

/// The function of [`write_work`], which sleeps for so many milliseconds.
pub(crate) fn work(milliseconds: u32) -> String {
    format!(
        "CREATE OR REPLACE FUNCTION work() RETURNS void LANGUAGE sql AS \
         $$ SELECT pg_sleep({milliseconds} / 1e3) $$;\n"
    )
}

/// A script that takes as long as a function, which each side may have its own of: it takes the same on a
/// busy machine, and leaves the CPUs to other tests.
pub(crate) fn write_work(desk: &Desk) {
    desk.write("work.sql", "SELECT work();\n");
    desk.write("data.sql", &work(3));
    desk.write("slower.sql", &work(12));
}

/// A comparison of a side with itself that costs next to nothing.
pub(crate) const ITSELF: [&str; 8] =
    ["compare", "--self", "--data", "data.sql", "-f", "work.sql", "-c", "2"];

#[test]
fn a_slower_side_fails_the_gate_and_its_record_is_told_to_other_programs() {
    let desk = Desk::new();
    write_work(&desk);
    let mut arguments = vec!["compare", "--b-sql", "slower.sql", "--data", "data.sql"];
    arguments.extend(["-f", "work.sql", "-M", "prepared", "-c", "2", "--threshold", "20%"]);
    arguments.extend(["--precision", "10%", "--max-time", "2min", "--gate", "--out", "record"]);
    arguments.extend(["--json", "found.json", "--junit", "first.xml"]);
    arguments.extend(["--metrics", "compare.prom"]);
    let said = desk.pgrig(&arguments).ended(4);
    assert!(said.out.starts_with("A: as it is. B: slower.sql.\n"), "{}", said.out);
    assert!(said.out.contains("\nB with slower.sql is slower than A: 0."), "{}", said.out);
    assert!(said.out.contains("\n  one half of A's blocks against the other half"), "{}", said.out);
    let json = std::fs::read_to_string(desk.path("found.json")).expect("the JSON file");
    let json: serde_json::Value = serde_json::from_str(&json).expect("JSON");
    crate::schemas::check("show", &json);
    let claim = &json["claims"][0];
    assert_eq!([&claim["verdict"], &claim["expected"]], ["does not hold", "≥ 0.8333"]);
    let tps = &json["pairs"][0]["figures"][0];
    assert_eq!((&tps["metric"], &tps["verdict"]), (&"throughput".into(), &"worse".into()));
    let bound = |name: &str| tps["b_over_a"][name].as_f64().expect(name);
    assert!(0.0 < bound("low") && bound("high") < 0.8, "{tps}");
    assert_eq!(json["comparison"]["b"]["sql"], "slower.sql");
    assert_eq!(json["comparison"]["data"], "copied");
    let transactions = said.out.lines().find(|line| line.contains("throughput, 1/s"));
    assert!(transactions.is_some_and(|line| line.ends_with("worse")), "{}", said.out);
    crate::examples::is_as_in_the_readme(&said.out);
    is_told(&desk);
}

/// What other programs are told of the comparison of the slower side.
fn is_told(desk: &Desk) {
    let figures = std::fs::read_to_string(desk.path("compare.prom")).unwrap();
    assert!(figures.contains("\npgrig_compare_ratio{figure=\"throughput\",bound=\"point\"} 0."));
    crate::schemas::check_record(&desk.path("record"));
    let pairs = std::fs::read_to_string(desk.path("record/pairs/01-B-A-load.json")).unwrap();
    let pairs: serde_json::Value = serde_json::from_str(&pairs).unwrap();
    assert_eq!(pairs["plans"][0]["statement"], "SELECT work();", "{}", pairs["plans"]);
    assert!(pairs["background"][1]["idle_cpus"].is_number(), "{}", pairs["background"]);
    // Each transaction waits for its sleep and for its client's next command, on both sides.
    let figures = pairs["figures"].as_array().expect("figures");
    let switches = figures.iter().find(|one| one["metric"] == "context_switches");
    let switches = switches.expect("context switches");
    let of = |side: &str| switches[side].as_f64().expect("a count");
    assert!(of("a") > 1.5 && of("b") > 1.5, "{switches}");
    let junit = std::fs::read_to_string(desk.path("first.xml")).expect("the JUnit file");
    let case = r#"name="throughput of B with slower.sql is that of A within 20 %, or better"><failure message="#;
    assert!(junit.contains(&format!("{case}\"does not hold: 0.")), "{junit}");
    assert!(
        junit.contains(r#"name="no more transactions of B fail than of A"><system-out>holds"#),
        "{junit}"
    );

    let mut show = desk.command(&["show", "record", "--github-summary", "--junit", "second.xml"]);
    show.args(["--benchmark-action", "action", "--bencher", "bencher.json", "--github-output"]);
    show.args(["--markdown", "comment.md"]).env("GITHUB_OUTPUT", desk.path("outputs"));
    let output = show.env("GITHUB_STEP_SUMMARY", desk.path("summary.md")).output().unwrap();
    crate::Said::of(&output).ended(0);
    let outputs = std::fs::read_to_string(desk.path("outputs")).unwrap();
    let expected = "verdict=worse\nfigure=throughput\nratio=0.";
    assert!(outputs.starts_with(expected), "{outputs}");
    assert!(outputs.contains("\nlow=0.") && outputs.contains("\nhigh=0."), "{outputs}");
    assert_eq!(std::fs::read_to_string(desk.path("second.xml")).unwrap(), junit);
    let summary = std::fs::read_to_string(desk.path("summary.md")).unwrap();
    assert!(summary.contains("| ❌ | throughput of B"), "{summary}");
    assert_eq!(std::fs::read_to_string(desk.path("comment.md")).unwrap(), summary);
    crate::python::reads(desk, &["test_comparison.py"], "PGRIG_COMPARISON", "record");
    let read = |name: &str| -> serde_json::Value {
        serde_json::from_str(&std::fs::read_to_string(desk.path(name)).unwrap()).unwrap()
    };
    let bigger = read("action/bigger-is-better.json");
    assert_eq!(bigger[0]["name"], "B ÷ A: throughput");
    let bencher = read("bencher.json");
    let throughput = &bencher["B ÷ A"]["throughput"];
    let number = |name: &str| throughput[name].as_f64().expect(name);
    assert!(number("lower_value") < number("value") && number("value") < number("upper_value"));

    let said = desk.pgrig(&["report", "record"]).ended(0);
    assert_eq!(said.out, "record/report.html\n");
    let page = std::fs::read_to_string(desk.path("record/report.html")).unwrap();
    assert!(page.contains("In pairs: B ÷ A, load") && page.contains("SELECT work();"), "the page");
    let differs = desk.pgrig(&["diff", "record", "record"]).ended(0);
    assert!(differs.out.contains("B ÷ A, load  tps"), "{}", differs.out);
    let listed = desk.pgrig(&["show", "."]).ended(0);
    assert!(listed.out.contains("record  B with slower.sql is slower"), "{}", listed.out);
    let mut show = desk.command(&["show", "record", "--github-summary"]);
    let said = crate::Said::of(&show.env_remove("GITHUB_STEP_SUMMARY").output().unwrap());
    assert!(said.ended(1).err.contains("GITHUB_STEP_SUMMARY"));
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
    check(&["--self", "-S", "-R", "100", "-L", "5"], "option -L", "not skipped");
    check(&["--self", "-S", "-C"], "option -C", "keep their connections open");
    check(&["--self", "-S", "-P", "1"], "option -P", "its own progress");
    check(&["--self", "-S", "mydb"], "option DBNAME", "--a-conninfo");
    check(&["--self", "-S", "--random-seed", "1"], "option --random-seed", "--seed");
    check(&["--self", "-S", "--html", "x"], "option --html", "--out");
    check(&["--self", "-S", "-c", "2", "--generators", "2"], "option --generators", "one process");
    check(&["--self", "-S", "-T", "5"], "option -T", "--max-time");
    check(&["--self", "-i"], "not for -i", "the scale of -s");
    check(&["--self", "-f", "missing.sql"], "error: could not open", "missing.sql");
    check(&["--self", "-S", "-c", "x"], "error: invalid value \"x\"", "-c/--client");
    check(&["--self", "-S", "--no-such"], "unexpected argument '--no-such' found", "try '--help'");
    check(
        &["-S", "--b-bin", "/nowhere"],
        "/nowhere holds no usable PostgreSQL",
        "--b-bin DIR of pgrig compare",
    );
    check(&["--self", "-S", "--max-time", "0s"], "--max-time", "more than 0 s");
    check(&["--self", "-S", "--precision", "x"], "--precision", "as in 1%");
    check(&["--self", "-S", "--set", "work_mem"], "--set", "NAME=VALUE");
    check(&["--self", "-S", "--data", "missing.sql"], "reading missing.sql", "No such file");
    check(&["--self", "-S", "--set", "no_such=1"], "no_such", "leave it out");
    desk.write("taken/notes.txt", "");
    check(&["--self", "-S", "--out", "taken"], "taken", "");
    desk.write("broken.sql", "CREATE TABEL t ();\n");
    check(&["-S", "--b-sql", "broken.sql"], "filling side B: broken.sql", "TABEL");
    desk.write("fails.sql", "SELECT no_such_column;\n");
    check(
        &["-S", "--b-set", "jit=on"],
        "jit of side B has no effect: it is on",
        "different values",
    );
    check(
        &["-S", "--b-set", "work_mem=x"],
        "invalid value for parameter \"work_mem\"",
        "correct it",
    );
    check(&["-S", "--b-initdb=--pgdata=/x"], "--pgdata cannot be given", "where the files lie");
    check(&["-S", "--b-initdb", "-D/x"], "the long form of an option of initdb", "");
    let alike = ["-S", "--a-initdb", "-k", "--b-initdb=--data-checksums"];
    check(&alike, "both sides are the same", "--b-initdb");
    let wrong = ["-S", "--b-initdb=--wal-segsize=65"];
    check(&wrong, "initialising node B: initdb", "power of 2");
    check(&["-S", "--b-set", "jit=off", "--gate", "-s", "0"], "-s", "");
    check(&["-S", "--b-set", "jit=off", "--gate=tsp"], "tsp is no figure", "throughput, p50");
    check(&["-S", "--b-set", "jit=off", "--name", "a\nb"], "--name", "one line");
    check(&["-S", "--self", "--no-init"], "option --no-init", "hold no data");
    let both = ["-S", "--a-conninfo", "host=/nowhere", "--b-conninfo", "host=/elsewhere"];
    check(&both, "side A: connecting", "start that server");
    check(&[&both[..], &["--b-bin", "x"]].concat(), "option --a-bin, --b-bin", "run already");
    let initialised = [&both[..], &["--a-initdb=-k"]].concat();
    check(&initialised, "option --a-initdb, --b-initdb", "initialised already");
    check(&[&both[..], &["--profile"]].concat(), "option --profile", "can be sampled");
    let unknown = ["-S", "--a-conninfo", "hots=x", "--b-conninfo", "host=x"];
    check(&unknown, "reading the address of side A", "hots");
    check(&["--self", "-f", "fails.sql"], "no transaction of side A ended well", "no_such_column");
}

/// A comparison in which nothing depends on the figures. The pilots take 12 s of it.
const SHORT: [&str; 6] = ["-c", "1", "--max-time", "24s", "-M", "prepared"];

#[test]
fn an_interrupted_comparison_keeps_what_it_has() {
    let desk = Desk::new();
    write_work(&desk);
    let arguments = [&ITSELF[..], &["--max-time", "1min", "--out", "record"]].concat();
    let mut child = desk.command(&arguments).spawn().unwrap();
    let mut lines = BufReader::new(child.stderr.take().unwrap()).lines();
    assert!(lines.any(|line| line.unwrap().contains("pairs   B ÷ A")), "no progress");
    signal(&child, Signal::INT);
    let mut out = String::new();
    child.stdout.take().unwrap().read_to_string(&mut out).unwrap();
    let told: Vec<String> = lines.map(Result::unwrap).collect();
    assert_eq!(child.wait().unwrap().code(), Some(130), "{told:?}");
    assert!(out.contains("ended: interrupted"), "{out}");
    let shown = desk.pgrig(&["show", "record"]).ended(0);
    assert_eq!(shown.out, out, "the record says the same");
    assert!(desk.path("record/report.html").is_file());

    let said = desk.pgrig(&["run", "--resume", "record"]).ended(1);
    let why = "record is a comparison, and no run goes on with it";
    assert!(said.err.contains(why) && said.err.contains("pgrig compare --self"), "{}", said.err);
    let place = "record/pairs/01-B-A-load.json";
    let pairs = std::fs::read_to_string(desk.path(place)).unwrap();
    let mut pairs: serde_json::Value = serde_json::from_str(&pairs).unwrap();
    pairs["figures"] = serde_json::json!([]);
    desk.write(place, &pairs.to_string());
    let said = desk.pgrig(&["history", "add", "record"]).ended(1);
    assert!(said.err.contains("record has no figure with an interval"), "{}", said.err);
    assert!(!desk.path("history.jsonl").exists(), "nothing was added");
}

#[test]
fn a_side_that_dies_is_named_and_what_was_measured_counts() {
    std::thread::scope(|scope| {
        scope.spawn(|| dies_at("pilot", None));
        scope.spawn(|| dies_at("measuring", None));
        scope.spawn(|| dies_at("pairs   B ÷ A", Some("a client of side B failed after")));
    });
}

/// B's sessions end once this has been said. Without an interval there is no record, and an error; else what was
/// measured counts, and has this doubt.
fn dies_at(moment: &str, doubt: Option<&str>) {
    let desk = Desk::new();
    write_work(&desk);
    // B's sessions end by themselves once there is a file, which the server's user can see.
    let shared = tempfile::tempdir().unwrap();
    let readable = std::os::unix::fs::PermissionsExt::from_mode(0o755);
    std::fs::set_permissions(shared.path(), readable).unwrap();
    let signal = shared.path().join("end");
    desk.write(
        "dies.sql",
        &format!(
            "CREATE OR REPLACE FUNCTION work() RETURNS void LANGUAGE plpgsql AS $$ BEGIN
                 PERFORM pg_terminate_backend(pg_backend_pid())
                     WHERE (pg_stat_file('{}', true)).size IS NOT NULL;
                 PERFORM pg_sleep(0.003); END $$;\n",
            signal.display()
        ),
    );
    let mut arguments = vec!["compare", "--b-sql", "dies.sql", "--data", "data.sql"];
    arguments.extend(["-f", "work.sql", "-c", "2", "--max-time", "1min", "--out", "record"]);
    arguments.extend(["--precision", "0.01%"]);
    let mut child = desk.command(&arguments).spawn().unwrap();
    let mut lines = BufReader::new(child.stderr.take().unwrap()).lines();
    assert!(lines.any(|line| line.unwrap().contains(moment)), "{moment}");
    std::fs::write(&signal, "").unwrap();
    let mut out = String::new();
    child.stdout.take().unwrap().read_to_string(&mut out).unwrap();
    let told: Vec<String> = lines.map(Result::unwrap).collect();
    assert_eq!(child.wait().unwrap().code(), Some(2), "{told:?}");
    let told = [told.join("\n"), out].concat();
    assert!(told.contains(doubt.unwrap_or("side B")), "{told}");
    assert!(told.contains("administrator command"), "{told}");
    assert_eq!(desk.path("record/pairs/01-B-A-load.json").is_file(), doubt.is_some(), "{told}");
}

#[test]
fn what_does_not_fit_is_refused_before_anything_is_built() {
    let desk = Desk::new();
    let check = |arguments: &[&str], message: &str, hint: &str| {
        let said = desk.pgrig(&[&["compare", "--self", "-S"], arguments].concat()).ended(3);
        assert!(said.err.contains(message), "{arguments:?}: {}", said.err);
        assert!(said.err.contains(hint), "{arguments:?}: {}", said.err);
    };
    check(&["-s", "10000000"], "of disk space, and", "a smaller scale");
    check(&["--set", "shared_buffers=4TB"], "of memory, and", "shared_buffers");
}

#[test]
fn a_script_that_fails_on_one_side_only_names_the_side() {
    let desk = Desk::new();
    desk.write("data.sql", "CREATE TABLE t (a int);\n");
    desk.write("b.sql", "ALTER TABLE t RENAME a TO b;\n");
    desk.write("read.sql", "SELECT a FROM t;\n");
    let arguments =
        ["compare", "--data", "data.sql", "--b-sql", "b.sql", "-f", "read.sql", "-c", "2"];
    let said = desk.pgrig(&arguments).ended(1);
    assert!(said.err.contains("no transaction of side B ended well"), "{}", said.err);
    assert!(said.err.contains("\"a\" does not exist"), "{}", said.err);
}

#[test]
fn a_side_is_initialised_with_its_own_options() {
    let desk = Desk::new();
    write_work(&desk);
    // It fails where there are checksums, and nothing has to be measured.
    let fails = "DO $$ BEGIN ASSERT current_setting('data_checksums') = 'off', 'there are checksums'; \
                 END $$;\n";
    desk.write("off.sql", fails);
    let installation = testing::servers::installation();
    let option = match installation.version().major >= 18 {
        true => "--a-initdb=--no-data-checksums",
        false => "--b-initdb=--data-checksums",
    };
    let mut arguments = vec!["compare", "--data", "data.sql", "-f", "work.sql", "-c", "1"];
    arguments.extend([option, "--a-sql", "off.sql", "--b-sql", "off.sql", "--keep-data"]);
    // Data of one side that are kept are not taken for the other.
    let said = desk.command(&arguments).env("XDG_CACHE_HOME", desk.path("cache")).output();
    let said = crate::Said::of(&said.expect("pgrig runs")).ended(1);
    assert!(said.err.contains("filling side B: off.sql:1"), "{}", said.err);
    assert!(said.err.contains("there are checksums"), "{}", said.err);
}

/// Two servers of the user's, with something of theirs in each.
fn servers() -> [(Node, Lab); 2] {
    let server = |initdb: Vec<String>| {
        let lab = testing::servers::lab();
        let settings = [("fsync", "off"), ("shared_buffers", "16MB")].into_iter().collect();
        let config = NodeConfig { initdb, ..NodeConfig::new(settings) };
        let node = testing::servers::start(&lab, "server", config);
        let theirs = "CREATE TABLE theirs (id int PRIMARY KEY, note text);
            INSERT INTO theirs SELECT i, 'note ' || i FROM generate_series(1, 1000) i;
            CREATE TABLE pgbench_accounts (mine text);";
        node.connect().expect("a connection").batch_execute(theirs).expect("tables are made");
        (node, lab)
    };
    // initdb of PostgreSQL 18 turns checksums on by itself.
    [server(Vec::new()), server(vec!["--data-checksums".to_owned()])]
}

#[test]
fn servers_of_the_users_are_compared_and_left_as_they_were() {
    let [(a, _lab_a), (b, _lab_b)] = servers();
    let places = [&a, &b].map(|node| node.endpoint().to_string());
    // Partitions with the same rows are the same data.
    let plain = "CREATE TABLE parts (id int); INSERT INTO parts SELECT generate_series(1, 50)";
    a.connect().unwrap().batch_execute(plain).unwrap();
    let partitioned = "CREATE TABLE parts (id int) PARTITION BY RANGE (id);
                       CREATE TABLE parts_1 PARTITION OF parts FOR VALUES FROM (1) TO (30);
                       CREATE TABLE parts_2 PARTITION OF parts FOR VALUES FROM (30) TO (60);
                       INSERT INTO parts SELECT generate_series(1, 50)";
    b.connect().unwrap().batch_execute(partitioned).unwrap();
    let before = [&a, &b].map(crate::target::dump);
    let desk = Desk::new();
    let both = ["--a-conninfo", &places[0], "--b-conninfo", &places[1]];
    let run = |more: &[&str]| desk.pgrig(&[&["compare"], &both[..], &SHORT, more].concat());

    // pgbench's tables in a schema of pgrig's, made twice and compared.
    let first = ["-S", "--json", "found.json", "--out", "one"];
    let longer = ["-c", "1", "-R", "300", "--max-time", "40s", "--precision", "20%"];
    let said = desk.pgrig(&[&["compare"], &both[..], &longer, &first].concat()).ended(0);
    assert!(said.err.contains("made twice from the same seed"), "{}", said.err);
    if a.installation().version().major < 18 {
        let doubt = "data_checksums is off on A and on on B";
        assert!(said.out.contains(doubt), "{}", said.out);
    }
    let json = std::fs::read_to_string(desk.path("found.json")).expect("the JSON file");
    let json: serde_json::Value = serde_json::from_str(&json).expect("JSON");
    let comparison = &json["comparison"];
    assert_eq!(comparison["data"], "loaded_twice");
    let side = &comparison["a"];
    assert!(side["server"].is_string() && side["bin"].is_null(), "{side}");
    let hit = |figure: &&serde_json::Value| figure["metric"] == "buffers_hit";
    let hit =
        json["pairs"][0]["figures"].as_array().unwrap().iter().find(hit).expect("buffers hit");
    assert!(hit["a"].as_f64().unwrap() > 1.0, "a select reads some buffers: {hit}");

    // A script's own data: random() is seeded, the clock is not.
    desk.write(
        "same.sql",
        "CREATE TABLE r AS SELECT random() AS x FROM generate_series(1, 100);\n",
    );
    desk.write("read.sql", "SELECT count(*), pg_sleep(0.01) FROM r;\n");
    run(&["--data", "same.sql", "-f", "read.sql"]).ended(0);
    desk.write("other.sql", "CREATE TABLE r AS SELECT clock_timestamp() AS x;\n");
    let said = run(&["--data", "other.sql", "-f", "read.sql"]).ended(1);
    assert!(said.err.contains("the data of A and B differ: table pgrig.r has"), "{}", said.err);
    assert!(said.err.contains("random() is seeded"), "{}", said.err);

    // Their own tables, as they are; a setting is the session's.
    desk.write("theirs.sql", "SELECT note FROM theirs WHERE id = 17;\nSELECT pg_sleep(0.01);\n");
    let theirs = ["--no-init", "-f", "theirs.sql", "--b-set", "enable_indexscan=off"];
    let more = [&theirs[..], &["--b-set", "enable_bitmapscan=off", "--out", "plans"]].concat();
    let said = run(&more).ended(0);
    assert!(said.err.contains("the same data, as they were"), "{}", said.err);
    assert!(said.out.contains("the plans differ: SELECT note FROM theirs"), "{}", said.out);
    assert!(said.out.contains("Seq Scan on theirs"), "{}", said.out);

    assert!(before == [&a, &b].map(crate::target::dump), "something of theirs has changed");

    // One server twice is no comparison, unless a session's settings differ.
    let twice = ["compare", "--a-conninfo", &places[0], "--b-conninfo", &places[0]];
    let said = desk.pgrig(&[&twice[..], &["-S"]].concat()).ended(1);
    assert!(said.err.contains("both sides are the same"), "{}", said.err);
    let differ = ["-S", "--b-set", "jit=off"];
    let said = desk.pgrig(&[&twice[..], &differ].concat()).ended(1);
    assert!(said.err.contains("A and B are the same database"), "{}", said.err);
    // It is one that is reached in two ways, as through a pooler.
    let Host::Unix(socket) = a.endpoint().host else { panic!("a Unix socket") };
    let other = Endpoint { host: Host::Unix(socket.join(".")), ..a.endpoint() }.to_string();
    let ways = ["compare", "--a-conninfo", &places[0], "--b-conninfo", &other, "--no-init"];
    let said = desk.pgrig(&[&ways[..], &longer, &["-f", "theirs.sql"]].concat()).ended(0);
    assert!(said.out.contains("Both sides were sessions of one server"), "{}", said.out);

    // A row of theirs that one side lacks is found, in partitions as well.
    let mut client = b.connect().unwrap();
    client.batch_execute("DELETE FROM parts WHERE id = 40").unwrap();
    let said = run(&theirs).ended(1);
    assert!(said.err.contains("table public.parts has 50 rows"), "{}", said.err);
    client.batch_execute("INSERT INTO parts VALUES (40)").unwrap();

    // Data of the user's that differ are refused.
    b.connect().unwrap().batch_execute("UPDATE theirs SET note = 'x' WHERE id = 3").unwrap();
    let said = run(&theirs).ended(1);
    assert!(said.err.contains("table public.theirs has 1000 rows"), "{}", said.err);
}

#[test]
fn one_cpu_is_a_doubt() {
    let desk = Desk::new();
    write_work(&desk);
    let output = std::process::Command::new("taskset")
        .args(["-c", "0", env!("CARGO_BIN_EXE_pgrig")])
        .args(ITSELF)
        .args(["--max-time", "24s"])
        .current_dir(desk.path(""))
        .output()
        .expect("taskset of util-linux");
    let said = crate::Said::of(&output).ended(0);
    assert!(said.out.contains("this machine has one CPU"), "{}", said.out);
}

#[test]
fn a_profile_shows_where_the_time_goes() {
    let may_sample = Command::new("perf")
        .args(["record", "--quiet", "--event", "cpu-clock", "--output", "/dev/null", "true"])
        .stderr(Stdio::null())
        .status();
    if !may_sample.is_ok_and(|status| status.success()) {
        return testing::skip::because("needs perf, and the right to sample");
    }
    let desk = Desk::new();
    let work = |what: &str| {
        format!(
            "CREATE OR REPLACE FUNCTION work() RETURNS bigint LANGUAGE sql AS \
             $$ SELECT sum(length({what})) FROM generate_series(1, 300) g $$;\n"
        )
    };
    desk.write("work.sql", "SELECT work();\n");
    desk.write("data.sql", &work("g::text"));
    desk.write("md5.sql", &work("md5(g::text)"));
    let sides =
        ["compare", "--data", "data.sql", "--b-sql", "md5.sql", "-f", "work.sql", "-c", "2"];
    let more = ["--max-time", "40s", "--profile", "--out", "found"];
    let said = desk.pgrig(&[&sides[..], &more].concat()).ended(0);
    let read = |name: &str| {
        let text = std::fs::read_to_string(desk.path("found").join(name));
        text.unwrap_or_else(|error| panic!("{name}: {error}: {}", said.out))
    };
    let (a, b) = (read("pairs/01-B-A-load-a.folded"), read("pairs/01-B-A-load-b.folded"));
    assert!(b.contains("md5_text") && !a.contains("md5_text"), "{b}");
    let page = read("report.html");
    assert!(page.contains("md5_text") && page.contains("red: more than on A"));
    // A record is drawn again from its files.
    desk.pgrig(&["report", "found"]).ended(0);
    assert!(read("report.html").contains("md5_text"));
}

#[test]
fn a_profile_without_perf_is_refused_before_anything_is_built() {
    let desk = Desk::new();
    let mut command = desk.command(&["compare", "--self", "-S", "--profile"]);
    let said = Said::of(&command.env("PATH", "/nowhere").output().unwrap()).ended(3);
    assert!(said.err.contains("sampling the servers for --profile: perf cannot"), "{}", said.err);
    assert!(said.err.contains("install perf (Debian: linux-perf)"), "{}", said.err);
    assert!(!said.err.contains("building"), "{}", said.err);
}
