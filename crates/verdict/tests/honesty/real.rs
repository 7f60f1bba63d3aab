//! The same with real noise: studies that are made of trials of the same thing on a real machine.
//! `real.csv` says how they were measured.

use record::Trial;
use spec::{ScheduledTrial, Study};
use stats::Prng;
use verdict::{DiffSide, DifferenceMeaning, Verdict, diff, judge};

use crate::differences::header;
use crate::run::{study, trial};
use crate::{at_most, studies};

const MEASURED: &str = include_str!("real.csv");

/// The metrics that were measured, in the columns' order.
const METRICS: [&str; 3] = ["tps", "latency_p50_ms", "latency_p99_ms"];

type Row = [f64; 3];

/// The workloads and their trials in the order in which they were measured. In the studies below,
/// `clients=1` stands for the first workload and `clients=2` for the second.
fn measured() -> [Vec<Row>; 2] {
    ["select-only", "tpcb-like"].map(|workload| {
        let own =
            MEASURED.lines().filter_map(|line| line.strip_prefix(workload)?.strip_prefix(','));
        let row = |line: &str| {
            let values = line.split(',').map(|value| value.parse().expect("a number"));
            values.collect::<Vec<f64>>().try_into().expect("three figures")
        };
        own.map(row).collect()
    })
}

/// How a study is made of measured trials.
#[derive(Clone, Copy, Debug)]
enum Draw {
    /// Each trial is any of them.
    Any,
    /// Trials that follow each other in the study followed each other on the machine: what it was
    /// busy with is in them.
    Neighbours,
}

fn resampled(study: &Study, measured: &[Vec<Row>; 2], draw: Draw, seed: u64) -> Vec<Trial> {
    let mut prng = Prng::new(seed);
    let mut next = measured.each_ref().map(|rows| prng.below(rows.len()));
    let trials = study.trials(None).into_iter().map(|planned: ScheduledTrial| {
        let axes = &study.points[planned.point].name.axes;
        let which = usize::from(axes.iter().any(|(_, value)| value == "2"));
        let rows = &measured[which];
        let row = match draw {
            Draw::Any => rows[prng.below(rows.len())],
            Draw::Neighbours => {
                next[which] += 1;
                rows[next[which] % rows.len()]
            }
        };
        let figures: Vec<(&str, f64)> = METRICS.into_iter().zip(row).collect();
        trial(study, &planned, &figures)
    });
    trials.collect()
}

/// Each metric of each workload of b against that of a.
fn claims() -> String {
    let claim = |metric: &str, clients: u32| {
        format!(
            "[[claims]]\nsays = \"{metric} {clients}\"\n\
             value = \"{metric}('b/s', 'clients={clients}') / {metric}('a/s', 'clients={clients}')\"\n\
             expect = \"> 1\"\n"
        )
    };
    METRICS.iter().flat_map(|metric| [claim(metric, 1), claim(metric, 2)]).collect()
}

#[test]
fn studies_of_real_trials_of_the_same_rarely_find_a_difference() {
    let (few, measured) = (studies(300), measured());
    for rows in &measured {
        assert!(rows.len() >= 100, "{} trials", rows.len());
    }
    println!(
        "A/A of real trials with 6 claims, {few} each: any verdict, without the correction, diff"
    );
    let header = header();
    for (rounds, draw) in
        [6, 10].into_iter().flat_map(|n| [Draw::Any, Draw::Neighbours].map(|draw| (n, draw)))
    {
        let study = study(&claims(), "[1, 2]", rounds);
        let (mut wrong, mut alone, mut differs) = (0usize, 0usize, 0usize);
        for seed in 0..few as u64 {
            let study = study.clone().with_seed(seed);
            let trials = resampled(&study, &measured, draw, seed);
            let judged = judge(&study, &[], &trials, &[]);
            let any = |of: fn(&verdict::ClaimVerdict) -> Verdict| {
                usize::from(judged.claims.iter().any(|claim| of(claim) != Verdict::CannotTell))
            };
            wrong += any(|claim| claim.verdict);
            alone += any(|claim| claim.alone);
            let others = resampled(&study, &measured, Draw::Any, seed ^ 0xd1ff);
            let side = |trials| DiffSide { header: &header, study: &study, trials, pairs: &[] };
            let diff = diff(side(&trials), side(&others));
            differs += usize::from(
                diff.count(DifferenceMeaning::More) + diff.count(DifferenceMeaning::Less) > 0,
            );
        }
        let [wrong, alone, differs] = [wrong, alone, differs].map(|n| n as f64 / few as f64);
        println!("{rounds} rounds, {draw:?}: {wrong:.3} {alone:.3} {differs:.3}");
        assert!(wrong <= at_most(0.05, few), "{rounds} rounds, {draw:?}: {wrong}");
        // Neighbours on the machine that are a record of their own are a different hour of it.
        if matches!(draw, Draw::Any) {
            assert!(differs <= at_most(0.05, few), "diff, {rounds} rounds: {differs}");
        }
    }
}
