//! A record of `pgrig compare`.

use record::comparison::{
    Comparison, Figure, Instances, Metric, Ratio, Renewal, ServerDifference, Shown, Stop,
    Verdict as Seen, WorkComparison,
};
use record::{Conditions, Series};

use super::*;

/// The verdicts on throughput, on the figures that no claim can speak of, and on failed transactions; and
/// the answer.
fn judged(ratio: f64, change: &dyn Fn(&mut Shown), decides: &[Metric]) -> (Vec<Verdict>, String) {
    judged_within(0.03, ratio, change, decides)
}

/// The same with this threshold.
fn judged_within(
    threshold: f64,
    ratio: f64,
    change: &dyn Fn(&mut Shown),
    decides: &[Metric],
) -> (Vec<Verdict>, String) {
    let judgement = judgement(threshold, ratio, change, decides);
    (judgement.claims.iter().map(|claim| claim.verdict).collect(), judgement.answer)
}

fn judgement(
    threshold: f64,
    ratio: f64,
    change: &dyn Fn(&mut Shown),
    decides: &[Metric],
) -> Judgement {
    let [metric, ..] = decides else { panic!("nothing decides") };
    let interval = Ratio {
        value: ratio,
        low: ratio * 0.999,
        high: ratio * 1.001,
        confidence: 0.975,
        n: 20,
        method: String::new(),
    };
    let figure = Figure {
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
    let mut shown = Shown {
        figures: vec![figure],
        instances: Instances { renewal: Renewal::Restarted, segments: 20, ..Instances::default() },
        stop: Stop::Time,
        work: WorkComparison { rehearsed: 100, ..WorkComparison::default() },
        ..Shown::default()
    };
    change(&mut shown);
    let series = Series::new(Metric::Throughput, vec![1000.0 * ratio; 20], vec![1000.0; 20]);
    let paired = Paired {
        above: "B".to_owned(),
        below: "A".to_owned(),
        scenario: "s".to_owned(),
        axes: BTreeMap::new(),
        series: vec![series],
        shown,
        ..attempt_at_pairs(Ending::Done)
    };
    // Each figure that decides has 97.5 %.
    let confidence = 1.0 - 0.025 * decides.len() as f64;
    let decides = decides.to_vec();
    let comparison = Comparison { threshold, confidence, decides, ..Comparison::default() };
    let text = "question = \"?\"\n[variants.A]\n[variants.B]\n[workloads.w]\nbuiltin = \"select-only\"\n\
                [scenarios.s]\nrun = [\"w\"]\n";
    let files = [("study.toml".to_owned(), text.to_owned())].into();
    let folder = Folder { name: "compare".to_owned(), files, is_private: false };
    let study = Study::parse(&folder, Profile::Quick).expect("a study");
    let study = comparison.study(&study).expect("its sides are there");
    let header = Header { comparison: Some(comparison), ..diffs::header("15.18") };
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
    let check = |ratio, change: &dyn Fn(&mut Shown), expected: &[ClaimKind]| {
        let decides = [Metric::Throughput, Metric::P95];
        let claims = judgement(0.03, ratio, change, &decides).claims;
        assert_eq!(claims[1].verdict, Verdict::CannotTell, "{claims:?}");
        let kinds: Vec<ClaimKind> = claims.iter().map(|claim| claim.kind).collect();
        assert_eq!(kinds, expected, "{ratio}: {claims:?}");
    };
    let [may_fail, must_hold] = [ClaimKind::Finding, ClaimKind::Invariant];
    check(129.9, &|_| {}, &[must_hold, may_fail, must_hold, must_hold]);
    check(0.9, &|_| {}, &[must_hold, may_fail, must_hold, must_hold]);
    // Nothing can be told, or the percentile is not known because transactions failed.
    check(129.9, &|shown| shown.stop = Stop::Interrupted, &[must_hold; 4]);
    let fails = |shown: &mut Shown| shown.conditions.failed_share_max = 0.1;
    check(129.9, &fails, &[must_hold; 4]);
}

#[test]
fn b_is_not_worse_unless_something_stands_against_it() {
    use Verdict::{CannotTell, DoesNotHold, Holds};
    let check = |ratio, change: &dyn Fn(&mut Shown), expected: [Verdict; 2]| {
        let (verdicts, answer) = judged(ratio, change, &[Metric::Throughput]);
        assert_eq!(verdicts[..2], expected, "{ratio}: {answer}");
        assert_eq!(verdicts[2..], [Holds], "B does the same");
    };
    let nothing = |_: &mut Shown| {};
    check(1.2, &nothing, [Holds, Holds]);
    check(0.99, &nothing, [Holds, Holds]);
    check(0.95, &nothing, [DoesNotHold, Holds]);
    // Servers that are never restarted may differ by 3 % for good.
    check(0.95, &|shown| shown.instances.renewal = Renewal::Kept, [CannotTell, Holds]);
    check(0.90, &|shown| shown.instances.renewal = Renewal::Kept, [DoesNotHold, Holds]);
    let quiet = Conditions::default();
    let busy = Conditions { busy_share_max: 0.92, ..quiet };
    check(0.9, &|shown| shown.conditions = busy, [CannotTell, Holds]);
    check(0.9, &|shown| shown.stop = Stop::Died, [CannotTell, Holds]);
    check(0.9, &|shown| shown.stop = Stop::Interrupted, [CannotTell, Holds]);
    let failing = |shares, difference| {
        let conditions =
            Conditions { failed_shares: shares, failed_difference: difference, ..quiet };
        move |shown: &mut Shown| shown.conditions = conditions
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
        let change = |shown: &mut Shown| {
            shown.conditions.is_other_work = !work.differences.is_empty();
            shown.work = work.clone();
        };
        let (verdicts, answer) = judged(1.2, &change, &[Metric::Throughput]);
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
        let change = |shown: &mut Shown| shown.refuse_other_ground(ground.to_vec(), 0.03);
        let (verdicts, seen) = judged(ratio, &change, &[Metric::Throughput]);
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
    let fails = |shown: &mut Shown| {
        shown.conditions.failed_shares = [0.0, 0.0094];
        shown.conditions.failed_difference = Some([0.008, 0.011]);
    };
    let (_, answer) = judged(1.2, &fails, &[Metric::Throughput]);
    let said = "More transactions fail on B: 0 % of A's, 0.94 % of B's; B's share less A's is within 0.80 and 1.1 \
                percentage points (99 % interval from segment to segment): B fails more. B is faster than A: ";
    assert!(answer.starts_with(said), "{answer}");
}

#[test]
fn the_answer_begins_with_the_first_figure_that_decides() {
    let (verdicts, answer) = judged(0.9, &|_| {}, &[Metric::Throughput, Metric::P99]);
    let said = "B is slower than A: 0.9000× [0.8991, 0.9009] of A's throughput (20 restarts, 0 pairs, 0 s). \
                Too few transactions for the 99th percentile of latency.";
    assert_eq!(answer, said);
    assert_eq!(verdicts[1], Verdict::CannotTell);
    // No claim can speak of WAL: its own interval decides, here of 10 % more.
    assert_eq!(judged(1.1, &|_| {}, &[Metric::Wal]).0[0], Verdict::DoesNotHold);
}

#[test]
fn claims_have_the_confidence_of_the_table_whichever_figure_lacks_an_interval() {
    let without_first = |shown: &mut Shown| shown.figures.clear();
    // The helper looks at the interval of throughput, which is in the series.
    let (verdicts, _) = judged(0.99, &without_first, &[Metric::P99, Metric::Throughput]);
    assert_eq!(verdicts[..2], [Verdict::CannotTell, Verdict::Holds]);
}

#[test]
fn a_difference_below_the_floor_of_identical_servers_is_none_for_a_claim_either() {
    use Verdict::{CannotTell, DoesNotHold, Holds};
    let check = |threshold, ratio, segments, expected: Verdict| {
        let change = |shown: &mut Shown| shown.instances.segments = segments;
        for metric in [Metric::Throughput, Metric::ContextSwitches] {
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
    let check = |change: &dyn Fn(&mut Shown), expected: Verdict, words: &str| {
        let (verdicts, answer) = judged(1.0, change, &[Metric::Wal]);
        assert_eq!(verdicts[0], expected, "{answer}");
        assert!(answer.contains(words), "{answer}");
    };
    let ratio = |low: f64, high: f64| {
        move |shown: &mut Shown| {
            let ratio = shown.figures[0].b_over_a.as_mut().expect("a ratio");
            (ratio.value, ratio.low, ratio.high) = ((low * high).sqrt(), low, high);
            shown.figures[0].verdict = Seen::CannotTell;
        }
    };
    let sides = |a: f64, b: f64| {
        move |shown: &mut Shown| {
            shown.figures[0] = Figure { a, b, b_over_a: None, ..shown.figures[0].clone() };
        }
    };
    check(&ratio(0.955, 1.006), Holds, "Cannot tell whether");
    check(&ratio(0.955, 1.05), CannotTell, "Cannot tell whether");
    check(&ratio(1.04, 1.06), CannotTell, "Cannot tell whether");
    check(&sides(3.0, 4.0), Holds, "next to nothing of WAL per transaction: 3.00 bytes on A");
    check(&sides(0.0, 1e6), CannotTell, "no quotient: 0 bytes on A, 1,000,000 bytes on B");
    for stop in [Stop::Died, Stop::Interrupted] {
        let (verdicts, _) = judged(1.1, &|shown| shown.stop = stop, &[Metric::Wal]);
        assert_eq!(verdicts[0], CannotTell);
    }
    assert_eq!(judged(1.1, &|_| {}, &[Metric::Wal]).0[0], DoesNotHold);
}
