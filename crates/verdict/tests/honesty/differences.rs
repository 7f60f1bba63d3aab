//! How often a difference is found where there is none: family-wise, over all that a study claims
//! and over all that a comparison of two records looks at.

use record::{FORMAT, RecordHeader, RunState};
use verdict::{DiffSide, DifferenceMeaning, Verdict, diff, judge};

use crate::at_most;
use crate::machine::Kind;
use crate::run::{run, study};
use crate::studies;

/// Eight claims that b is faster or costs less: whatever is said about them is wrong.
fn ratios() -> String {
    let claim = |metric: &str, clients: &str| {
        format!(
            "[[claims]]\nsays = \"{metric} {clients}\"\n\
             value = \"{metric}('b/s', 'clients={clients}') / {metric}('a/s', 'clients={clients}')\"\n\
             expect = \"> 1\"\n"
        )
    };
    let metrics = ["tps", "server_cpu_us_per_tx"];
    let each = metrics.iter().flat_map(|m| ["1", "2", "4", "8"].map(|clients| claim(m, clients)));
    each.collect()
}

/// As many claims about figures by themselves, with their median as the bound: of each metric those
/// of four points.
fn figures(median: f64) -> String {
    let claim = |metric: &str, clients: &str, bound: f64| {
        format!(
            "[[claims]]\nsays = \"{metric} {clients} alone\"\n\
             value = \"{metric}('b/s', 'clients={clients}')\"\nexpect = \">= {bound}\"\n"
        )
    };
    let each = ["1", "2", "4", "8"].map(|clients| claim("tps", clients, 1000.0 * median));
    each.concat()
}

#[test]
fn a_study_of_equal_variants_rarely_finds_a_difference() {
    check("8 ratios", |_| ratios(), &Kind::ALL);
}

/// Six rounds of a figure cannot show by themselves that their noise has one peak: where it has two,
/// all six lie on one side of the median, and close together, in one study of 32.
#[test]
fn a_study_rarely_misjudges_figures_by_themselves() {
    let kinds: Vec<Kind> = Kind::ALL.into_iter().filter(|kind| kind.is_stationary()).collect();
    check("4 figures", |kind| figures(kind.median()), &kinds);
    check("8 ratios and 4 figures", |kind| ratios() + &figures(kind.median()), &kinds);
}

fn check(what: &str, claims: impl Fn(Kind) -> String, kinds: &[Kind]) {
    let few = studies(100);
    println!("A/A studies with {what}, {few} each: with any verdict, without the correction");
    for &kind in kinds {
        let study = study(&claims(kind), "[1, 2, 4, 8]", 6);
        let (mut wrong, mut alone) = (0usize, 0usize);
        for seed in 0..few as u64 {
            let study = study.clone().with_seed(seed);
            let judged =
                judge(&study, &[], &run(&study, &mut kind.start(seed ^ 0xaa), |_| 1.0), &[]);
            let any = |of: fn(&verdict::ClaimVerdict) -> Verdict| {
                usize::from(judged.claims.iter().any(|claim| of(claim) != Verdict::CannotTell))
            };
            wrong += any(|claim| claim.verdict);
            alone += any(|claim| claim.alone);
        }
        let [wrong, alone] = [wrong, alone].map(|count| count as f64 / few as f64);
        println!("{kind:?}: {wrong:.3} {alone:.3}");
        assert!(wrong <= at_most(0.05, few), "{what}, {kind:?}: {wrong} of A/A studies judge");
    }
}

#[test]
fn two_records_of_the_same_rarely_differ() {
    let few = studies(100);
    println!("diff of two records of the same, 10 points x 2 metrics, {few} each");
    // A machine that drifts on between two runs is another machine; no comparison can know.
    for kind in Kind::ALL.into_iter().filter(|kind| kind.is_stationary()) {
        let study = study(&ratios(), "[1, 2, 4, 8, 16]", 6);
        let header = header();
        let mut wrong = 0usize;
        for seed in 0..few as u64 {
            let study = study.clone().with_seed(seed);
            let [before, after] = [seed ^ 0xb0, seed ^ 0xaf7e_0000]
                .map(|seed| run(&study, &mut kind.start(seed), |_| 1.0));
            let side = |trials| DiffSide { header: &header, study: &study, trials, pairs: &[] };
            let diff = diff(side(&before), side(&after));
            wrong += usize::from(
                diff.count(DifferenceMeaning::More) + diff.count(DifferenceMeaning::Less) > 0,
            );
        }
        let wrong = wrong as f64 / few as f64;
        println!("{kind:?}: {wrong:.3}");
        assert!(wrong <= at_most(0.05, few), "{kind:?}: {wrong} of A/A comparisons differ");
    }
}

pub(crate) fn header() -> RecordHeader {
    RecordHeader {
        format: FORMAT,
        pgrig: String::new(),
        study: String::new(),
        profile: String::new(),
        seed: 0,
        rounds: None,
        only: None,
        again: String::new(),
        started_at: String::new(),
        ended_at: None,
        state: RunState::Done,
        plan: Vec::new(),
        facts: Vec::new(),
        notes: Vec::new(),
        comparison: None,
        unprepared: Vec::new(),
        search: None,
    }
}
