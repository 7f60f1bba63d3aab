//! What a study.toml becomes, and what is said when it cannot become anything.

use std::collections::BTreeMap;

use proptest::prelude::*;
use spec::{About, Folder, Pace, Problem, Profile, Protocol, Study, Warmup};

/// A folder with two scripts and this study.toml.
fn folder(study: &str) -> Folder {
    let files = [
        ("study.toml", study),
        ("orders.sql", "INSERT INTO orders VALUES (:client_id);\n"),
        ("init.sql", "CREATE TABLE orders (client int);\n"),
    ];
    let files = files.map(|(name, text)| (name.to_owned(), text.to_owned()));
    Folder { name: "mine".to_owned(), files: BTreeMap::from(files) }
}

fn parse(study: &str) -> Study {
    parse_in(study, Profile::Quick)
}

fn parse_in(study: &str, profile: Profile) -> Study {
    match Study::parse(&folder(study), profile) {
        Ok(study) => study,
        Err(problems) => panic!("{}", render(study, &problems)),
    }
}

fn render(study: &str, problems: &[Problem]) -> String {
    let lines = problems.iter().map(|problem| {
        let at = &study[problem.span.clone()];
        let at = at.lines().next().unwrap_or_default();
        let hint = problem.hint.as_deref().map(|hint| format!(" ({hint})")).unwrap_or_default();
        format!("`{at}` {}{hint}\n", problem.message)
    });
    lines.collect()
}

/// The problems of a study, one a line, each with the text that it points at.
fn problems(study: &str) -> String {
    match Study::parse(&folder(study), Profile::Quick) {
        Ok(_) => String::new(),
        Err(problems) => render(study, &problems),
    }
}

/// The study of one's own that the design shows.
const OWN: &str = r#"
question = "Does synchronous_commit=off pay off on our storage?"

[data]
script = "init.sql"
rows   = { smoke = 10_000, quick = 1_000_000, full = 50_000_000 }

[variants.safe]
settings = { synchronous_commit = "on" }

[variants.fast]
settings = { synchronous_commit = "off" }

[workloads.orders]
script = "orders.sql"

[scenarios.load]
run  = ["orders"]
over = { clients = [8, 64] }

[[claims]]
says   = "off is at least twice as fast with 8 clients"
value  = "tps('fast/load/orders', 'clients=8') / tps('safe/load/orders', 'clients=8')"
expect = ">= 2.0"
"#;

#[test]
fn a_study_of_ones_own_needs_only_what_differs() {
    let study = parse(OWN);
    let points: Vec<String> = study.points.iter().map(|point| point.name.to_string()).collect();
    assert_eq!(
        points,
        [
            "safe/load clients=8",
            "safe/load clients=64",
            "fast/load clients=8",
            "fast/load clients=64",
            "safe-again/load clients=8"
        ]
    );
    let point = &study.points[3];
    assert_eq!(point.workloads[0].clients, 64);
    assert_eq!(point.workloads[0].pace, Pace::Closed);
    assert_eq!(point.workloads[0].protocol, Protocol::Prepared);
    assert_eq!(point.workloads[0].to, ["primary"]);
    assert_eq!(point.topology.nodes[0].settings["synchronous_commit"], "off");
    assert_eq!(point.data.variables["rows"], "1000000");
    assert_eq!(point.rounds, 6);
    assert_eq!(point.window_ms, 10_000);
    let About::Value { value, expect } = &study.claims[0].about else { panic!() };
    assert_eq!(*expect, stats::Expectation::AtLeast(2.0));
    let rows = [[30.0, 10.0], [8.0, 0.0]];
    let values = value.evaluate(rows.iter().map(|row| row.as_slice()));
    assert_eq!(values[0], 3.0);
    assert!(!values[1].is_finite());
    assert_eq!(value.references()[0].point, 2);
    assert_eq!(value.references()[0].scope, "orders");
}

