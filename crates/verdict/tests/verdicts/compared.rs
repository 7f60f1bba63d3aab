//! A record of `pgrig compare`.

use record::comparison::{
    ComparedMetric, Comparison, ComparisonFigure, ComparisonStop, FigureVerdict as Seen,
    InstanceFindings, MetricRatio, PairResults, ServerDifference, ServerRenewal, WorkComparison,
};
use record::{MeasuringConditions, RatioSeries};

use super::*;

/// The verdicts on throughput, on the figures that no claim can speak of, and on failed transactions; and
/// the answer.
fn judged(
    ratio: f64,
    change: &dyn Fn(&mut PairResults),
    decides: &[ComparedMetric],
) -> (Vec<Verdict>, String) {
    judged_within(0.03, ratio, change, decides)
}

/// The same with this threshold.
fn judged_within(
    threshold: f64,
    ratio: f64,
    change: &dyn Fn(&mut PairResults),
    decides: &[ComparedMetric],
) -> (Vec<Verdict>, String) {
    let judgement = judgement(threshold, ratio, change, decides);
    (judgement.claims.iter().map(|claim| claim.verdict).collect(), judgement.answer)
}

fn judgement(
    threshold: f64,
    ratio: f64,
    change: &dyn Fn(&mut PairResults),
    decides: &[ComparedMetric],
) -> StudyVerdicts {
    let [metric, ..] = decides else { panic!("nothing decides") };
    let interval = MetricRatio {
        value: ratio,
        low: ratio * 0.999,
        high: ratio * 1.001,
        confidence: 0.975,
        n: 20,
        method: String::new(),
    };
    let figure = ComparisonFigure {
        metric: *metric,
        unit: metric.unit().to_owned(),
        a: 1000.0,
        b: 1000.0 * ratio,
        b_over_a: Some(interval),
        verdict: match (ratio < 1.0) == metric.higher_is_better() {
            true => Seen::Worse,
            false => Seen::Better,
        },
        deciding: true,
    };
    let mut shown = PairResults {
        figures: vec![figure],
        instances: InstanceFindings {
            renewal: ServerRenewal::Restarted,
            segments: 20,
            ..InstanceFindings::default()
        },
        stop: ComparisonStop::Time,
        work: WorkComparison { rehearsed: 100, ..WorkComparison::default() },
        ..PairResults::default()
    };
    change(&mut shown);
    let series =
        RatioSeries::new(ComparedMetric::Throughput, vec![1000.0 * ratio; 20], vec![1000.0; 20]);
    let paired = PairingAttempt {
        above: "B".to_owned(),
        below: "A".to_owned(),
        scenario: "s".to_owned(),
        axes: BTreeMap::new(),
        series: vec![series],
        shown,
        ..attempt_at_pairs(AttemptEnding::Done)
    };
    // Each figure that decides has 97.5 %.
    let confidence = 1.0 - 0.025 * decides.len() as f64;
    let decides = decides.to_vec();
    let comparison = Comparison { threshold, confidence, decides, ..Comparison::default() };
    let text = "question = \"?\"\n[variants.A]\n[variants.B]\n[workloads.w]\nbuiltin = \"select-only\"\n\
                [scenarios.s]\nrun = [\"w\"]\n";
    let files = [("study.toml".to_owned(), text.to_owned())].into();
    let folder = StudyFolder { name: "compare".to_owned(), files, is_private: false };
    let study = Study::parse(&folder, StudyProfile::Quick).expect("a study");
    let study = comparison.study(&study).expect("its sides are there");
    let header = RecordHeader { comparison: Some(comparison), ..diffs::header("15.18") };
    let judgement = verdict::judge_record(&study, &header, &[], &[paired]);
    // A claim has the interval of the table, where figures hold together.
    for claim in &judgement.claims {
        if let ClaimMeasurement::Pairs { interval, .. } = &claim.measured {
            assert!((interval.confidence - 0.975).abs() < 1e-12, "{interval:?}");
        }
    }
    judgement
}

