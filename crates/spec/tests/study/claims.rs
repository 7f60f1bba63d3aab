//! Claims, answers, and files that cannot be read at all.

use super::points::SHAPES;
use super::topology::SYNC;
use super::*;

#[test]
fn an_answer_has_only_the_names_that_are_filled_in() {
    let answer = "[answer]\nholds = \"{vlaue} times\"\nfails = \"no\"\nunsure = \"{n} rounds\"\n";
    let study = OWN.replacen("[[claims]]", &format!("{answer}[[claims]]"), 1);
    let expected = "`\"{vlaue} times\"` an answer has no {vlaue} (did you mean \"value\"?)";
    assert!(problems(&study).contains(expected), "{}", problems(&study));
}

#[test]
fn what_an_answer_adds_is_a_sentence_and_a_value() {
    let check = |adds: &str, expected: &str| {
        let answer = "[answer]\nholds = \"yes\"\nfails = \"no\"\nunsure = \"?\"\n";
        let answer = format!("{answer}adds = [{adds}]\n");
        let study = OWN.replacen("[[claims]]", &format!("{answer}[[claims]]"), 1);
        assert_eq!(problems(&study).trim_end(), expected, "{adds}");
    };
    check(r#"{ says = "and {value}", value = "tps('fast/load', 'clients=8')" }"#, "");
    check(
        r#"{ says = "and {vlaue}", value = "tps('fast/load', 'clients=8')" }"#,
        r#"`"and {vlaue}"` an answer has no {vlaue} (did you mean "value"?)"#,
    );
    // Of another profile, it may speak of points that this one does not have.
    check(r#"{ says = "x", value = "tps('none/load')", profiles = ["smoke"] }"#, "");
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
    // Each of these would take all memory or an hour if it were computed.
    let foreign = |text: &str, part: &str| {
        let whole = format!("tps('fast/load', 'clients=8') + {text}");
        check(&whole, &format!("`{part}` an expression is arithmetic, it knows no {part}"));
    };
    foreign("[0] * 99999999", "[");
    foreign("{'a': 1}['a']", "{");
    foreign("(1, 2) * 99999999", ",");
    foreign("'x' * 99999999", "'x'");
    foreign("abs('x' * 99999999)", "'x'");
    foreign("abs('x' ~ 'y')", "'x'");
    foreign("1 | abs", "|");
    check("tps(1)", "`tps(1)` tps speaks of a point: write tps('variant/scenario', 'axis=value')");
    check("tps('fast/load', 'clients=8') /", "`/` unexpected end of input, expected expression");
}

#[test]
fn a_condition_may_speak_of_one_workload() {
    let with = |claim: &str| format!("{OWN}[[claims]]\n{claim}\n");
    let study = parse(&with("every = \"failed == 0\"\nof = \"orders\""));
    let ClaimSubject::Every { of, .. } = &study.claims[1].about else { panic!() };
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

    /// Whatever is typed on the way to a study is answered, and pointed at within the file.
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
        for profile in StudyProfile::ALL {
            if let Err(problems) = Study::parse(&folder(&text), profile) {
                prop_assert!(!problems.is_empty());
                for problem in problems {
                    prop_assert!(text.get(problem.span.clone()).is_some(), "{problem:?}");
                }
            }
        }
    }
}

#[test]
fn pairs_are_two_points_of_as_many_clients() {
    let pairs = "expect = \">= 2.0\"\npairs = { block = \"2s\", precision = \"2%\" }";
    let asked = OWN.replace("expect = \">= 2.0\"", pairs);
    let study = parse(&asked);
    let [pairing] = study.pairings()[..] else { panic!("{:?}", study.pairings()) };
    let name = |point: usize| study.points[point].name.to_string();
    assert_eq!(
        (name(pairing.above), name(pairing.below)),
        ("fast/load clients=8".to_owned(), "safe/load clients=8".to_owned())
    );
    let how = spec::PairSettings {
        block_ms: Some(2_000),
        precision: 0.02,
        max_ms: 600_000,
        until_judged: false,
        threshold: None,
    };
    assert_eq!(pairing.pairs, how);
    // A threshold says what is expected: that the numerator is worse by no more than that.
    let by_threshold = "pairs = { precision = \"2%\", threshold = \"25%\" }";
    let study = parse(&OWN.replace("expect = \">= 2.0\"", by_threshold));
    let spec::ClaimSubject::Value { expect, .. } = &study.claims[0].about else {
        panic!("a value")
    };
    assert_eq!(expect.to_string(), "≥ 0.8");
    // Without a round too few, such a claim is never beyond judgement.
    let few = asked.replacen("[scenarios.load]", "[scenarios.load]\nrounds = 1", 1);
    assert_eq!(spec::never_judged(&folder(&few)), vec![]);

    // Two scenarios of one variant get two sets of servers.
    let twice = asked.replace(
        "[[claims]]",
        "[scenarios.again]\nrun = [\"orders\"]\nover = { clients = [8, 64] }\n\n[[claims]]",
    );
    let twice = twice.replace("tps('fast/load/orders'", "tps('safe/again/orders'");
    let study = parse(&twice);
    let [pairing] = study.pairings()[..] else { panic!("{:?}", study.pairings()) };
    let [above, below] = [pairing.above, pairing.below].map(|point| &study.points[point]);
    assert_eq!(above.name.to_string(), "safe/again clients=8");
    assert_eq!(below.name.to_string(), "safe/load clients=8");
    assert!(above.has_own_servers && !below.has_own_servers);
    // So do a server and the same one behind a pooler.
    let pooled = asked.replace(
        "[variants.fast]",
        "[topologies.pooled]\nnodes.primary = {}\nnodes.front = { kind = \"pgbouncer\", to = \"primary\" }\n\
         [variants.pooled]\ntopology = \"pooled\"\nsettings = { synchronous_commit = \"on\" }\n[variants.fast]",
    );
    let pooled = pooled.replace("script = \"init.sql\"", "script = \"init.sql\"\nreset = \"keep\"");
    let study = parse(&pooled.replace("tps('fast/", "tps('pooled/"));
    let [pairing] = study.pairings()[..] else { panic!("{:?}", study.pairings()) };
    assert!(study.points[pairing.above].has_own_servers);

    // Variant, scenario and axes may all differ, and one side may have more workloads than the other.
    let unlike = asked.replace(
        "[[claims]]",
        "[scenarios.halves]\nrun = [{ workload = \"orders\", as = \"one\", clients = 4 }, \
         { workload = \"orders\", as = \"two\", clients = 4 }]\nover = { other = [1, 2] }\nbefore = [\"SELECT {other}\"]\n\n[[claims]]",
    );
    let unlike = unlike
        .replace("tps('fast/load/orders', 'clients=8')", "tps('fast/halves', 'other=2')")
        .replace("tps('safe/load/orders'", "tps('safe/load'");
    let study = parse(&unlike);
    let [pairing] = study.pairings()[..] else { panic!("{:?}", study.pairings()) };
    let [above, below] = [pairing.above, pairing.below].map(|point| &study.points[point].name);
    assert_eq!(
        [above, below].map(ToString::to_string),
        ["fast/halves other=2", "safe/load clients=8"]
    );
    let found = problems(&unlike.replace("tps('fast/halves'", "tps('fast/halves/one'"));
    assert!(found.contains("workloads at the same position"), "{found}");

    let check = |from: &str, to: &str, expected: &str| {
        assert!(asked.contains(from), "{from}");
        let found = problems(&asked.replacen(from, to, 1));
        assert!(found.contains(expected), "{to}: {found}");
    };
    check("safe/load", "fast/load", "a claim in pairs compares two points");
    check("'clients=8') / tps", "'clients=64') / tps", "as many clients on both sides");
    check("tps('safe", "latency_mean_ms('safe", "pairs measure one of tps, latency_p50_ms");
    check(" / tps('safe/load/orders', 'clients=8')", "", "one figure divided by another");
    check("precision = \"2%\"", "precision = \"2\"", "precision must be a percentage");
    check(", precision = \"2%\"", "", "pairs has no precision");
    check("block = \"2s\"", "block = \"2min\"", "a block takes 100 ms to 10 s");
    check("block =", "blok =", "did you mean \"block\"?");
    check("value  =", "every =", "pairs belongs to value");
    let skips = "run = [{ workload = \"orders\", rate = 100, latency_limit = \"5ms\" }]";
    let message = "has a rate and a latency limit, and cannot be measured in pairs";
    check("run  = [\"orders\"]", skips, message);
    let timeline = "run = [\"orders\"]\ntimeline = [{ at = \"1s\", kill = \"primary\" }]";
    check("run  = [\"orders\"]", timeline, "has a timeline");
    let paced = "run = [\"orders\", { workload = \"orders\", as = \"more\", rate = 10 }]";
    check("run  = [\"orders\"]", paced, "has several workloads and a rate");
    check("block = \"2s\"", "until = \"soon\"", "until is \"precise\" or \"judged\"");

    // One of several workloads has a throughput of its own.
    let two = "run = [\"orders\", { workload = \"orders\", as = \"more\" }]";
    let two = asked.replacen("run  = [\"orders\"]", two, 1);
    let study = parse(&two.replace("block = \"2s\"", "until = \"judged\""));
    let pairings = study.pairings();
    assert!(pairings[0].pairs.until_judged);
    let claims = study.claims_of(&pairings[0]);
    let claimed: Vec<_> =
        claims.iter().map(|one| (one.metric.name, one.workload.as_deref())).collect();
    assert_eq!(claimed, [("tps", Some("orders"))]);
    let found = problems(&two.replacen("safe/load/orders", "safe/load/more", 1));
    assert!(found.contains("workloads at the same position"), "{found}");
    let found = problems(&two.replace("tps('", "latency_p50_ms('"));
    assert!(found.contains("pairs measure tps alone"), "{found}");
}