#[test]
fn what_is_compared_is_measured_twice_at_its_cheapest_point() {
    let study = parse(OWN);
    let twin = study.twin.expect("throughput is compared");
    let [original, copy] = [twin.of, twin.point].map(|point| &study.points[point]);
    assert_eq!(original.name.to_string(), "safe/load clients=8");
    assert!(copy.has_own_servers && !original.has_own_servers);
    assert_eq!((&copy.workloads, &copy.topology), (&original.workloads, &original.topology));
    assert_eq!((copy.rounds, study.variants[1].name.as_str()), (6, "safe-again"));
    assert_eq!(study.variants[1].says, "safe, measured again (A/A)");
    let check = |from: &str, to: &str, expected: Option<&str>| {
        assert!(OWN.contains(from), "{from}");
        let study = parse(&OWN.replace(from, to));
        let name = study.twin.map(|twin| study.points[twin.of].name.to_string());
        assert_eq!(name.as_deref(), expected, "{to}");
    };
    check("tps('fast/load/orders', 'clients=8') /", "1 /", None);
    check("tps(", "latency_p99_ms(", None);
    check("run  = [\"orders\"]", "run = [\"orders\"]\nsteady = false", None);
    check("script = \"orders.sql\"", "script = \"orders.sql\"\nrate = 9", None);
    check("[scenarios.load]", "[scenarios.load]\nrounds = 1", None);
    check("clients=8", "clients=64", Some("safe/load clients=64"));
    // Counting takes no time; what stops a server does.
    let checks = |list: &str| format!("[scenarios.load]\nchecks = [{list}]");
    check("[scenarios.load]", &checks("\"counts\""), Some("safe/load clients=8"));
    check("[scenarios.load]", &checks("\"counts\", \"amcheck\""), None);
    assert_eq!(parse_in(OWN, Profile::Smoke).twin, None);
    // Where points of one variant are compared, the copy shares their servers.
    let within = OWN.replace("fast/load/orders', 'clients=8'", "safe/load/orders', 'clients=64'");
    let study = parse(&within);
    assert!(!study.points[study.twin.expect("throughput is compared").point].has_own_servers);
}

#[test]
fn a_claim_that_no_profile_can_judge_is_pointed_at() {
    let check = |from: &str, to: &str, expected: Option<&str>| {
        assert!(OWN.contains(from), "{from}");
        let text = OWN.replace(from, to);
        let found = spec::never_judged(&folder(&text));
        assert_eq!(found.first().map(|problem| problem.message.as_str()), expected, "{to}");
        let place = found.first().map(|problem| &text[problem.span.clone()] == "[[claims]]");
        assert_ne!(place, Some(false), "{found:?}");
    };
    let few = |rounds: &str| {
        format!("no profile can judge this claim: it has {rounds} at most, and a verdict takes 6")
    };
    check("[scenarios.load]", "[scenarios.load]", None);
    check("[scenarios.load]", "[scenarios.load]\nrounds = 5", Some(&few("5 rounds")));
    let sizes = "[scenarios.load]\nrounds = { smoke = 1, quick = 3, full = 6 }";
    check("[scenarios.load]", sizes, None);
    check("[scenarios.load]", "[scenarios.load]\nrounds = 1", Some(&few("1 round")));
    check("[[claims]]", "[[claims]]\nprofiles = [\"smoke\"]", None);
    // Two figures by themselves cannot both stand the correction with six rounds.
    let alone = |says: &str, variant: &str| {
        format!(
            "[[claims]]\nsays = \"{says}\"\nvalue = \"tps('{variant}/load', 'clients=8')\"\n\
             expect = \">= 100\"\n"
        )
    };
    let (one, two) = (alone("one", "fast"), alone("one", "fast") + &alone("two", "safe"));
    let found = |rounds: u32, claims: &str| {
        let rounds = format!("[scenarios.load]\nrounds = {rounds}");
        let text = OWN.replacen("[scenarios.load]", &rounds, 1);
        spec::never_judged(&folder(&text.replacen("[[claims]]", &format!("{claims}[[claims]]"), 1)))
    };
    assert_eq!((found(6, &one), found(7, &two)), (vec![], vec![]));
    let crowded = found(6, &two);
    let message = "no profile can judge this claim among the study's 3 claims about values: it is \
                   no quotient of two figures, the p-value of a median over 6 rounds is 1/32 at \
                   best, and that does not stand Holm's correction";
    assert_eq!((crowded.len(), crowded[0].message.as_str()), (2, message));
    assert!(crowded[0].hint.as_ref().unwrap().contains("quick = 7"), "{crowded:?}");
    // A value that is another one in each profile is one claim.
    let value = "tps('fast/load/orders', 'clients=8') / tps('safe/load/orders', 'clients=8')";
    let by_profile = format!("{{ smoke = \"{value}\", quick = \"{value}\", full = \"{value}\" }}");
    check(&format!("\"{value}\""), &by_profile, None);
}

