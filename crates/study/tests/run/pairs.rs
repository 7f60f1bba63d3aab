//! Claims that are measured in pairs, on real servers.

use std::path::Path;

use load::LoadControl;
use record::comparison::{ComparedMetric, ComparisonStop, OCTET_PAIRS};
use record::{AttemptEnding, FaultyParty, GeneratorCost, PairingAttempt, RecordReader};
use spec::{Study, StudyFolder, StudyProfile};
use study::{RecordPlace, RunResult, StudyEvent};
use verdict::{ClaimMeasurement, Verdict};

/// Two scenarios of one variant, which share its servers but in pairs. In each, two workloads run together.
const SCENARIOS: &str = r#"
question = "Does waiting take time?"
rounds = 1
window = "200ms"
warmup = "100ms"
[settings]
shared_buffers = "16MB"
[data]
script = "init.sql"
[workloads.short]
script = "short.sql"
clients = 2
[workloads.long]
script = "wait.sql"
clients = 2
[scenarios.fast]
run = [{ workload = "short", as = "changed" }, { workload = "short", as = "same" }]
[scenarios.slow]
run = [{ workload = "long", as = "changed" }, { workload = "short", as = "same" }]
[[claims]]
says = "ten times the wait, less throughput"
value = "tps('default/slow/changed') / tps('default/fast/changed')"
expect = "<= 0.75"
pairs = { block = "200ms", precision = "0.1%", max = "150s", until = "judged" }
[[claims]]
says = "of all together as well"
value = "tps('default/slow') / tps('default/fast')"
expect = "<= 0.9"
pairs = { block = "200ms", precision = "0.1%", max = "150s", until = "judged" }
[[claims]]
says = "the other workload has as much"
value = "tps('default/slow/same') / tps('default/fast/same')"
expect = ">= 0.5"
pairs = { block = "200ms", precision = "0.1%", max = "150s", until = "judged" }
"#;

/// The points have the same servers in all but a setting that clients see, and nothing else in common but
/// the number of clients: variant, scenario, axes and the number of workloads differ.
const STUDY: &str = r#"
question = "Does waiting take time?"
rounds = 1
window = "200ms"
warmup = "100ms"
[settings]
shared_buffers = "16MB"
[data]
script = "init.sql"
reset = "keep"
[variants.fast]
settings = { "my.wait" = "0.001" }
[variants.slow]
settings = { "my.wait" = "0.005" }
[workloads.wait]
script = "wait.sql"
clients = 2
[scenarios.load]
run = ["wait"]
variants = ["fast"]
checks = ["counts"]
[scenarios.halves]
run = [{ workload = "wait", as = "one", clients = 1 }, { workload = "wait", as = "two", clients = 1 }]
variants = ["slow"]
over = { part = [2] }
before = ["SELECT {part}"]
[[claims]]
says = "ten times the wait, less throughput"
value = "tps('slow/halves', 'part=2') / tps('fast/load')"
expect = "<= 0.75"
pairs = { block = "200ms", precision = "20%", max = "100s" }
[[claims]]
says = "and more latency"
value = "latency_p50_ms('slow/halves', 'part=2') / latency_p50_ms('fast/load')"
expect = ">= 1.25"
pairs = { block = "200ms", precision = "30%", max = "100s" }
"#;

fn folder() -> StudyFolder {
    // The trials before the pairs leave other rows on each side, and so answers that differ without a reason.
    let wait = "INSERT INTO t VALUES (1);\nSELECT count(*) FROM t;\n\
        SELECT pg_sleep(current_setting('my.wait')::float8);\n"
        .to_owned();
    let init = "CREATE TABLE t (i int);\n".to_owned();
    super::folder(&[("study.toml", STUDY), ("init.sql", &init), ("wait.sql", &wait)])
}

/// Runs it; what was said of pairs is counted.
fn run(folder: &StudyFolder, place: RecordPlace) -> (RunResult, usize) {
    let request = super::request(folder.clone(), place);
    let mut told = 0;
    let ended = study::run(&request, &LoadControl::new(), &mut |event| {
        told += usize::from(matches!(event, StudyEvent::Pairs { .. }));
    });
    (ended.unwrap(), told)
}

