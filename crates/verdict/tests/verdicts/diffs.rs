//! Two records side by side.

use record::RatioSeries;
use record::comparison::ComparedMetric;

use super::*;

/// A header of a run on some PostgreSQL, which takes a time of its own.
pub(super) fn header(version: &str) -> RecordHeader {
    let fact = |group: &str, name: &str, value: String| MachineFact {
        group: group.to_owned(),
        name: name.to_owned(),
        value,
    };
    RecordHeader {
        format: record::FORMAT,
        pgrig: "0.1.0".to_owned(),
        study: "mine".to_owned(),
        profile: "quick".to_owned(),
        seed: 1,
        rounds: None,
        only: None,
        again: String::new(),
        started_at: String::new(),
        ended_at: None,
        state: RunState::Done,
        plan: Vec::new(),
        facts: vec![
            fact("PostgreSQL", "version", version.to_owned()),
            fact("time", "wall time", format!("{version} s")),
        ],
        notes: Vec::new(),
        comparison: None,
        unprepared: Vec::new(),
        search: None,
    }
}

/// Six rounds of variant a whose figures spread by 0.2 %.
fn steady(tps: f64, p99_ms: f64) -> Vec<Trial> {
    let values = (0..6).map(|round| {
        let jitter = 1.0 + 0.002 * [0.3, -1.0, 1.2, -0.6, 0.9, -0.8][round];
        trial(round + 1, "a", &[("tps", tps * jitter), ("latency_p99_ms", p99_ms * jitter)])
    });
    values.collect()
}

fn compared(before: &[Trial], after: &[Trial]) -> RecordDiff {
    let (study, header) = (study(), header("15.18"));
    let side = |trials| DiffSide { header: &header, study: &study, trials, pairs: &[] };
    diff(side(before), side(after))
}

#[test]
fn two_records_differ_by_more_than_the_spread_of_their_rounds_or_it_cannot_be_told() {
    use DifferenceMeaning::{CannotTell, Less, More, Same};
    let check = |before: &[Trial], after: &[Trial], expected: [DifferenceMeaning; 2]| {
        let found = compared(before, after).differences;
        assert_eq!(found.iter().map(|d| d.change).collect::<Vec<_>>(), expected);
    };
    check(&steady(1000.0, 5.0), &steady(1300.0, 4.0), [More, Less]);
    check(&steady(1300.0, 4.0), &steady(1000.0, 5.0), [Less, More]);
    check(&steady(1000.0, 5.0), &steady(1002.0, 5.01), [Same; 2]);
    check(&steady(1000.0, 5.0), &steady(1020.0, 5.1), [CannotTell; 2]);
    check(&steady(1000.0, 5.0), &steady(1300.0, 4.0)[..3], [CannotTell; 2]);
    let found = compared(&steady(1000.0, 5.0), &steady(1300.0, 4.0)[..2]).differences;
    let ratio = found[0].ratio.unwrap();
    assert!(ratio.low < 1.3 && 1.3 < ratio.high * 1.01, "{ratio:?}");
    assert_eq!(found[0].point, "a/s clients=8");
    assert!((found[0].before - 1000.0).abs() < 0.1);
}

#[test]
fn a_figure_that_is_a_lower_bound_in_any_round_has_not_changed_as_far_as_is_known() {
    let (before, mut after) = (steady(1000.0, 5.0), steady(1300.0, 4.0));
    let scopes = [String::new()].into_iter().collect();
    after[2].at_least.insert("latency_p99_ms".to_owned(), scopes);
    let found = compared(&before, &after).differences;
    let shown: Vec<_> = found.iter().map(|one| (one.is_at_least, one.alone, one.change)).collect();
    let unknown = ([false, true], DifferenceMeaning::CannotTell, DifferenceMeaning::CannotTell);
    assert_eq!(
        shown,
        [([false, false], DifferenceMeaning::More, DifferenceMeaning::More), unknown]
    );
}

#[test]
fn each_metric_is_judged_by_its_own_noise() {
    // Throughput that spreads by half hides nothing of a latency that is steady.
    let noisy = |p99_ms: f64| -> Vec<Trial> {
        let mut trials = steady(1000.0, p99_ms);
        for trial in &mut trials {
            let tps = [600.0, 1400.0, 900.0, 1500.0, 700.0, 1100.0][trial.round - 1];
            trial.metrics.get_mut("tps").unwrap().insert(String::new(), tps);
        }
        trials
    };
    let diff = compared(&noisy(5.0), &noisy(5.5));
    let found: Vec<DifferenceMeaning> = diff.differences.iter().map(|one| one.change).collect();
    assert_eq!(found, [DifferenceMeaning::CannotTell, DifferenceMeaning::More]);
    let summary = "Of 2 figures, 1 differ between these two runs (1 more, 0 less), 0 are the same, 1 \
                   cannot be told. Two runs of the same thing may differ as well";
    assert!(diff.summary().starts_with(summary), "{}", diff.summary());
}

#[test]
fn what_two_runs_differ_in_is_said() {
    let with_settings = STUDY.replace("[answer]", "[settings]\nwork_mem = \"8MB\"\n[answer]");
    let (before, after) = (study(), parse(&with_settings));
    let (first, second) = (header("15.18"), header("18.1"));
    let trials = steady(1000.0, 5.0);
    let diff = diff(
        DiffSide { header: &first, study: &before, trials: &trials, pairs: &[] },
        DiffSide { header: &second, study: &after, trials: &trials, pairs: &[] },
    );
    let said: Vec<String> = diff
        .conditions
        .iter()
        .map(|one| format!("{}: {} → {} ({})", one.what, one.before, one.after, one.points.len()))
        .collect();
    assert_eq!(said, ["PostgreSQL version: 15.18 → 18.1 (0)", "work_mem of primary: – → 8MB (3)"]);
    assert!(diff.summary().ends_with("; the runs differ in more than time, see above."));
}

#[test]
fn pairs_are_compared_by_the_quotients_of_their_restarts() {
    use DifferenceMeaning::{CannotTell, Less, Same};
    let check = |before: f64, after: f64, restarts: usize, expected: DifferenceMeaning| {
        let (study, header) = (study(), header("15.18"));
        let pairs = [before, after].map(|ratio| {
            let jitter = |at: usize| 1.0 + 0.002 * [0.3, -1.0, 1.2, -0.6, 0.9, -0.8][at];
            let above = (0..restarts).map(|at| 1000.0 * ratio * jitter(at)).collect();
            let series =
                RatioSeries::new(ComparedMetric::Throughput, above, vec![1000.0; restarts]);
            vec![PairingAttempt { series: vec![series], ..attempt_at_pairs(AttemptEnding::Done) }]
        });
        let side = |pairs| DiffSide { header: &header, study: &study, trials: &[], pairs };
        let found = diff(side(&pairs[0]), side(&pairs[1])).differences;
        let seen: Vec<_> = found.iter().map(|one| (one.metric.name, one.change)).collect();
        assert_eq!(seen, [("tps", expected)], "{before} {after} {restarts}");
    };
    check(1.0, 0.8, 6, Less);
    check(0.8, 0.8, 6, Same);
    check(1.0, 0.8, 5, CannotTell);
}