#[test]
fn a_quotient_of_two_figures_is_a_ratio_and_nothing_else_is() {
    let check = |value: &str, expected: Option<(usize, usize)>| {
        let old = "tps('fast/load/orders', 'clients=8') / tps('safe/load/orders', 'clients=8')";
        let study = parse(&OWN.replace(old, value));
        let About::Value { value, .. } = &study.claims[0].about else { panic!() };
        assert_eq!(value.ratio(), expected, "{}", value.source());
    };
    let (a, b) = ("tps('fast/load/orders', 'clients=8')", "tps('safe/load', 'clients=64')");
    check(&format!("{a} / {b}"), Some((0, 1)));
    check(&format!("{a}/{b} "), Some((0, 1)));
    check("tps( 'fast/load' ,'clients=8' ) / tps_cv('fast/load', 'clients=8')", Some((0, 1)));
    check(&format!("{a} / {a}"), Some((0, 0)));
    check(a, None);
    check(&format!("2 * {a} / {b}"), None);
    check(&format!("{a} / {b} - 1"), None);
    check(&format!("({a} + {b}) / {b}"), None);
    check(&format!("{a} / {b} / {b}"), None);
}

#[test]
fn some_points_differ_from_the_rest_of_their_scenario() {
    let check = |points: &str, profile, expected: [(u32, Warmup); 2]| {
        let own = OWN.replace("over = {", &format!("points = [{points}]\nover = {{"));
        let seen = parse_in(&own, profile).points.into_iter().map(|p| (p.rounds, p.warmup));
        assert_eq!(seen.take(2).collect::<Vec<_>>(), expected, "{points}");
    };
    let rest = (1, Warmup::Fixed { ms: 500 });
    let more = (3, Warmup::Fixed { ms: 5_000 });
    let point = "{ at = { clients = 64 }, rounds = 3, warmup = \"5s\" }";
    check("", Profile::Smoke, [rest, rest]);
    check(point, Profile::Smoke, [rest, more]);
    check("{ at = { clients = [8, 64] }, rounds = 2 }", Profile::Smoke, [(2, rest.1); 2]);
    check(
        &format!("{{ at = {{ clients = 64 }}, rounds = 2 }}, {point}"),
        Profile::Smoke,
        [rest, more],
    );
    let elsewhere = "{ at = { clients = 4 }, rounds = 3, profiles = [\"quick\"] }";
    check(elsewhere, Profile::Smoke, [rest, rest]);
}

#[test]
fn every_profile_has_its_own_size() {
    assert_eq!(parse_in(OWN, Profile::Smoke).points[0].rounds, 1);
    assert_eq!(parse_in(OWN, Profile::Smoke).points[0].warmup, Warmup::Fixed { ms: 500 });
    assert_eq!(parse_in(OWN, Profile::Full).points[0].data.variables["rows"], "50000000");
}

/// The shape that later studies have, as the design sketches it, less what is not built yet.
const SHAPES: &str = r#"
question = "?"
rounds = { smoke = 1, quick = 3, full = 6 }
seed = 7
[settings]
shared_buffers = { smoke = "32MB", quick = "256MB", full = "2GB" }
autovacuum = true
[topologies.one.nodes]
primary = { settings = { work_mem = "4MB", wal_level = "{level}" }, extensions = ["pg_prewarm"] }
[topologies.two.nodes]
primary = {}
other = "postgres"
[variants.plain]
topology = "one"
[variants.both]
topology = "two"
settings = { work_mem = "8MB" }
override = { login = { protocol = "simple", to = "other" } }
[workloads.login]
script = [{ file = "orders.sql", weight = 3, syntax = "9.x" }]
builtin = { name = "select-only", weight = 1 }
session = { synchronous_commit = "{commit}" }
protocol = "extended"
[scenarios.composite]
run = [{ workload = "login", commit = "on" }, { workload = "login", commit = "local", rate = 50 }]
over = { level = ["replica", "logical"], clients = [4] }
before = ["CHECKPOINT", "init.sql", { on = "primary", sql = "VACUUM FREEZE" }]
warmup = "auto"
warmup_max = "6s"
window = "40s"
generators = 2
timeline = [
  { at = "10s", kill = "primary" },
  { at = "random(15s,20s)", start = "primary" },
  { at = "30s", sql = "SELECT pg_switch_wal()" },
]
checks = ["counts"]
unfit = "refuse"
on_loss = "reconnect"
[scenarios.only_full]
run = ["login"]
over = { commit = ["on"], level = ["replica"] }
profiles = ["full"]
[[claims]]
says = "counts agree"
every = "count_difference == 0 and failed < 10"
kind = "invariant"
trials = "both/*"
[[claims]]
value = "min(latency_p99_ms('both/composite/login-on', 'level=replica'), 5) / log(4)"
expect = "0.5 .. 2"
published = 0.927
[[claims]]
value = "tps('plain/only_full')"
expect = "> 0"
profiles = ["full"]
"#;

