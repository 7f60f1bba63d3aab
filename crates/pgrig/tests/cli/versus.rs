//! `pgrig compare --study`: two variants of a study side by side.

use crate::Desk;

/// A study whose workload sleeps for as many milliseconds as a setting of the server says.
fn write_study(desk: &Desk) {
    std::fs::create_dir(desk.path("mine")).expect("a folder");
    desk.write(
        "mine/study.toml",
        r#"
question = "Does more work take longer?"
[data]
script = "data.sql"
[topologies.pair]
nodes.primary = { sync = "FIRST 1", listen = "tcp" }
nodes.standby = { of = "primary", sync = 1 }
[variants.light]
settings = { "work.ms" = "3" }
[variants.heavy]
topology = "pair"
settings = { "work.ms" = "12" }
[workloads.work]
script = "work.sql"
protocol = "prepared"
[workloads.limited]
script = "work.sql"
rate = 10
latency_limit = "5ms"
[scenarios.reads]
run = ["work"]
over = { clients = [2, 4] }
[scenarios.slow]
run = ["limited"]
"#,
    );
    desk.write("mine/work.sql", "SELECT work();\n");
    desk.write(
        "mine/data.sql",
        "CREATE FUNCTION work() RETURNS void LANGUAGE sql AS
             $$ SELECT pg_sleep(current_setting('work.ms')::int / 1e3) $$;\n",
    );
}

const READS: [&str; 7] = ["compare", "--study", "mine", "--scenario", "reads", "--at", "clients=2"];

#[test]
fn a_variant_is_compared_with_another() {
    let desk = Desk::new();
    write_study(&desk);
    desk.write("seen.sql", "DO 'BEGIN ASSERT current_setting(''work.ms'') = ''3''; END';\n");
    let check = |sides: &[&str], time: &str, code: i32, verdict: &str, variants: [&str; 2]| {
        // It ends as soon as the throughput is decided.
        let rest = ["--threshold", "30%", "--gate", "throughput", "--max-time", time];
        let said = desk.pgrig(&[&READS[..], sides, &rest, &["--json", "found.json"]].concat());
        let said = said.ended(code);
        assert!(said.out.contains(&format!("\n{verdict}")), "{sides:?}: {}", said.out);
        let json = std::fs::read_to_string(desk.path("found.json")).expect("the JSON file");
        let json: serde_json::Value = serde_json::from_str(&json).expect("JSON");
        let (found, pairs) = (&json["comparison"], &json["pairs"][0]);
        assert_eq!([&found["a"]["variant"], &found["b"]["variant"]], variants);
        assert_eq!((&pairs["scenario"], &pairs["clients"]), (&"reads".into(), &2.into()));
        assert_eq!(found["point"]["axes"]["clients"], "2");
    };
    // By the name of the option that speaks of topologies, too.
    let heavier = ["--a-topology", "light", "--b-variant", "heavy"];
    check(
        &heavier,
        "2min",
        4,
        "B with variant heavy is slower than A with variant light: ",
        ["light", "heavy"],
    );
    // The script has seen B's setting. No time is left for an interval.
    let lighter = ["--a-variant", "heavy", "--b-set", "work.ms=3", "--b-sql", "seen.sql"];
    check(&lighter, "16s", 5, "Cannot tell", ["heavy", "heavy"]);
}

#[test]
fn what_a_study_does_not_say_clearly_is_asked_for() {
    let desk = Desk::new();
    write_study(&desk);
    let check = |arguments: &[&str], code: i32, message: &str, hint: &str| {
        let said = desk.pgrig(&[&["compare"], arguments].concat()).ended(code);
        assert!(said.err.contains(message), "{arguments:?}: {}", said.err);
        assert!(said.err.contains(hint), "{arguments:?}: {}", said.err);
        assert_eq!(said.out, "");
    };
    let with = |more: &[&'static str]| [&READS[..][1..], more].concat();
    check(&["--study", "yours"], 1, "no study \"yours\"", "replication");
    check(&["--study", "mine"], 1, "several scenarios", "--scenario: reads, slow");
    check(&with(&[]), 1, "several variants", "--a-variant: light, heavy");
    check(&with(&["--a-variant", "lite"]), 1, "no variant \"lite\"", "there is light, heavy");
    check(&with(&["--a-variant", "light"]), 1, "both sides are the same", "--b-set");
    let own = ["--a-variant", "light", "--b-variant", "heavy", "--self"];
    check(&with(&own), 1, "--self compares", "a variant of its own");
    check(&with(&["-c", "4"]), 1, "and --client=4 cannot be given as well", "--scenario NAME");
    check(&with(&["--data", "x.sql"]), 1, "--data", "cannot be used with");
    check(&["--scenario", "reads", "--self", "-S"], 1, "--study", "required");
    let slow = ["--study", "mine", "--scenario", "slow", "--a-variant", "light", "--self"];
    check(&slow, 1, "light/slow has a rate and a latency limit", "compare whole trials");
    let huge = ["--a-variant", "light", "--self", "--set", "shared_buffers=100TB"];
    check(&with(&huge), 3, "of memory, and", "shared_buffers");
    let pages = ["--a-variant", "light", "--self", "--set", "huge_pages=on"];
    let pages = [&pages[..], &["--set", "shared_buffers=512MB"]].concat();
    check(&with(&pages), 3, "for huge_pages = on", " vm.nr_hugepages=");
    let broken = ["--a-variant", "light", "--b-sql", "broken.sql"];
    check(&with(&broken), 1, "reading broken.sql", "No such file");
    desk.write("broken.sql", "CREATE TABEL t ();\n");
    check(&with(&broken), 1, "filling side B: broken.sql", "TABEL");
}
