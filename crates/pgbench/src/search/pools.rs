//! The size of a pool: which sizes are tried, and which is the smallest that is enough. Pure: the caller measures.
//!
//! A size is enough if it has [`ENOUGH`] of the throughput of the best size that keeps the goal, and keeps the goal
//! itself. Intervals of all sizes hold together with [`CONFIDENCE`], so a size that is called enough is not with a
//! probability of at most 5 %, and neither is one that is called too small.

use stats::best::RankedSettings;
use stats::{ConfidenceInterval, sample, student};

use super::curve::Tried;

/// Rounds of a sweep. With eight windows one that something else has spoiled is not the end: at a size that keeps the
/// goal in half of its windows, seven or more hold with a probability of 3.5 %.
pub(crate) const ROUNDS: u32 = 8;
/// Confidence of the intervals.
const CONFIDENCE: f64 = 0.95;
/// The share of the best throughput that is enough.
pub(crate) const ENOUGH: f64 = 0.9;
/// Windows that may disagree with the others about the goal.
const SPOILED_MAX: usize = 1;

/// The sizes that are tried where none are named: each twice the one before, and one connection for each client, as far
/// as the server has room.
pub(crate) fn sizes(clients: u32, room: u32) -> Vec<u32> {
    let most = clients.min(room);
    let doubled = (0..u32::BITS).map(|power| 1_u32 << power).take_while(|size| *size < most);
    doubled.chain([most]).collect()
}

/// What the windows say of the goal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum GoalKept {
    /// It holds in all windows but one at most.
    Yes,
    /// It holds in one window at most.
    No,
    /// Neither.
    CannotTell,
}

impl GoalKept {
    pub(crate) fn name(self) -> &'static str {
        match self {
            GoalKept::Yes => "kept",
            GoalKept::No => "not kept",
            GoalKept::CannotTell => "cannot tell",
        }
    }
}

/// The windows of one size.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct PoolWindows {
    /// Connections of the pool to the server.
    pub(crate) size: u32,
    /// Transactions a second: the geometric mean.
    pub(crate) rate: Option<ConfidenceInterval>,
    /// The goal's quantile in milliseconds: the geometric mean.
    pub(crate) quantile_ms: Option<ConfidenceInterval>,
    pub(crate) goal: GoalKept,
    /// Windows in which the goal held, and all of them.
    pub(crate) held: (usize, usize),
    /// Throughput divided by that of the best size that may keep the goal; none for a size that does not keep it.
    pub(crate) of_best: Option<ConfidenceInterval>,
    pub(crate) verdict: PoolVerdict,
}

/// What is shown of a size.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PoolVerdict {
    /// It keeps the goal, and has enough of the throughput of every size that may keep it.
    Enough,
    /// It does not keep the goal, or has less than enough of the throughput of a size that keeps it.
    NotEnough,
    /// Neither.
    CannotTell,
}

impl PoolVerdict {
    pub(crate) fn name(self) -> &'static str {
        match self {
            PoolVerdict::Enough => "enough",
            PoolVerdict::NotEnough => "not enough",
            PoolVerdict::CannotTell => "cannot tell",
        }
    }
}

/// The answer.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum PoolChoice {
    /// The smallest size that is shown to be enough.
    Enough {
        size: u32,
        /// Smaller sizes that are not shown to be too small.
        perhaps: Vec<u32>,
    },
    /// No size is shown to be enough.
    CannotTell,
    /// No size keeps the goal.
    NoneKeeps,
}

/// The result of a sweep over sizes.
#[derive(Clone, Debug)]
pub(crate) struct PoolResult {
    /// The sizes, ascending.
    pub(crate) sizes: Vec<PoolWindows>,
    pub(crate) choice: PoolChoice,
    ranked: Option<RankedSettings>,
    /// The places in `sizes` of those that are ranked.
    candidates: Vec<usize>,
}