#[test]
fn the_shapes_of_the_later_studies_are_read() {
    let study = parse(SHAPES);
    assert_eq!(study.points.len(), 4);
    let point = &study.points[2];
    assert_eq!(point.name.to_string(), "both/composite level=replica,clients=4");
    assert_eq!(point.rounds, 3);
    assert_eq!(point.warmup, Warmup::Auto { min_ms: 2_000, max_ms: 6_000 });
    let names: Vec<&str> = point.workloads.iter().map(|w| w.name.as_str()).collect();
    assert_eq!(names, ["login-on", "login-local-50"]);
    assert_eq!(point.workloads[0].session["synchronous_commit"], "on");
    assert_eq!(point.workloads[0].protocol, Protocol::Simple);
    assert_eq!(point.workloads[0].to, ["other"]);
    assert_eq!(point.workloads[1].pace, Pace::Poisson(50.0));
    assert_eq!(point.clients(), 8);
    assert_eq!(point.before[1].sql, "CREATE TABLE orders (client int);\n");
    let one = &study.points[1].topology.nodes[0];
    assert_eq!(one.settings["wal_level"], "logical");
    assert_eq!(one.settings["shared_buffers"], "256MB");
    assert_eq!(one.settings["autovacuum"], "on");
    assert_eq!(point.topology.nodes[1].settings["work_mem"], "8MB");
    assert_eq!(study.claims.len(), 2);
    let About::Every { condition, points, .. } = &study.claims[0].about else { panic!() };
    assert_eq!(points, &[2, 3]);
    assert!(condition.is_true(&[0.0, 9.0]));
    assert!(!condition.is_true(&[1.0, 9.0]));
    assert_eq!(parse_in(SHAPES, Profile::Full).points.len(), 6);
}

#[test]
fn a_plan_runs_every_point_once_a_round_in_an_order_that_its_seed_decides() {
    let study = parse(SHAPES);
    let plan = study.trials(None);
    assert_eq!(plan.len(), 12);
    for round in 1..=3 {
        let mut points: Vec<usize> =
            plan.iter().filter(|t| t.round == round).map(|t| t.point).collect();
        points.sort_unstable();
        assert_eq!(points, [0, 1, 2, 3]);
    }
    assert!(plan.iter().enumerate().all(|(i, trial)| trial.number == i + 1));
    assert!(plan.iter().all(|trial| (15_000..=20_000).contains(&trial.at_ms[1])));
    assert_eq!(plan, study.trials(None));
    assert_ne!(plan, study.clone().with_seed(8).trials(None));
    assert_eq!(study.trials(Some("plain/*level=logical*")).len(), 3);
    let seeds = |round| plan.iter().filter(move |t| t.round == round).map(|t| t.seed);
    assert!(seeds(1).all(|seed| seed == plan[0].seed));
    assert_eq!(study.with_rounds(2).trials(None).len(), 8);
}

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
         `\"99s\"` at: the window closes after 10 s (lengthen the window or move the action)\n\
         `\"primery\"` unknown node \"primery\" (did you mean \"primary\"?)\n\
         `{}` an action has no at\n\
         `{}` an action without a verb \
         (one of sql, checkpoint, stop, kill, pause, continue, start, rebalance, promote, power_cut, cut, \
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
         (write { ledger = \"NODE\" } or { amcheck = \"NODE\" } or { checksums = \"NODE\" } or \
         { restore = \"NODE\" } or { explain = \"QUERY\", as = \"NAME\" })",
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
         (one of value, fact, trials, count, rate, p50, max)\n\
         `gain` no column shows the value \"gain\"",
    );
}

