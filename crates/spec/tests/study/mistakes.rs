//! What is wrong is pointed at, and tables of a study's own.

use super::*;

#[test]
fn everything_that_is_wrong_is_pointed_at() {
    let check = |from: &str, to: &str, expected: &str| {
        assert!(OWN.contains(from), "{from}");
        assert_eq!(problems(&OWN.replacen(from, to, 1)).trim_end(), expected);
    };
    check(
        "question =",
        "qestion =",
        "`` a study has no question\n\
         `qestion` a study has no field \"qestion\" (did you mean \"question\"?)",
    );
    check(
        "script = \"orders.sql\"",
        "script = \"order.sql\"\nclints = 8",
        "`\"order.sql\"` unknown script file \"order.sql\" (did you mean \"orders.sql\"?)\n\
         `clints` a workload has no field \"clints\" (did you mean \"clients\"?)",
    );
    check(
        "run  = [\"orders\"]",
        "run = [\"order\"]",
        "`orders` no scenario runs workload \"orders\"\n\
         `\"order\"` unknown workload \"order\" (did you mean \"orders\"?)",
    );
    check(
        "settings = { synchronous_commit = \"on\" }",
        "settings = { synchronous_commit = \"on\", Synchronous_Commit = \"off\" }",
        "`Synchronous_Commit` synchronous_commit and Synchronous_Commit are one setting",
    );
    check("[8, 64]", "[]", "`[]` axis \"clients\" has no values");
    check("[8, 64]", "[8, 8]", "`8` axis \"clients\" has 8 twice");
    check("[8, 64]", "[0, 64]", "`0` clients must be an integer from 1 to 524288");
    check(
        "clients = [8, 64]",
        "client = [8, 64]",
        "`client` axis \"client\" changes nothing (write {client} where its value belongs)",
    );
    check(
        "rows   = { smoke = 10_000, quick = 1_000_000, full = 50_000_000 }",
        "rows = { smoke = 1, full = 2 }",
        "`{ smoke = 1, full = 2 }` no value for profile quick (add quick = …)",
    );
    check(
        "expect = \">= 2.0\"",
        "expect = \"about 2\"",
        "`\"about 2\"` \"about 2\" is not an expectation \
         (write \">= 0.9\", \"< 1\", \"== 0\", \"0.95 .. 1.05\" or \"1.14 ± 5 %\")",
    );
    check(
        "synchronous_commit = \"on\"",
        "a = \"{b}\"",
        "`\"{b}\"` unknown axis \"b\" (there is clients)",
    );
    check(
        "[scenarios.load]",
        "[scenarios.load]\nwindow = 20\ntimeline = [{ at = \"99s\", kill = \"primery\" }, {}]",
        "`20` window must be a duration, not an integer \
         (write a number with a unit: 500ms, 20s, 2min, 1h)\n\
         `\"99s\"` at: the window closes after 10 s (lengthen the window or move the action; every profile may have its own: { smoke = \"300ms\", quick = \"5s\" })\n\
         `\"primery\"` unknown node \"primery\" (did you mean \"primary\"?)\n\
         `{}` an action has no at\n\
         `{}` an action without a verb \
         (one of sql, checkpoint, backup, restore_point, step_clock, hold_snapshot, release_snapshot, stop, kill, kill_backend, unthrottle, pause, continue, start, run, rebalance, rejoin, throttle, promote, subscribe, power_cut, slow_disk, fail_disk, fail_requests, cut, \
         delay, reset, heal)",
    );
    check(
        "[scenarios.load]",
        "[scenarios.load]\nchecks = [\"checksums\", \"restore\", { counts = \"primary\" }]",
        "`[\"checksums\", \"restore\", { counts = \"primary\" }]` node primary has no checksums \
         (give it checksums = true)\n\
         `[\"checksums\", \"restore\", { counts = \"primary\" }]` node primary has no archive \
         (give it archive = true)\n\
         `{ counts = \"primary\" }` one check at a time \
         (write \"ledger\" or { ledger = NODE } or { history = \"serializable\" } or \
         \"amcheck\" or { amcheck = NODE } or { amcheck = \"every server now\" } or \"checksums\" or { checksums = NODE } or \
         \"restore\" or { restore = NODE } or { restore = NODE, to = [\"time\", \"lsn\", \"name\", \"xid\", \"immediate\", \"latest\"], timeline = \"latest\" } or \
         { explore = NODE, states = 500, second_cuts = 10, complaints = \"SELECT …\", followed = { TABLE = \"SELECT …\" } } or \
         { explain = \"SELECT …\", as = \"NAME\", on = NODE } or \
         { sql = \"SELECT …\", as = \"NAME\", expect = \"0\", on = NODE } or { same_rows = [NODE, NODE], tables = [\"stock\"], extra = NODE } or { same_objects = [NODE, NODE] })",
    );
    check(
        "over = {",
        "points = [{ at = { client = 8 }, rounds = 0 }]\nover = {",
        "`client` unknown axis \"client\" (did you mean \"clients\"?)\n\
         `0` rounds must be an integer from 1 to 10000",
    );
    check(
        "over = {",
        "points = [{ at = { clients = [8, 9] }, checks = 1 }, { rounds = 2 }]\nover = {",
        "`9` axis \"clients\" has no 9 (it has 8, 64)\n\
         `checks` an entry of points has no field \"checks\" \
         (there is profiles, at, warmup_max, warmup, window, rounds)\n\
         `{ rounds = 2 }` an entry of points has no at",
    );
    check(
        "expect = \">= 2.0\"",
        "expect = \">= 2.0\"\nwithin = 3",
        "`3` within belongs to kind = \"control\" \
         (it says after how many trials a control that does not hold stops the study)",
    );
}