impl PoolResult {
    /// The result of windows whose load is the size, in the order in which they ran.
    pub(crate) fn of(windows: &[Tried], quantile: f64) -> PoolResult {
        let mut all: Vec<u32> = windows.iter().map(|window| window.load as u32).collect();
        all.sort_unstable();
        all.dedup();
        let own = |size: u32| windows.iter().filter(move |window| window.load as u32 == size);
        let sizes = all.iter().map(|&size| PoolWindows::of(size, own(size), quantile));
        let mut sizes: Vec<PoolWindows> = sizes.collect();
        let keeps = |at: &usize| sizes[*at].goal != GoalKept::No;
        let candidates: Vec<usize> = (0..sizes.len()).filter(keeps).collect();
        let rates =
            candidates.iter().map(|&at| own(sizes[at].size).map(|one| one.achieved).collect());
        let ranked = RankedSettings::of(&rates.collect::<Vec<Vec<f64>>>(), CONFIDENCE);
        for (place, &at) in candidates.iter().enumerate() {
            let Some(ranked) = &ranked else { continue };
            let of_best = ranked.of_best(place);
            let mut keepers =
                candidates.iter().enumerate().filter(|(_, at)| sizes[**at].goal == GoalKept::Yes);
            let is_less = keepers.any(|(other, _)| ranked.ratio(place, other).high < ENOUGH);
            let is_enough = sizes[at].goal == GoalKept::Yes && of_best.low >= ENOUGH;
            sizes[at].of_best = Some(of_best);
            sizes[at].verdict = match (is_enough, is_less) {
                (true, _) => PoolVerdict::Enough,
                (_, true) => PoolVerdict::NotEnough,
                _ => PoolVerdict::CannotTell,
            };
        }
        let choice = choice(&sizes);
        PoolResult { sizes, choice, ranked, candidates }
    }

    /// The throughput of a size divided by that of another, by their places in `sizes`.
    pub(crate) fn ratio(&self, at: usize, other: usize) -> Option<ConfidenceInterval> {
        let place = |at: usize| self.candidates.iter().position(|one| *one == at);
        Some(self.ranked.as_ref()?.ratio(place(at)?, place(other)?))
    }

    /// The place of the answer.
    pub(crate) fn answer(&self) -> Option<usize> {
        match self.choice {
            PoolChoice::Enough { size, .. } => self.sizes.iter().position(|one| one.size == size),
            PoolChoice::CannotTell | PoolChoice::NoneKeeps => None,
        }
    }
}

impl PoolWindows {
    fn of<'a>(
        size: u32,
        windows: impl Iterator<Item = &'a Tried> + Clone,
        quantile: f64,
    ) -> PoolWindows {
        let rates: Vec<f64> = windows.clone().map(|window| window.achieved).collect();
        let ms = windows.clone().filter_map(|window| window.latency.quantile_ns(quantile));
        let ms: Vec<f64> = ms.map(|ns| ns as f64 / 1e6).collect();
        let held = windows.filter(|window| window.holds).count();
        let goal = match (held, rates.len() - held) {
            (_, broken) if broken <= SPOILED_MAX && held > SPOILED_MAX => GoalKept::Yes,
            (held, broken) if held <= SPOILED_MAX && broken > SPOILED_MAX => GoalKept::No,
            _ => GoalKept::CannotTell,
        };
        PoolWindows {
            size,
            rate: geometric_mean(&rates),
            quantile_ms: geometric_mean(&ms),
            goal,
            held: (held, rates.len()),
            of_best: None,
            verdict: match goal {
                GoalKept::No => PoolVerdict::NotEnough,
                GoalKept::Yes | GoalKept::CannotTell => PoolVerdict::CannotTell,
            },
        }
    }
}

/// None where a value is zero, or there is one alone.
fn geometric_mean(values: &[f64]) -> Option<ConfidenceInterval> {
    let logs: Option<Vec<f64>> = values.iter().map(|one| (*one > 0.0).then(|| one.ln())).collect();
    let logs = logs?;
    let found = student::mean_interval(&logs, CONFIDENCE).ok()?;
    let point = sample::mean(&logs)?.exp();
    Some(ConfidenceInterval { point, low: found.low.exp(), high: found.high.exp(), ..found })
}