/// Servers that follow one another, what stands in front of them, and what breaks them.
const SYNC: &str = r#"
question = "?"
[settings]
work_mem = "1MB"
[topologies.C]
nodes.primary = { sync = "ANY 1", disk = { cut = "block", size = "1GB", sector = 4096 } }
nodes.standby1 = { of = "primary", sync = 2 }
nodes.standby2 = { of = "primary", sync = 1 }
nodes.distant = { of = "standby1" }
nodes.front = { kind = "pgbouncer", to = "primary", pool = 16, mode = "session", listen = "tcp", clients = 64, settings = { query_wait_timeout = 5 } }
nodes.watcher = { kind = "guard", to = "primary", grace = "3s" }
nodes.shard = { count = "{n}", throttle = { write_iops = 200, write_bytes = "4MB", read_bytes = "32kB" } }
nodes.many = { kind = "plproxy", to = "shard", buckets = 8, partitions = 5 }
nodes.door = { kind = "pgbouncer", to = "shard", count = "{n}", version = "1.18" }
nodes.proxy = { kind = "plproxy", to = "shard", buckets = 8 }
links.wan = { between = ["primary", "standby1"], delay = "{delay}", bandwidth = "100Mbit", by = "namespace" }
[workloads.writes]
script = "orders.sql"
to = ["primary", "standby1"]
ledger = { insert = "writes_log", update = "writes_state" }
session = { synchronous_commit = "{commit}" }
[scenarios.break]
run = [{ workload = "writes", commit = "on" }]
over = { n = [2], delay = ["0.2ms"] }
window = "60s"
on_loss = "reconnect"
timeline = [
  { at = "1s", cut = "wan", direction = "to" },
  { at = "2s", heal = "wan" },
  { at = "3s", delay = "wan", to = "5ms" },
  { at = "4s", reset = "wan" },
  { at = "5s", power_cut = "primary" },
  { at = "6s", start = "primary" },
  { at = "7s", stop = "front" },
  { at = "8s", promote = "standby2" },
]
checks = [
  "counts", "ledger", { ledger = "standby1" }, "amcheck", { amcheck = "distant" },
  { explain = "SELECT 1", as = "one", on = "standby2", session = { jit = "off" } },
]
steady = false
needs = ["root"]
"#;