#[test]
fn a_percentile_out_of_reach_does_not_hide_a_throughput_that_is_clear() {
    let check = |ratio, change: &dyn Fn(&mut PairResults), expected: &[ClaimKind]| {
        let decides = [ComparedMetric::Throughput, ComparedMetric::P95];
        let claims = judgement(0.03, ratio, change, &decides).claims;
        assert_eq!(claims[1].verdict, Verdict::CannotTell, "{claims:?}");
        let kinds: Vec<ClaimKind> = claims.iter().map(|claim| claim.kind).collect();
        assert_eq!(kinds, expected, "{ratio}: {claims:?}");
    };
    let [may_fail, must_hold] = [ClaimKind::Finding, ClaimKind::Invariant];
    check(129.9, &|_| {}, &[must_hold, may_fail, must_hold, must_hold]);
    check(0.9, &|_| {}, &[must_hold, may_fail, must_hold, must_hold]);
    // Nothing can be told, or the percentile is not known because transactions failed.
    check(129.9, &|shown| shown.stop = ComparisonStop::Interrupted, &[must_hold; 4]);
    let fails = |shown: &mut PairResults| shown.conditions.failed_share_max = 0.1;
    check(129.9, &fails, &[must_hold; 4]);
}

#[test]
fn b_is_not_worse_unless_something_stands_against_it() {
    use Verdict::{CannotTell, DoesNotHold, Holds};
    let check = |ratio, change: &dyn Fn(&mut PairResults), expected: [Verdict; 2]| {
        let (verdicts, answer) = judged(ratio, change, &[ComparedMetric::Throughput]);
        assert_eq!(verdicts[..2], expected, "{ratio}: {answer}");
        assert_eq!(verdicts[2..], [Holds], "B does the same");
    };
    let nothing = |_: &mut PairResults| {};
    check(1.2, &nothing, [Holds, Holds]);
    check(0.99, &nothing, [Holds, Holds]);
    check(0.95, &nothing, [DoesNotHold, Holds]);
    // Servers that are never restarted may differ by 3 % for good.
    check(0.95, &|shown| shown.instances.renewal = ServerRenewal::Kept, [CannotTell, Holds]);
    check(0.90, &|shown| shown.instances.renewal = ServerRenewal::Kept, [DoesNotHold, Holds]);
    let quiet = MeasuringConditions::default();
    let busy = MeasuringConditions { busy_share_max: 0.92, ..quiet };
    check(0.9, &|shown| shown.conditions = busy, [CannotTell, Holds]);
    check(0.9, &|shown| shown.stop = ComparisonStop::Died, [CannotTell, Holds]);
    check(0.9, &|shown| shown.stop = ComparisonStop::Interrupted, [CannotTell, Holds]);
    let failing = |shares, difference| {
        let conditions =
            MeasuringConditions { failed_shares: shares, failed_difference: difference, ..quiet };
        move |shown: &mut PairResults| shown.conditions = conditions
    };
    // What is shown counts, however small it is; what is not is open where much may be.
    check(1.2, &failing([0.0, 0.02], Some([0.015, 0.025])), [Holds, DoesNotHold]);
    check(1.2, &failing([0.0, 0.0094], Some([0.008, 0.011])), [Holds, DoesNotHold]);
    check(1.2, &failing([0.0, 0.0094], Some([-0.002, 0.03])), [Holds, CannotTell]);
    check(1.2, &failing([0.005, 0.006], Some([-0.002, 0.004])), [Holds, Holds]);
    check(1.2, &failing([0.02, 0.0], Some([-0.03, -0.01])), [Holds, Holds]);
    // Few transactions, of which none failed.
    check(1.2, &failing([0.0, 0.0], Some([-0.1, 0.1])), [Holds, Holds]);
    check(1.2, &failing([0.0, 0.0094], None), [Holds, CannotTell]);
}

