//! Points, profiles, rounds and plans.

use super::*;

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
    assert_eq!(point.topology.nodes[0].settings.value("synchronous_commit"), Some("off"));
    assert_eq!(point.data.variables["rows"], "1000000");
    assert_eq!(point.rounds, 6);
    assert_eq!(point.window_ms, 10_000);
    let ClaimSubject::Value { value, expect, .. } = &study.claims[0].about else { panic!() };
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
    // Each trial begins with a copy of the data, so that the copy may use the same servers.
    assert!(!copy.has_own_servers && !original.has_own_servers);
    let kept = parse(&OWN.replace("[data]", "[data]\nreset = \"keep\""));
    assert!(kept.points[kept.twin.expect("throughput is compared").point].has_own_servers);
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
    assert_eq!(parse_in(OWN, StudyProfile::Smoke).twin, None);
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
    // A headline is to be judged by each profile that has it.
    let headline = OWN.replacen("[[claims]]", "[[claims]]\nheadline = true", 1);
    let headline = |rounds: &str| {
        let text = headline.replacen("[scenarios.load]", &format!("[scenarios.load]\n{rounds}"), 1);
        spec::never_judged(&folder(&text)).into_iter().map(|problem| problem.message).collect()
    };
    let quick: Vec<String> = headline("rounds = { smoke = 1, quick = 5, full = 6 }");
    let expected = "profile quick cannot judge this headline claim: it has 5 rounds at most, and a verdict takes 6";
    assert_eq!(quick, [expected]);
    assert!(headline("rounds = { smoke = 1, quick = 6, full = 6 }").is_empty());
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
    let message = "no profile can judge this claim among the study's 3 headline claims about \
                   values: it is no quotient of two figures, the p-value of a median over 6 rounds \
                   is 1/32 at best, and that does not stand Holm's correction";
    assert_eq!((crowded.len(), crowded[0].message.as_str()), (2, message));
    assert!(crowded[0].hint.as_ref().unwrap().contains("quick = 7"), "{crowded:?}");
    // What is no headline has nothing to stand beside it.
    let marked = two.replacen("expect", "headline = true\nexpect", 1);
    assert_eq!(found(6, &marked), vec![]);
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
        let ClaimSubject::Value { value, .. } = &study.claims[0].about else { panic!() };
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
    let check = |points: &str, profile, expected: [(u32, WarmUp); 2]| {
        let own = OWN.replace("over = {", &format!("points = [{points}]\nover = {{"));
        let seen = parse_in(&own, profile).points.into_iter().map(|p| (p.rounds, p.warmup));
        assert_eq!(seen.take(2).collect::<Vec<_>>(), expected, "{points}");
    };
    let rest = (1, WarmUp::Fixed(500));
    let more = (3, WarmUp::Fixed(5_000));
    let point = "{ at = { clients = 64 }, rounds = 3, warmup = \"5s\" }";
    check("", StudyProfile::Smoke, [rest, rest]);
    check(point, StudyProfile::Smoke, [rest, more]);
    check("{ at = { clients = [8, 64] }, rounds = 2 }", StudyProfile::Smoke, [(2, rest.1); 2]);
    check(
        &format!("{{ at = {{ clients = 64 }}, rounds = 2 }}, {point}"),
        StudyProfile::Smoke,
        [rest, more],
    );
    let elsewhere = "{ at = { clients = 4 }, rounds = 3, profiles = [\"quick\"] }";
    check(elsewhere, StudyProfile::Smoke, [rest, rest]);
}

#[test]
fn every_profile_has_its_own_size() {
    assert_eq!(parse_in(OWN, StudyProfile::Smoke).points[0].rounds, 1);
    assert_eq!(parse_in(OWN, StudyProfile::Smoke).points[0].warmup, WarmUp::Fixed(500));
    assert_eq!(parse_in(OWN, StudyProfile::Full).points[0].data.variables["rows"], "50000000");
}

/// The shape that later studies have, as the design sketches it, less what is not built yet.
pub(super) const SHAPES: &str = r#"
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
    assert_eq!(point.warmup, WarmUp::Auto { min_ms: 2_000, max_ms: 6_000 });
    let names: Vec<&str> = point.workloads.iter().map(|w| w.name.as_str()).collect();
    assert_eq!(names, ["login-on", "login-local-50"]);
    assert_eq!(point.workloads[0].session.value("synchronous_commit"), Some("on"));
    assert_eq!(point.workloads[0].protocol, Protocol::Simple);
    assert_eq!(point.workloads[0].to, ["other"]);
    assert_eq!(point.workloads[1].pace, Pace::Poisson(50.0));
    assert_eq!(point.clients(), 8);
    assert_eq!(point.before[1].sql, "CREATE TABLE orders (client int);\n");
    let one = &study.points[1].topology.nodes[0];
    assert_eq!(one.settings.value("wal_level"), Some("logical"));
    assert_eq!(one.settings.value("shared_buffers"), Some("256MB"));
    assert_eq!(one.settings.value("autovacuum"), Some("on"));
    assert_eq!(point.topology.nodes[1].settings.value("work_mem"), Some("8MB"));
    assert_eq!(study.claims.len(), 2);
    let ClaimSubject::Every { condition, points, .. } = &study.claims[0].about else { panic!() };
    assert_eq!(points, &[2, 3]);
    assert!(condition.is_true(&[0.0, 9.0]));
    assert!(!condition.is_true(&[1.0, 9.0]));
    assert_eq!(parse_in(SHAPES, StudyProfile::Full).points.len(), 6);
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
