//! A record of `pgrig compare`.

use record::comparison::{
    Comparison, Figure, Instances, Metric, Ratio, Renewal, Shown, Stop, Verdict as Seen,
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
        if let Measured::Pairs { interval, .. } = &claim.measured {
            assert!((interval.confidence - 0.975).abs() < 1e-12, "{interval:?}");
        }
    }
    (judgement.claims.iter().map(|claim| claim.verdict).collect(), judgement.answer)
}

#[test]
fn b_is_not_worse_unless_something_stands_against_it() {
    use Verdict::{CannotTell, DoesNotHold, Holds};
    let check = |ratio, change: &dyn Fn(&mut Shown), expected: [Verdict; 2]| {
        let (verdicts, answer) = judged(ratio, change, &[Metric::Throughput]);
        assert_eq!(verdicts, expected, "{ratio}: {answer}");
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
    let fails = Conditions { failed_shares: [0.0, 0.02], ..quiet };
    check(1.2, &|shown| shown.conditions = fails, [Holds, DoesNotHold]);
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