#[test]
fn a_topology_has_standbys_poolers_guards_proxies_and_links() {
    use spec::{Action, Check, Direction, Disk, LinkKind, NodeKind, PoolMode, Role};
    let study = parse(SYNC);
    let point = &study.points[0];
    let topology = &point.topology;
    let names: Vec<&str> = topology.nodes.iter().map(|node| node.name.as_str()).collect();
    assert_eq!(
        names.join(" "),
        "primary standby1 standby2 distant front watcher shard1 shard2 many door1 door2 proxy"
    );
    let node = |name: &str| topology.node(name).unwrap();
    let disk = Disk::CutBlock { size_bytes: 1 << 30, sector_bytes: 4096, lying: false };
    assert_eq!(node("primary").disk, disk);
    assert_eq!(
        node("primary").settings["synchronous_standby_names"],
        "ANY 1 (\"standby2\", \"standby1\")"
    );
    assert_eq!(node("standby1").settings["work_mem"], "1MB");
    assert!(!node("standby1").settings.contains_key("synchronous_standby_names"));
    assert_eq!(node("distant").follows(), Some("standby1"));
    assert_eq!(
        node("distant").kind,
        NodeKind::Postgres(Role::Standby { of: "standby1".to_owned(), sync: None })
    );
    let NodeKind::Pgbouncer(front) = &node("front").kind else { panic!() };
    assert_eq!((front.pool, front.mode, front.clients), (16, PoolMode::Session, 64));
    assert_eq!(node("front").settings["query_wait_timeout"], "5");
    assert_eq!(node("door2").connects_to(), ["shard2"]);
    assert_eq!(node("proxy").connects_to(), ["shard1", "shard2"]);
    let NodeKind::Guard(watcher) = &node("watcher").kind else { panic!() };
    assert_eq!((watcher.to.as_str(), watcher.grace_ms), ("primary", 3_000));
    let wan = topology.link("wan").unwrap();
    assert_eq!((wan.delay_us, wan.bandwidth_bits), (200, Some(100_000_000)));
    assert_eq!((wan.between.join(" "), wan.by), ("primary standby1".into(), LinkKind::Namespace));

    let workload = &point.workloads[0];
    assert_eq!(workload.to, ["primary", "standby1"]);
    let ledger = workload.ledger.as_ref().unwrap();
    assert_eq!(ledger.insert.as_deref(), Some("writes_log"));
    assert_eq!(ledger.update.as_deref(), Some("writes_state"));
    let actions: Vec<String> = point
        .timeline
        .iter()
        .map(|timed| format!("{} {}", timed.action.verb(), timed.action.target()))
        .collect();
    let expected = "cut wan, heal wan, delay wan, reset wan, power_cut primary, start primary, \
                    stop front, promote standby2";
    assert_eq!(actions.join(", "), expected);
    let cut = Action::Cut { link: "wan".to_owned(), direction: Direction::To };
    assert_eq!(point.timeline[0].action, cut);
    assert_eq!(point.timeline[2].action, Action::Delay { link: "wan".into(), to_us: 5_000 });
    assert_eq!(point.checks[2], Check::Ledger { node: Some("standby1".to_owned()) });
    assert_eq!(point.checks[4], Check::Amcheck { node: Some("distant".to_owned()) });
    let Check::Explain(explain) = &point.checks[5] else { panic!("{:?}", point.checks) };
    assert_eq!((explain.name.as_str(), explain.sql.as_str()), ("one", "SELECT 1"));
    assert_eq!(
        (explain.node.as_deref(), explain.session["jit"].as_str()),
        (Some("standby2"), "off")
    );
    let throttle = node("shard2").throttle.unwrap();
    assert_eq!((throttle.write_iops, throttle.write_bytes), (Some(200), Some(4 << 20)));
    assert_eq!((throttle.read_iops, throttle.read_bytes), (None, Some(32 << 10)));
    assert!(node("front").by_tcp && !node("primary").by_tcp);
    let NodeKind::Plproxy(many) = &node("many").kind else { panic!() };
    assert_eq!(many.partitions(), 5);
    assert_eq!((many.partitions_on("shard1"), many.partitions_on("shard2")), (3, 2));
    assert!(!point.must_be_steady && parse(OWN).points[0].must_be_steady);
    assert!(point.needs_root());
    assert!(!parse(OWN).points[0].needs_root());
}

#[test]
fn the_first_of_the_synchronous_standbys_is_waited_for_unless_the_study_says_otherwise() {
    let check = |primary: &str, expected: Option<&str>| {
        let study = SYNC.replacen("sync = \"ANY 1\"", primary, 1);
        let study = parse(&study.replace("{ sync = \"ANY 1\", ", "{ "));
        let settings = &study.points[0].topology.nodes[0].settings;
        let names = settings.get("synchronous_standby_names").map(String::as_str);
        assert_eq!(names, expected, "{primary}");
    };
    check("settings = {}", Some("FIRST 1 (\"standby2\", \"standby1\")"));
    check("sync = \"first 2\"", Some("FIRST 2 (\"standby2\", \"standby1\")"));
    check("settings = { synchronous_standby_names = \"*\" }", Some("*"));
}

