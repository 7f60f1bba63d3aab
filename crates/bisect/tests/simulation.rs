//! Bisections of 64 commits whose truth is known: the rule for a step and the search, held against a
//! machine whose servers differ from restart to restart.
//!
//! `PGRIG_SIMULATIONS=1000 cargo test --release -p bisect --test simulation -- --nocapture` prints the
//! table of docs/measurements/compare.md.

#![expect(clippy::print_stdout, reason = "the table of the big run")]

use bisect::{
    CommitSearch, CommitVerdict, IntervalPosition, RatioThreshold, SearchAnswer, error_per_step,
};
use stats::{Prng, sequence};

const COMMITS: usize = 64;

/// The error of a whole bisection.
const ERROR: f64 = 0.05;

/// Instances of the reference machine differ by 1.5 %, octets by 7.5 %; eight octets between restarts.
const PER_RESTART: f64 = 0.0305;

/// Commits that mean no harm change throughput by this, as a standard deviation.
const NOISE: f64 = 0.001;

/// Restarts of 19 s for which a step has time: 30 minutes, and 90.
const RESTARTS: [usize; 2] = [95, 285];

/// A level of B ÷ A that wanders from restart to restart: how much of it the next one has, and its standard deviation.
const DRIFTS: [f64; 2] = [0.9, 0.98];
const DRIFT: f64 = 0.015;

struct Machine {
    prng: Prng,
    /// First order; 0 for restarts that do not depend on each other.
    dependence: f64,
    drift: f64,
    /// The logarithm of each commit's throughput ÷ that of the good one.
    truth: Vec<f64>,
    restarts: usize,
}

impl Machine {
    fn new(effect: f64, first_bad: usize, dependence: f64, seed: u64) -> Machine {
        let (prng, truth) = (Prng::new(seed), vec![0.0]);
        let mut machine = Machine { prng, dependence, drift: 0.0, truth, restarts: 0 };
        let mut level = 0.0;
        for commit in 1..=COMMITS {
            level += if commit == first_bad { effect.ln() } else { NOISE * machine.normal() };
            machine.truth.push(level);
        }
        machine
    }

    fn normal(&mut self) -> f64 {
        let radius = (-2.0 * self.prng.unit().max(1e-300).ln()).sqrt();
        radius * (std::f64::consts::TAU * self.prng.unit()).cos()
    }

    /// Compares a commit with the good one until the rule is met, or there is no time left.
    fn compare(
        &mut self,
        commit: usize,
        restarts: usize,
        error: f64,
        is_enough: impl Fn(f64, f64, f64) -> bool,
    ) -> Option<[f64; 3]> {
        let (mut good, mut own) = (Vec::new(), Vec::new());
        let mut last = None;
        for _ in 0..restarts {
            self.restarts += 1;
            let both = 0.05 * self.normal();
            let mut between = PER_RESTART * self.normal();
            if self.dependence > 0.0 {
                let fresh = (1.0 - self.dependence * self.dependence).sqrt() * self.normal();
                self.drift = self.dependence * self.drift + fresh;
                between += DRIFT * self.drift;
            }
            good.push((both - between / 2.0).exp());
            own.push((both + between / 2.0 + self.truth[commit]).exp());
            let Ok(ratio) = sequence::ratio(&own, &good, 1.0 - error) else { continue };
            last = Some([ratio.point, ratio.low, ratio.high]);
            if is_enough(ratio.point, ratio.low, ratio.high) {
                break;
            }
        }
        last
    }
}

/// What a bisection came to, none where its preflight ended it; and the restarts that it took.
fn bisect(
    effect: f64,
    first_bad: usize,
    restarts: usize,
    dependence: f64,
    seed: u64,
) -> (Option<SearchAnswer>, usize) {
    let mut machine = Machine::new(effect, first_bad, dependence, seed);
    let answer = answer(&mut machine, restarts);
    (answer, machine.restarts)
}