/// A pooler logs in for its clients, and only prepared statements may need another protocol.
#[test]
fn a_login_or_a_fallback_that_cannot_work_is_pointed_at() {
    const POOLED: &str = "[topologies.pooled]\nnodes.primary = {}\n\
                          nodes.front = { kind = \"pgbouncer\", to = \"primary\" }\n[variants.safe]";
    let check = |fields: &str, expected: Option<&str>| {
        let study = OWN.replacen("[variants.safe]", POOLED, 1);
        let with = format!("script = \"orders.sql\"\n{fields}");
        let study = study.replacen("script = \"orders.sql\"", &with, 1);
        let found = problems(&study);
        match expected {
            Some(expected) => assert!(found.contains(expected), "{fields}: {found}"),
            None => assert_eq!(found, "", "{fields}"),
        }
    };
    check("user = \"clerk\"\ndatabase = \"shop\"", None);
    check("user = \"\"", Some("user is an empty name"));
    check("to = \"front\"\nuser = \"clerk\"", Some("clients of front cannot log in with a user"));
    check("fallback = \"extended\"", None);
    check("protocol = \"simple\"\nfallback = \"extended\"", Some("fallback is for protocol"));
    check("fallback = \"prepared\"", Some("fallback"));
}

/// A table below the study of one's own.
const TABLE: &str = r#"
[[tables]]
title = "What a setting buys"
columns = [{ says = "gain", value = "gain" }, { says = "failed", count = "failed > 0" }]
list = "failed > 0"
[[tables.rows]]
says = "off"
trials = "fast/*"
values = { gain = "tps('fast/load', 'clients=8') / tps('safe/load', 'clients=8')" }
"#;

#[test]
fn a_table_is_made_of_what_the_study_runs() {
    let study = parse(&format!("{OWN}{TABLE}"));
    let table = &study.tables[0];
    assert_eq!(table.rows[0].points, [2, 3]);
    assert_eq!(table.rows[0].values["gain"].references().len(), 2);
    assert!(table.listed.is_some() && table.columns.len() == 2);

    let check = |from: &str, to: &str, expected: &str| {
        assert!(TABLE.contains(from), "{from}");
        let study = format!("{OWN}{}", TABLE.replacen(from, to, 1));
        assert_eq!(problems(&study).trim_end(), expected);
    };
    check("fast/*", "slow/*", "`\"slow/*\"` no trial of this profile fits \"slow/*\"");
    check("{ gain =", "{ again =", "`again` no column shows the value \"again\"");
    check(
        "count = \"failed > 0\"",
        "count = \"failled > 0\"",
        "`failled` unknown metric \"failled\" (did you mean \"failed\"?)",
    );
    check(
        "value = \"gain\"",
        "value = \"gain\", max = \"tps\"",
        "`{ says = \"gain\", value = \"gain\", max = \"tps\" }` a column has one kind of figure \
         (one of value, fact, trials, count, rate, p50, max, sum)\n\
         `gain` no column shows the value \"gain\"",
    );
    check(
        "count = \"failed > 0\"",
        "count = \"failed > 0\", of = \"order\"",
        "`\"order\"` unknown part of fast/load clients=8: \"order\" (did you mean \"orders\"?)\n\
         `\"order\"` unknown part of fast/load clients=64: \"order\" (did you mean \"orders\"?)",
    );
    check(
        "list = \"failed > 0\"",
        "each = \"slow/*\"",
        "`\"slow/*\"` no trial of this profile fits \"slow/*\"",
    );
}