#[test]
fn a_side_that_does_something_else_has_no_speed() {
    use Verdict::{CannotTell, DoesNotHold, Holds};
    let check = |work: WorkComparison, expected: &[Verdict], begins: &str| {
        let change = |shown: &mut PairResults| {
            shown.conditions.is_other_work = !work.differences.is_empty();
            shown.work = work.clone();
        };
        let (verdicts, answer) = judged(1.2, &change, &[ComparedMetric::Throughput]);
        assert_eq!(verdicts, expected, "{answer}");
        assert!(answer.starts_with(begins), "{answer}");
    };
    let same = WorkComparison { answers: 100, ..WorkComparison::default() };
    let differences = vec!["“UPDATE …” ends with UPDATE 0 on B".to_owned()];
    check(same.clone(), &[Holds, Holds, Holds], "B is faster");
    let other = "B does something else than A: “UPDATE …” ends with UPDATE 0 on B. No speed";
    check(WorkComparison { differences, ..same }, &[CannotTell, Holds, DoesNotHold], other);
    // A record of an earlier version compared nothing.
    check(WorkComparison::default(), &[Holds, Holds, CannotTell], "B is faster");
}

#[test]
fn a_difference_that_no_option_names_leaves_no_verdict() {
    use Verdict::{CannotTell, Holds};
    let difference = |name: &str, level: Option<&str>| ServerDifference {
        name: name.to_owned(),
        a: Some("C (libc)".to_owned()),
        b: Some("C.UTF-8 (libc)".to_owned()),
        level: level.map(str::to_owned),
    };
    let check = |ratio: f64, ground: &[ServerDifference], expected: Verdict, answer: &str| {
        let change = |shown: &mut PairResults| shown.refuse_other_ground(ground.to_vec(), 0.03);
        let (verdicts, seen) = judged(ratio, &change, &[ComparedMetric::Throughput]);
        assert_eq!(verdicts, [expected, Holds, Holds], "{seen}");
        assert!(seen.starts_with(answer), "{seen}");
    };
    let collation = difference("collation", Some("--locale"));
    let told = "Cannot tell what B is like: collation is C (libc) on A and C.UTF-8 (libc) on B, and no option names \
                it. Next: make both sides alike (--locale), or say that it is meant: --differs collation.";
    for ratio in [18.0, 1.0, 0.9] {
        check(ratio, std::slice::from_ref(&collation), CannotTell, told);
    }
    let both = [difference("postgis", None), collation];
    let more = "Cannot tell what B is like: postgis is C (libc) on A and C.UTF-8 (libc) on B, and 1 difference more, and \
                no option names them. Next: make both sides alike (--locale), or say that it is meant: --differs \
                postgis,collation.";
    check(18.0, &both, CannotTell, more);
    check(18.0, &[], Holds, "B is faster");
}

#[test]
fn an_answer_says_first_that_more_transactions_fail_and_what_was_tested() {
    let fails = |shown: &mut PairResults| {
        shown.conditions.failed_shares = [0.0, 0.0094];
        shown.conditions.failed_difference = Some([0.008, 0.011]);
    };
    let (_, answer) = judged(1.2, &fails, &[ComparedMetric::Throughput]);
    let said = "More transactions fail on B: 0 % of A's, 0.94 % of B's; B's share less A's is within 0.80 and 1.1 \
                percentage points (99 % interval from segment to segment): B fails more. B is faster than A: ";
    assert!(answer.starts_with(said), "{answer}");
}