#[test]
fn a_topology_is_wrong_at_the_place_where_it_is_wrong() {
    let check = |from: &str, to: &str, expected: &str| {
        assert!(SYNC.contains(from), "{from}");
        assert_eq!(problems(&SYNC.replacen(from, to, 1)).trim_end(), expected);
    };
    check(
        "partitions = 5",
        "partitions = 1",
        "`1` 1 partitions on 2 servers (at least one for each server of `to`)",
    );
    check(
        "write_bytes = \"4MB\"",
        "write_bytes = \"fast\"",
        "`\"fast\"` write_bytes: not a number of bytes a second (write \"4MB\")",
    );
    check(
        "of = \"standby1\" }",
        "of = \"standby9\" }",
        "`\"standby9\"` unknown node \"standby9\" (did you mean \"standby1\"?)",
    );
    check(
        "sync = \"ANY 1\"",
        "sync = \"ANY 3\"",
        "`\"ANY 3\"` commits would wait for 3 synchronous standbys, primary has 2 \
         (give the standbys a priority: sync = 1)",
    );
    check(
        "sync = \"ANY 1\"",
        "sync = 1",
        "`1` sync: not a number of standbys (a primary says \"FIRST 1\" or \"ANY 2\"; \
         a priority belongs to a standby, which says of = \"PRIMARY\")",
    );
    check(
        "{ of = \"standby1\" }",
        "{ of = \"standby1\", sync = 3 }",
        "`3` commits cannot wait for a standby of standby standby1",
    );
    check(
        "of = \"primary\", sync = 1",
        "of = \"front\", sync = 1",
        "`\"front\"` front is no PostgreSQL server",
    );
    check("{ of = \"standby1\" }", "{ of = \"distant\" }", "`\"distant\"` distant follows itself");
    check(
        "kind = \"guard\", to = \"primary\"",
        "kind = \"guard\", to = \"standby2\"",
        "`\"standby2\"` a guard watches a primary; standby2 is a standby",
    );
    check(
        "count = \"{n}\", version",
        "count = 3, version",
        "`\"shard\"` \"shard\" are 2 nodes, \"door\" 3 \
         (name one of them, or give both the same count)",
    );
    check(
        "buckets = 8",
        "buckets = 6",
        "`6` buckets must be a power of two (a bucket is the low bits of a hash: 16, 32, 64, 128, …)",
    );
    check(
        "[\"primary\", \"standby1\"], delay",
        "[\"standby2\", \"standby1\"], delay",
        "`\"standby1\"` neither of standby2 and standby1 connects to the other",
    );
    check(
        "sync = \"ANY 1\", disk",
        "listen = \"tcp\", sync = \"ANY 1\", disk",
        "`\"namespace\"` primary listens on loopback, which is not in its namespace \
         (leave out listen = \"tcp\" there, or write \"relay\")",
    );
    check(
        "100Mbit",
        "100Mbps",
        "`\"100Mbps\"` \"100Mbps\" is not a bandwidth \
         (write bits a second with a unit: 512kbit, 100Mbit, 1Gbit)",
    );
    check(
        "clients = 64",
        "clients = 64, max = 1",
        "`max` a node has no field \"max\" \
         (there is kind, to, pool, mode, clients, version, settings, listen, count)",
    );
    check(
        "ledger = { insert = \"writes_log\", update = \"writes_state\" }",
        "ledger = {}",
        "`{}` a ledger needs a table \
         (write { insert = \"TABLE\" }, { update = \"TABLE\" } or both)",
    );
    check(
        "ledger = { insert = \"writes_log\", update = \"writes_state\" }",
        "clients = 3",
        "`[` no workload of the scenario keeps a ledger \
         (give one ledger = { insert = \"TABLE\" })",
    );
}

#[test]
fn an_action_that_can_have_no_effect_is_pointed_at() {
    let check = |action: &str, expected: &str| {
        let study = SYNC.replacen("{ at = \"8s\", promote = \"standby2\" }", action, 1);
        assert_eq!(problems(&study).trim_end(), format!("`{action}` {expected}"));
    };
    check("{ at = \"8s\", start = \"standby1\" }", "start: standby1 was not stopped before");
    check("{ at = \"8s\", start = \"primary\" }", "start: primary was not stopped before");
    check("{ at = \"8s\", continue = \"distant\" }", "continue: distant was not paused before");
    check("{ at = \"2500ms\", heal = \"wan\" }", "heal: nothing was done to wan before");
    check("{ at = \"8s\", promote = \"primary\" }", "promote: primary is no standby");
    check("{ at = \"5500ms\", checkpoint = \"primary\" }", "checkpoint: primary is down by then");
    check(
        "{ at = \"8s\", power_cut = \"standby1\" }",
        "power_cut: the disk of standby1 cannot be cut: give it disk = { cut = … }",
    );
}

#[test]
fn a_promotion_is_refused_where_the_next_trial_would_have_to_live_with_it() {
    let promote = "{ at = \"8s\", promote = \"standby2\" }";
    let keep =
        SYNC.replacen("[workloads.writes]", "[data]\nreset = \"keep\"\n[workloads.writes]", 1);
    let expected = format!(
        "`{promote}` promote: the next trial would find no standby standby2 \
         (data.reset = \"clone\" begins each trial anew)"
    );
    assert_eq!(problems(&keep).trim_end(), expected);
    assert_eq!(problems(&keep.replacen("keep", "clone", 1)), "");
}