fn answer(machine: &mut Machine, restarts: usize) -> Option<SearchAnswer> {
    let error = error_per_step(ERROR, CommitSearch::steps_max(COMMITS) + 2);
    // As `StopCondition::Resolved` has it.
    let is_resolved =
        |point: f64, low: f64, high: f64| (high / low).ln() / 2.0 <= point.ln().abs() / 3.0;
    let [point, low, high] = machine.compare(COMMITS, restarts, error, is_resolved)?;
    if low <= 1.0 && 1.0 <= high {
        return None;
    }
    let threshold = RatioThreshold::of_effect(point);
    let is_told = |_, low: f64, high: f64| threshold.judge(low, high) != IntervalPosition::Open;
    let mut judge = |commit: usize| {
        let seen = machine.compare(commit, restarts, error, is_told);
        match seen.map(|[_, low, high]| threshold.judge(low, high)) {
            Some(IntervalPosition::Decided(verdict)) => verdict,
            _ => CommitVerdict::Skip,
        }
    };
    // The good commit against itself.
    if judge(0) != CommitVerdict::Good {
        return None;
    }
    let mut search = CommitSearch::new(COMMITS);
    while let Some(commit) = search.next() {
        search.note(commit, judge(commit));
    }
    Some(search.answer())
}

/// What bisections came to.
#[derive(Debug, Default)]
struct Tally {
    right: u64,
    wrong: u64,
    within: u64,
    without: u64,
    refused: u64,
    restarts: usize,
}

impl Tally {
    fn of(n: u64, effect: f64, restarts: usize, dependence: f64) -> Tally {
        let mut tally = Tally::default();
        for seed in 0..n {
            let mut prng = Prng::new(seed ^ 0x5eed);
            let first_bad = 1 + (prng.unit() * COMMITS as f64) as usize;
            let (answer, took) = bisect(effect, first_bad, restarts, dependence, seed);
            tally.restarts += took;
            *match answer {
                Some(SearchAnswer::Commit(commit)) if commit == first_bad => &mut tally.right,
                Some(SearchAnswer::Commit(_)) => &mut tally.wrong,
                Some(SearchAnswer::Range { good, bad })
                    if (good + 1..=bad).contains(&first_bad) =>
                {
                    &mut tally.within
                }
                Some(SearchAnswer::Range { .. }) => &mut tally.without,
                None => &mut tally.refused,
            } += 1;
        }
        let Tally { right, wrong, within, without, refused, .. } = tally;
        let hours = tally.restarts as f64 / n as f64 * 19.0 / 3600.0;
        println!(
            "{restarts} restarts, {effect}, drift {dependence}: {right} {wrong} {within} {without} {refused}, \
             {hours:.1} h"
        );
        tally
    }

    fn check(&self, n: u64) {
        let share = |count: u64| count as f64 / n as f64;
        // Five in a hundred may be wrong; the rest is chance.
        let most = ERROR + 4.0 * (ERROR / n as f64).sqrt();
        assert!(share(self.wrong + self.without) <= most, "{self:?}");
    }
}

fn bisections() -> u64 {
    let asked = std::env::var("PGRIG_SIMULATIONS").ok().and_then(|text| text.parse().ok());
    let n = asked.unwrap_or(60);
    println!(
        "{n} bisections each: right commit, wrong commit, range with it, range without, refused"
    );
    n
}

#[test]
fn a_planted_commit_is_found_among_those_that_mean_no_harm() {
    let n = bisections();
    for restarts in RESTARTS {
        for effect in [0.95, 0.97, 0.98] {
            let tally = Tally::of(n, effect, restarts, 0.0);
            tally.check(n);
            match (restarts, effect) {
                (95, 0.95) | (285, 0.97) => {
                    assert!(tally.right as f64 >= 0.85 * n as f64, "{effect}: {tally:?}");
                }
                _ => {}
            }
        }
    }
}

#[test]
fn a_machine_that_drifts_makes_it_refuse_rather_than_be_wrong() {
    let n = bisections();
    for dependence in DRIFTS {
        Tally::of(n, 0.95, RESTARTS[0], dependence).check(n);
    }
}