#[test]
fn the_answer_begins_with_the_first_figure_that_decides() {
    let (verdicts, answer) =
        judged(0.9, &|_| {}, &[ComparedMetric::Throughput, ComparedMetric::P99]);
    let said = "B is slower than A: 0.9000× [0.8991, 0.9009] of A's throughput (20 restarts, 0 pairs, 0 s). \
                Too few transactions for the 99th percentile of latency.";
    assert_eq!(answer, said);
    assert_eq!(verdicts[1], Verdict::CannotTell);
    // No claim can speak of WAL: its own interval decides, here of 10 % more.
    assert_eq!(judged(1.1, &|_| {}, &[ComparedMetric::Wal]).0[0], Verdict::DoesNotHold);
}

#[test]
fn claims_have_the_confidence_of_the_table_whichever_figure_lacks_an_interval() {
    let without_first = |shown: &mut PairResults| shown.figures.clear();
    // The helper looks at the interval of throughput, which is in the series.
    let (verdicts, _) =
        judged(0.99, &without_first, &[ComparedMetric::P99, ComparedMetric::Throughput]);
    assert_eq!(verdicts[..2], [Verdict::CannotTell, Verdict::Holds]);
}

#[test]
fn a_difference_below_the_floor_of_identical_servers_is_none_for_a_claim_either() {
    use Verdict::{CannotTell, DoesNotHold, Holds};
    let check = |threshold, ratio, segments, expected: Verdict| {
        let change = |shown: &mut PairResults| shown.instances.segments = segments;
        for metric in [ComparedMetric::Throughput, ComparedMetric::ContextSwitches] {
            let ratio = if metric.higher_is_better() { ratio } else { 1.0 / ratio };
            let seen = judged_within(threshold, ratio, &change, &[metric]).0[0];
            assert_eq!(seen, expected, "{metric:?} {threshold} {ratio} {segments}");
        }
    };
    // The floor of five restarts is 1.3 %, that of nine 1.0 %.
    check(0.01, 1.0, 5, CannotTell);
    check(0.01, 1.0, 9, Holds);
    check(0.01, 0.988, 5, CannotTell);
    check(0.01, 0.988, 9, DoesNotHold);
    check(0.01, 1.05, 5, Holds);
    check(0.03, 0.99, 5, Holds);
}

#[test]
fn a_figure_that_no_claim_can_speak_of_is_judged_as_claims_are() {
    use Verdict::{CannotTell, DoesNotHold, Holds};
    let check = |change: &dyn Fn(&mut PairResults), expected: Verdict, words: &str| {
        let (verdicts, answer) = judged(1.0, change, &[ComparedMetric::Wal]);
        assert_eq!(verdicts[0], expected, "{answer}");
        assert!(answer.contains(words), "{answer}");
    };
    let ratio = |low: f64, high: f64| {
        move |shown: &mut PairResults| {
            let ratio = shown.figures[0].b_over_a.as_mut().expect("a ratio");
            (ratio.value, ratio.low, ratio.high) = ((low * high).sqrt(), low, high);
            shown.figures[0].verdict = Seen::CannotTell;
        }
    };
    let sides = |a: f64, b: f64| {
        move |shown: &mut PairResults| {
            shown.figures[0] =
                ComparisonFigure { a, b, b_over_a: None, ..shown.figures[0].clone() };
        }
    };
    check(&ratio(0.955, 1.006), Holds, "Cannot tell whether");
    check(&ratio(0.955, 1.05), CannotTell, "Cannot tell whether");
    check(&ratio(1.04, 1.06), CannotTell, "Cannot tell whether");
    check(&sides(3.0, 4.0), Holds, "next to nothing of WAL per transaction: 3.00 bytes on A");
    check(&sides(0.0, 1e6), CannotTell, "no quotient: 0 bytes on A, 1,000,000 bytes on B");
    for stop in [ComparisonStop::Died, ComparisonStop::Interrupted] {
        let (verdicts, _) = judged(1.1, &|shown| shown.stop = stop, &[ComparedMetric::Wal]);
        assert_eq!(verdicts[0], CannotTell);
    }
    assert_eq!(judged(1.1, &|_| {}, &[ComparedMetric::Wal]).0[0], DoesNotHold);
}