fn choice(sizes: &[PoolWindows]) -> PoolChoice {
    if sizes.iter().all(|one| one.goal == GoalKept::No) {
        return PoolChoice::NoneKeeps;
    }
    let Some(at) = sizes.iter().position(|one| one.verdict == PoolVerdict::Enough) else {
        return PoolChoice::CannotTell;
    };
    let perhaps = sizes[..at].iter().filter(|one| one.verdict == PoolVerdict::CannotTell);
    PoolChoice::Enough { size: sizes[at].size, perhaps: perhaps.map(|one| one.size).collect() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use stats::{LatencyHistogram, Prng};

    /// A normal deviate by Box and Muller.
    fn normal(random: &mut Prng) -> f64 {
        let radius = (-2.0 * (1.0 - random.unit()).ln()).sqrt();
        radius * (std::f64::consts::TAU * random.unit()).cos()
    }

    fn window(size: u32, rate: f64, holds: bool) -> Tried {
        let mut latency = LatencyHistogram::new();
        latency.record_ns(1_000_000);
        Tried {
            load: f64::from(size),
            seconds: 1.0,
            confirms: true,
            achieved: rate,
            latency,
            failures: 0.0,
            backlog: 0,
            holds,
        }
    }

    /// A system: the throughput of a size, and the share of its windows that keep the goal.
    type Truth = fn(f64) -> (f64, f64);

    /// Sweeps of a system, each with windows of a deviation in rounds of a level each.
    fn sweeps(truth: Truth, deviation: f64, count: u64) -> Vec<PoolResult> {
        let sweep = |seed: u64| {
            let mut random = Prng::new(seed);
            let mut windows = Vec::new();
            for _ in 0..ROUNDS {
                let level = 0.05 * normal(&mut random);
                for size in sizes(64, 100) {
                    let (rate, kept) = truth(f64::from(size));
                    let rate = 1_000.0 * rate * (level + deviation * normal(&mut random)).exp();
                    windows.push(window(size, rate, random.unit() < kept));
                }
            }
            PoolResult::of(&windows, 0.99)
        };
        (1..=count).map(sweep).collect()
    }

    /// The smallest size that is enough by the truth.
    fn right(truth: Truth) -> Option<u32> {
        let keeps = |size: &u32| truth(f64::from(*size)).1 > 0.5;
        let sizes: Vec<u32> = sizes(64, 100).into_iter().filter(keeps).collect();
        let rate = |size: &u32| truth(f64::from(*size)).0;
        let best = sizes.iter().map(rate).fold(0.0, f64::max);
        sizes.into_iter().find(|size| rate(size) >= ENOUGH * best)
    }

    /// A row of the table: sweeps with a wrong answer, a size that is not enough or a smaller one called too small that
    /// is enough; and sweeps with the right one alone.
    fn shares(truth: Truth, deviation: f64) -> (f64, f64) {
        const SWEEPS: u64 = 400;
        let right = right(truth);
        let (mut wrong, mut exact) = (0, 0);
        for found in sweeps(truth, deviation, SWEEPS) {
            match &found.choice {
                PoolChoice::Enough { size, perhaps } => {
                    let is_named =
                        right.is_some_and(|right| *size == right || perhaps.contains(&right));
                    let is_enough = right.is_some_and(|right| *size >= right)
                        && truth(f64::from(*size)).1 > 0.5;
                    wrong += u32::from(!is_named || !is_enough);
                    exact += u32::from(Some(*size) == right && perhaps.is_empty());
                }
                PoolChoice::CannotTell => {}
                PoolChoice::NoneKeeps => {
                    wrong += u32::from(right.is_some());
                    exact += u32::from(right.is_none());
                }
            }
        }
        let share = |count: u32| f64::from(count) / SWEEPS as f64;
        (share(wrong), share(exact))
    }

    #[test]
    fn the_smallest_size_that_is_enough_is_found_and_errors_are_as_rare_as_stated() {
        let check = |truth: Truth, deviation: f64, exact_min: f64| {
            let (wrong, exact) = shares(truth, deviation);
            assert!(wrong <= 0.05, "{deviation}: wrong {wrong}, right {:?}", right(truth));
            assert!(exact >= exact_min, "{deviation}: exact {exact}, right {:?}", right(truth));
        };
        let knee: Truth = |size| (size.min(8.0), 1.0);
        check(knee, 0.02, 0.95);
        check(knee, 0.04, 0.5);
        // So much noise is no answer, and no wrong one.
        check(knee, 0.3, 0.0);
        // More sessions than the server can do with are slower.
        let peak: Truth =
            |size| (size / (1.0 + 0.1 * (size - 1.0) + 0.01 * size * (size - 1.0)), 1.0);
        check(peak, 0.02, 0.9);
        // All are the same.
        check(|_| (1.0, 1.0), 0.02, 0.95);
        check(|_| (1.0, 1.0), 0.05, 0.0);
        // Sizes on either side of the boundary, where little can be told.
        check(
            |size| {
                (
                    if size < 4.0 {
                        0.5
                    } else if size < 8.0 {
                        0.9
                    } else {
                        1.0
                    },
                    1.0,
                )
            },
            0.03,
            0.0,
        );
        check(
            |size| {
                (
                    if size < 4.0 {
                        0.5
                    } else if size < 8.0 {
                        0.89
                    } else {
                        1.0
                    },
                    1.0,
                )
            },
            0.03,
            0.0,
        );
        // The goal forbids the fastest ones, all small ones, and all.
        check(|size| (size.min(32.0), if size > 16.0 { 0.0 } else { 1.0 }), 0.02, 0.9);
        check(|size| (size.min(8.0), if size < 16.0 { 0.02 } else { 0.98 }), 0.02, 0.9);
        check(|size| (size.min(8.0), 0.0), 0.02, 1.0);
        // Something else spoils a window in twenty.
        check(|size| (size.min(8.0), 0.95), 0.02, 0.4);
    }

    #[test]
    fn a_goal_that_is_kept_by_half_of_the_windows_is_no_answer() {
        let of = |held: usize, all: usize| {
            let windows: Vec<Tried> = (0..all).map(|at| window(4, 100.0, at < held)).collect();
            let found = PoolResult::of(&windows, 0.99);
            (found.sizes[0].goal, found.choice)
        };
        let enough = PoolChoice::Enough { size: 4, perhaps: Vec::new() };
        assert_eq!(of(8, 8), (GoalKept::Yes, enough.clone()));
        assert_eq!(of(7, 8), (GoalKept::Yes, enough));
        assert_eq!(of(4, 8), (GoalKept::CannotTell, PoolChoice::CannotTell));
        assert_eq!(of(1, 8), (GoalKept::No, PoolChoice::NoneKeeps));
        assert_eq!(of(0, 8), (GoalKept::No, PoolChoice::NoneKeeps));
    }

    #[test]
    fn sizes_double_up_to_the_clients_and_the_room() {
        assert_eq!(sizes(64, 100), [1, 2, 4, 8, 16, 32, 64]);
        assert_eq!(sizes(64, 20), [1, 2, 4, 8, 16, 20]);
        assert_eq!(sizes(1, 20), [1]);
        assert_eq!(sizes(2, 20), [1, 2]);
    }

    #[test]
    fn ratios_are_of_sizes_that_may_keep_the_goal() {
        let mut windows = Vec::new();
        for round in 0..ROUNDS {
            let level = 1.0 + f64::from(round) / 100.0;
            windows.push(window(2, 500.0 * level, true));
            windows.push(window(4, 1_000.0 * level, true));
            windows.push(window(8, 2_000.0 * level, false));
        }
        let found = PoolResult::of(&windows, 0.99);
        assert_eq!(found.choice, PoolChoice::Enough { size: 4, perhaps: Vec::new() });
        assert_eq!(found.answer(), Some(1));
        assert!((found.ratio(0, 1).unwrap().point - 0.5).abs() < 1e-9);
        assert_eq!(found.ratio(2, 1), None);
        assert!(found.sizes[2].of_best.is_none());
    }
}