#[test]
fn an_answer_has_only_the_names_that_are_filled_in() {
    let answer = "[answer]\nholds = \"{vlaue} times\"\nfails = \"no\"\nunsure = \"{n} rounds\"\n";
    let study = OWN.replacen("[[claims]]", &format!("{answer}[[claims]]"), 1);
    let expected = "`\"{vlaue} times\"` an answer has no {vlaue} (did you mean \"value\"?)";
    assert!(problems(&study).contains(expected), "{}", problems(&study));
}

#[test]
fn a_claim_is_wrong_at_the_place_where_it_is_wrong() {
    let claim = "tps('fast/load/orders', 'clients=8') / tps('safe/load/orders', 'clients=8')";
    let check = |to: &str, expected: &str| {
        assert_eq!(problems(&OWN.replacen(claim, to, 1)).trim_end(), expected);
    };
    check(
        "tps('fast/lod', 'clients=8')",
        "`tps('fast/lod', 'clients=8')` no trial of this profile runs \"fast/lod\"; \
         did you mean \"fast/load\"?",
    );
    check(
        "1 / tps('fast/load', 'clients=16')",
        "`tps('fast/load', 'clients=16')` no trial of fast/load in this profile has clients=16; \
         there is clients=8; clients=64",
    );
    check(
        "tps('fast/load')",
        "`tps('fast/load')` 2 trials fit, such as \"fast/load clients=8\" and \
         \"fast/load clients=64\": name the axes",
    );
    check(
        "tps('fast/load/order', 'clients=8')",
        "`tps('fast/load/order', 'clients=8')` \"order\" is no part of fast/load clients=8; \
         did you mean \"orders\"?",
    );
    check("tpss('a/b')", "`tpss` unknown metric \"tpss\" (did you mean \"tps\"?)");
    check(
        "1 + 1",
        "`\"1 + 1\"` the expression speaks of no trial (ask for a metric: tps('variant/scenario'))",
    );
    check(
        "tps('fast/load', 'clients=8') if 1 > 0 else 1",
        "`if` a value is arithmetic, it knows no \"if\"",
    );
    check("tps(1)", "`tps(1)` tps speaks of a point: write tps('variant/scenario', 'axis=value')");
    check("tps('fast/load', 'clients=8') /", "`/` unexpected end of input, expected expression");
}

#[test]
fn a_condition_may_speak_of_one_workload() {
    let with = |claim: &str| format!("{OWN}[[claims]]\n{claim}\n");
    let study = parse(&with("every = \"failed == 0\"\nof = \"orders\""));
    let About::Every { of, .. } = &study.claims[1].about else { panic!() };
    assert_eq!(of, "orders");
    assert_eq!(
        problems(&with("every = \"failed == 0\"\nof = \"order\"\ntrials = \"safe*=8\"")),
        "`\"order\"` unknown part of safe/load clients=8: \"order\" \
         (did you mean \"orders\"?)\n"
    );
}

#[test]
fn broken_toml_is_pointed_at() {
    assert_eq!(problems("question = \n[data").lines().count(), 2);
    assert_eq!(
        problems(""),
        "`` a study has no question\n\
         `` a study has at least one scenario \
         (add [scenarios.NAME] with run = [\"WORKLOAD\"])\n"
    );
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    /// Whatever somebody types on the way to a study is answered, and pointed at within the file.
    #[test]
    fn no_text_is_too_broken_to_be_answered(
        at in 0..OWN.len() + SHAPES.len() + SYNC.len(),
        remove in 0..12usize,
        insert in "[\\[\\]{}\"'=,. a-z0-9é\n#/()-]{0,6}",
    ) {
        let source = match at {
            at if at < OWN.len() => OWN,
            at if at < OWN.len() + SHAPES.len() => SHAPES,
            _ => SYNC,
        };
        let at = at % source.len();
        let mut text = source.to_owned();
        let end = (at + remove).min(text.len());
        if text.is_char_boundary(at) && text.is_char_boundary(end) {
            text.replace_range(at..end, &insert);
        }
        for profile in Profile::ALL {
            if let Err(problems) = Study::parse(&folder(&text), profile) {
                prop_assert!(!problems.is_empty());
                for problem in problems {
                    prop_assert!(text.get(problem.span.clone()).is_some(), "{problem:?}");
                }
            }
        }
    }
}