#[test]
fn more_than_five_headlines_are_a_mistake() {
    let claim = "[[claims]]\nvalue = \"tps('fast/load', 'clients=8')\"\nexpect = \"> 0\"\n\
                 headline = true\n";
    let check = |count: usize, expected: &str| {
        let study = OWN.replacen("[[claims]]", &(claim.repeat(count) + "[[claims]]"), 1);
        assert_eq!(problems(&study).trim_end(), expected, "{count}");
    };
    check(5, "");
    check(
        6,
        "`[[claims]]` more than 5 claims of this profile are headlines (mark the questions that the \
         study is asked; the others keep their own interval)",
    );
}

#[test]
fn an_expression_that_fits_no_stack_is_a_mistake() {
    let deep = "-".repeat(200_000);
    let table = TABLE.replace("\"failed > 0\" }]", &format!("\"{deep}1 > failed\" }}]"));
    assert_ne!(table, TABLE);
    let said = problems(&format!("{OWN}{table}"));
    assert!(
        said.contains("the expression has more than 2000 bytes"),
        "{}",
        &said[said.len() - 200..]
    );
}

/// Billions of combinations are counted, not made.
#[test]
fn too_many_axes_are_a_mistake() {
    let values = (0..20).map(|n| n.to_string()).collect::<Vec<_>>().join(", ");
    let axes: String = (0..8).map(|n| format!("a{n} = [{values}]\n")).collect();
    let said = problems(&format!(
        "{OWN}\n[scenarios.many]\nrun = [\"orders\"]\n[scenarios.many.over]\n{axes}"
    ));
    assert!(said.contains("more than 10000 points"), "{said}");
}

#[test]
fn thousands_of_mistakes_are_as_many_as_a_person_reads() {
    let study = format!("{OWN}\nx = {}\n", "-".repeat(200_000));
    let found = Study::parse(&folder(&study), StudyProfile::Quick).unwrap_err();
    assert_eq!(found.len(), spec::PROBLEMS_MAX);
}

#[test]
fn a_study_without_published_figures_has_no_profile_published() {
    let mut own = folder(OWN);
    let found = Study::parse(&own, StudyProfile::Published).unwrap_err();
    assert_eq!(found[0].message, "the study has no profile published: it rests on no source");
    assert!(StudyProfile::of(&own).eq([
        StudyProfile::Smoke,
        StudyProfile::Quick,
        StudyProfile::Full
    ]));
    let header = "metric,variant,scenario,scope,axes,value,unit,source,note\n";
    own.files.insert(StudyFolder::PUBLISHED.to_owned(), header.to_owned());
    let study = Study::parse(&own, StudyProfile::Published).unwrap();
    // A value without one for published is that of full.
    assert_eq!(study.points[0].data.variables["rows"], "50000000");
}

#[test]
fn a_file_of_rows_lies_in_the_folder() {
    let study = OWN.to_owned();
    let parse = |files: &[(&str, &str)]| {
        let mut own = folder(&study);
        own.files.extend(files.iter().map(|(name, text)| ((*name).to_owned(), (*text).to_owned())));
        Study::parse(&own, StudyProfile::Quick)
    };
    let draws = "\\setrow a query ./values/../q.sql\n\\setrow b file v.csv\nSELECT :a, :b;\n";
    let found = parse(&[("orders.sql", draws), ("q.sql", "SELECT 1")]).unwrap_err();
    assert_eq!(
        found[0].message,
        "orders.sql:2: \\setrow draws from \"v.csv\", which is no file of this folder"
    );
    let files = [("orders.sql", draws), ("q.sql", "SELECT 1"), ("v.csv", "x\n1\n")];
    let study = parse(&files).unwrap();
    let rows = &study.points[0].workloads[0].scripts[0].rows;
    let names: Vec<&str> = rows.iter().map(|(_, text)| text.name.as_str()).collect();
    assert_eq!(names, ["q.sql", "v.csv"]);
}