#[test]
fn points_with_servers_of_their_own_are_loaded_in_turn() {
    let directory = tempfile::tempdir().unwrap();
    let folder = folder();
    let (ended, told) = run(&folder, RecordPlace::Below(directory.path().to_owned()));
    let reader = RecordReader::open(&ended.directory).unwrap();
    let [paired] = reader.pairs() else { panic!("{:?}", reader.pairs().len()) };
    assert!(told > 0 && told == paired.shown.looks.len());
    assert_is_measured(paired);
    let study = Study::parse(&folder, StudyProfile::Smoke).unwrap();
    let plan = &reader.header().plan;
    let judge =
        |pairs: &[PairingAttempt]| verdict::judge(&study, plan, reader.trials(), pairs).claims;
    let claims = judge(reader.pairs());
    // Beside other tests the generator may wait for a CPU, and the hypervisor may give it away: then
    // nothing is said.
    let seen = paired.shown.conditions;
    let is_doubted = seen.run_delay_share_max > GeneratorCost::RUN_DELAY_SHARE_MAX
        || seen.busy_share_max > GeneratorCost::BUSY_SHARE_MAX
        || seen.steal_share > 0.05;
    for claim in &claims {
        let is_expected = match claim.verdict {
            Verdict::CannotTell => is_doubted,
            verdict => verdict == Verdict::Holds,
        };
        assert!(is_expected, "{claim:?}");
        assert!(matches!(claim.measured, ClaimMeasurement::Pairs { pairs, .. } if pairs >= 20));
    }
    // Without its pairs, a claim about pairs has nothing to rest on, whatever the trials show.
    for claim in judge(&[]) {
        assert_eq!(
            (claim.verdict, claim.measured),
            (Verdict::CannotTell, ClaimMeasurement::BeyondProfile)
        );
    }
    // What stands against the figures of one side stands against the claim.
    let died = AttemptEnding::failed(FaultyParty::Server, "it crashed");
    type Spoil = fn(&mut Vec<PairingAttempt>, AttemptEnding);
    let spoiled: [(&str, Spoil); 3] = [
        ("did not reach its rate", |pairs, _| pairs[0].shown.conditions.is_rate_missed = true),
        ("2.0 % of a side's transactions", |pairs, _| {
            pairs[0].shown.conditions.failed_share_max = 0.02
        }),
        ("attempt 0 failed: it crashed", |pairs, died| {
            pairs.push(PairingAttempt { attempt: 0, ending: died, ..pairs[0].clone() });
        }),
    ];
    for (why, spoil) in spoiled {
        let mut pairs = reader.pairs().to_vec();
        spoil(&mut pairs, died.clone());
        for claim in judge(&pairs) {
            assert_eq!(claim.verdict, Verdict::CannotTell, "{claim:?}");
            assert!(claim.why.contains(why), "{why}: {claim:?}");
        }
    }
    is_not_measured_again(&folder, &ended.directory);
}

fn assert_is_measured(paired: &PairingAttempt) {
    assert_eq!(paired.ending, AttemptEnding::Done, "{paired:?}");
    assert_eq!((paired.above.as_str(), paired.below.as_str()), ("slow", "fast"));
    assert_eq!((paired.scenario.as_str(), paired.scenario_below()), ("halves", "load"));
    assert_eq!((paired.axes.len(), paired.axes_below().len()), (1, 0));
    assert_eq!((paired.shown.block_ms, paired.precision, paired.shown.clients), (200, 0.2, 2));
    assert!(
        matches!(paired.shown.stop, ComparisonStop::Precision | ComparisonStop::Time),
        "{:?}",
        paired.shown.stop
    );
    let throughput = paired.shown.figure(ComparedMetric::Throughput).expect("throughput");
    let ratio = throughput.b_over_a.as_ref().expect("an interval");
    assert!(ratio.low < ratio.value && ratio.value < ratio.high, "{ratio:?}");
    let series = paired.series(ComparedMetric::Throughput).expect("a series");
    let segments = paired.shown.instances.segments;
    assert_eq!((series.above.len(), series.below.len()), (ratio.n, segments));
    assert!(
        paired.shown.pairs >= OCTET_PAIRS * segments && paired.shown.instances.renewal.restarts()
    );
}

fn is_not_measured_again(folder: &StudyFolder, record: &Path) {
    let (_, told) = run(folder, RecordPlace::Resume(record.to_owned()));
    assert_eq!(told, 0);
}

#[test]
fn scenarios_of_one_variant_are_loaded_in_turn() {
    let directory = tempfile::tempdir().unwrap();
    let wait = |seconds: f64| format!("SELECT pg_sleep({seconds});\n");
    let folder = super::folder(&[
        ("study.toml", SCENARIOS),
        ("init.sql", "CREATE TABLE t (i int);\n"),
        // Long beside what a busy machine adds to a wait, and far apart.
        ("short.sql", &wait(0.004)),
        ("wait.sql", &wait(0.04)),
    ]);
    let (ended, _) = run(&folder, RecordPlace::Below(directory.path().to_owned()));
    let reader = RecordReader::open(&ended.directory).unwrap();
    let [paired] = reader.pairs() else { panic!("{:?}", reader.pairs().len()) };
    assert_eq!(paired.ending, AttemptEnding::Done, "{paired:?}");
    assert_eq!(paired.sides(), ["fast", "slow"]);
    let study = Study::parse(&folder, StudyProfile::Smoke).unwrap();
    let judged = verdict::judge(&study, &reader.header().plan, reader.trials(), reader.pairs());
    let intervals = judged.claims.iter().map(|claim| match claim.measured {
        ClaimMeasurement::Pairs { interval, .. } => interval,
        _ => panic!("{claim:?}"),
    });
    let [changed, all, same] = intervals.collect::<Vec<_>>()[..] else { panic!("three claims") };
    // A tenth of the one workload, all of the other.
    assert!(changed.high < 0.75 && changed.high < all.low && all.high < same.low, "{judged:?}");
    assert_eq!(paired.shown.stop, ComparisonStop::Decided, "long before it is as precise as 0.1 %");
    assert!(paired.series(ComparedMetric::Cpu).is_some(), "{paired:?}");
}
