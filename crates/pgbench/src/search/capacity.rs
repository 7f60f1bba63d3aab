//! Capacity: the loads of a sweep, and the law that their throughput follows. Pure: the caller measures.

use stats::scalability::{
    HeldOutLoad, NoScalingCurve, ScalingCurve, ScalingEstimate, ScalingPoint, hold_out_largest,
};
use stats::{Prng, sample};

use super::curve::Tried;

/// Rounds of a sweep. Each goes through all loads in an order of its own, so that a drift of the machine is no bend.
pub(crate) const ROUNDS: u32 = 3;
/// Confidence of each interval.
pub(crate) const CONFIDENCE: f64 = 0.95;
/// An interval that is wider than this ratio of its ends is no answer.
const WIDEST: f64 = 4.0;
/// Up to so many clients the steps are half as long.
const FINE_UP_TO: u32 = 32;
/// The fewest clients that a sweep can end with: it needs loads for a law, and one more to contradict it.
pub(crate) const CLIENTS_MIN: u32 = 6;

/// The numbers of clients that are tried, from 1 to `most`: each twice the one before, or 1½ and 1⅓ times where they are
/// few.
pub(crate) fn client_counts(most: u32) -> Vec<u32> {
    let doubled = (0..u32::BITS).map(|power| 1_u32 << power);
    let between = doubled.clone().map(|count| count.saturating_add(count / 2));
    let between = between.filter(|count| most <= FINE_UP_TO && *count > 2);
    let mut counts: Vec<u32> = doubled.chain(between).filter(|count| *count < most).collect();
    counts.push(most);
    counts.sort_unstable();
    counts
}

/// The order of the loads of one round, as positions.
pub(crate) fn order(loads: usize, round: u32, seed: u64) -> Vec<usize> {
    let mut order: Vec<usize> = (0..loads).collect();
    Prng::new(seed.wrapping_add(u64::from(round))).shuffle(&mut order);
    order
}

/// The windows of one load.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct CapacityLoad {
    /// Clients.
    pub(crate) load: f64,
    /// The median of their throughputs, transactions a second.
    pub(crate) rate: f64,
    /// The lowest and the highest of them.
    pub(crate) range: (f64, f64),
    /// The median of the goal's quantile, in milliseconds; none where nothing was done.
    pub(crate) quantile_ms: Option<f64>,
    /// True if more than half of the windows kept the goal.
    pub(crate) holds: bool,
}

/// A prediction for a load that was not tried.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct CapacityForecast {
    /// Clients or CPUs.
    pub(crate) load: f64,
    /// Transactions a second.
    pub(crate) rate: ScalingEstimate,
}

/// The law of a sweep.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct ScalingAnswer {
    /// The share of the work that waits for others.
    pub(crate) contention: ScalingEstimate,
    /// The cost of each pair, as a share of the work.
    pub(crate) coherence: ScalingEstimate,
    /// The load with the highest throughput.
    pub(crate) peak_load: ScalingEstimate,
    /// The prediction of the largest load from the smaller ones, beside what was seen.
    pub(crate) held_out: HeldOutLoad,
    /// One and a half and two times the largest load.
    pub(crate) beyond: [CapacityForecast; 2],
}

/// The reason why nothing can be said of loads that were not tried.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum NoForecast {
    /// The loads give no curve.
    NoCurve(NoScalingCurve),
    /// The smaller loads do not predict the largest one.
    NotPredicted(HeldOutLoad),
    /// The interval says nothing.
    TooWide(ScalingEstimate),
}

impl ScalingAnswer {
    /// The law of points, whether or not it predicts anything.
    pub(crate) fn of(points: &[ScalingPoint]) -> Result<ScalingAnswer, NoForecast> {
        let curve = ScalingCurve::of(points).map_err(NoForecast::NoCurve)?;
        let held_out = hold_out_largest(points, CONFIDENCE).map_err(NoForecast::NoCurve)?;
        let beyond = [1.5, 2.0].map(|times| {
            let load = held_out.observed.load * times;
            CapacityForecast { load, rate: curve.predicted(load, CONFIDENCE) }
        });
        Ok(ScalingAnswer {
            contention: curve.contention(CONFIDENCE),
            coherence: curve.coherence(CONFIDENCE),
            peak_load: curve.peak_load(CONFIDENCE),
            held_out,
            beyond,
        })
    }

    /// What is to be expected of loads that were not tried.
    ///
    /// # Errors
    /// If the law does not predict the largest load that was tried, or too vaguely.
    pub(crate) fn forecast(&self) -> Result<[CapacityForecast; 2], NoForecast> {
        if !self.held_out.is_predicted() {
            return Err(NoForecast::NotPredicted(self.held_out));
        }
        let is_vague = |one: &&CapacityForecast| one.rate.high / one.rate.low > WIDEST;
        match self.beyond.iter().find(is_vague) {
            Some(vague) => Err(NoForecast::TooWide(vague.rate)),
            None => Ok(self.beyond),
        }
    }
}

/// The windows of a sweep by load, ascending.
pub(crate) fn by_load(windows: &[Tried], quantile: f64) -> Vec<CapacityLoad> {
    let mut loads: Vec<f64> = windows.iter().map(|window| window.load).collect();
    loads.sort_by(f64::total_cmp);
    loads.dedup();
    let of = |load: f64| {
        let own: Vec<&Tried> = windows.iter().filter(|window| window.load == load).collect();
        let rates: Vec<f64> = own.iter().map(|window| window.achieved).collect();
        let ms = own.iter().filter_map(|window| window.latency.quantile_ns(quantile));
        let ms: Vec<f64> = ms.map(|ns| ns as f64 / 1e6).collect();
        let kept = own.iter().filter(|window| window.holds).count();
        Some(CapacityLoad {
            load,
            rate: sample::median(&rates)?,
            range: (
                rates.iter().copied().fold(f64::INFINITY, f64::min),
                rates.iter().copied().fold(0.0, f64::max),
            ),
            quantile_ms: sample::median(&ms),
            holds: kept * 2 > own.len(),
        })
    };
    loads.into_iter().filter_map(of).collect()
}

/// The load at which most is done while the goal holds.
pub(crate) fn best(loads: &[CapacityLoad]) -> Option<&CapacityLoad> {
    loads.iter().filter(|one| one.holds).max_by(|a, b| a.rate.total_cmp(&b.rate))
}

/// Points of a law: the loads of a sweep.
pub(crate) fn points(loads: &[CapacityLoad]) -> Vec<ScalingPoint> {
    loads.iter().map(|one| ScalingPoint { load: one.load, rate: one.rate }).collect()
}

/// The result of `--capacity`.
#[derive(Clone, Debug)]
pub(crate) struct CapacityResult {
    /// The sweeps over clients: one for each number of CPUs, or a single one.
    pub(crate) sweeps: Vec<ClientSweep>,
    /// The law over CPUs, where they were varied.
    pub(crate) cpus: Option<Result<ScalingAnswer, NoForecast>>,
    /// True if the load shared the CPUs that the server had.
    pub(crate) shares_cpus: bool,
}

/// The loads of one number of CPUs.
#[derive(Clone, Debug)]
pub(crate) struct ClientSweep {
    /// CPUs of the server; none where they were left as they are.
    pub(crate) cpus: Option<f64>,
    pub(crate) loads: Vec<CapacityLoad>,
    pub(crate) law: Result<ScalingAnswer, NoForecast>,
}

impl ClientSweep {
    pub(crate) fn of(cpus: Option<f64>, windows: &[Tried], quantile: f64) -> ClientSweep {
        let loads = by_load(windows, quantile);
        let law = ScalingAnswer::of(&points(&loads));
        ClientSweep { cpus, loads, law }
    }

    /// The load at which most is done while the goal holds.
    pub(crate) fn best(&self) -> Option<&CapacityLoad> {
        best(&self.loads)
    }
}

impl CapacityResult {
    /// The sweep with the most CPUs.
    pub(crate) fn largest(&self) -> &ClientSweep {
        let most = self.sweeps.iter().max_by(|a, b| a.cpus.partial_cmp(&b.cpus).expect("numbers"));
        most.expect("there is at least one sweep")
    }

    /// The largest ratio of two windows of one load.
    pub(crate) fn variation(&self) -> Option<f64> {
        let loads = self.sweeps.iter().flat_map(|sweep| &sweep.loads);
        let ratios = loads.filter(|one| one.range.0 > 0.0).map(|one| one.range.1 / one.range.0);
        ratios.max_by(f64::total_cmp)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use stats::LatencyHistogram;

    #[test]
    fn a_sweep_begins_with_one_client_and_ends_with_all() {
        let check = |most, expected: &[u32]| assert_eq!(client_counts(most), expected, "{most}");
        check(6, &[1, 2, 3, 4, 6]);
        check(8, &[1, 2, 3, 4, 6, 8]);
        check(32, &[1, 2, 3, 4, 6, 8, 12, 16, 24, 32]);
        check(100, &[1, 2, 4, 8, 16, 32, 64, 100]);
        assert!(client_counts(CLIENTS_MIN).len() > stats::scalability::LOADS_MIN);
        let (one, other) = (order(10, 0, 7), order(10, 1, 7));
        assert_ne!(one, other);
        let mut sorted = one.clone();
        sorted.sort_unstable();
        assert_eq!((one, sorted), (order(10, 0, 7), (0..10).collect::<Vec<_>>()));
    }

    fn window(load: f64, rate: f64, ms: u64) -> Tried {
        let mut latency = LatencyHistogram::new();
        latency.record_ns(ms * 1_000_000);
        let holds = ms < 10;
        Tried {
            load,
            seconds: 1.0,
            confirms: true,
            achieved: rate,
            latency,
            failures: 0.0,
            backlog: 0,
            holds,
        }
    }

    #[test]
    fn the_best_load_is_that_with_the_most_work_within_the_goal() {
        let mut windows = Vec::new();
        for (load, rate, ms) in
            [(1.0, 100.0, 1), (2.0, 190.0, 2), (4.0, 300.0, 5), (8.0, 400.0, 20)]
        {
            windows.extend([0.9, 1.0, 1.3].map(|times| window(load, rate * times, ms)));
        }
        // One window of three fails by something else.
        windows.push(window(4.0, 300.0, 50));
        let loads = by_load(&windows, 0.99);
        assert_eq!(loads.len(), 4);
        let best = best(&loads).unwrap();
        assert_eq!((best.load, best.rate, best.range.0), (4.0, 300.0, 270.0));
        assert!(!loads[3].holds);
    }

    #[test]
    fn a_law_that_does_not_predict_gives_no_forecast() {
        let points = |rates: &[f64]| -> Vec<ScalingPoint> {
            let loads = client_counts(32);
            let point =
                |(load, rate): (&u32, &f64)| ScalingPoint { load: f64::from(*load), rate: *rate };
            loads.iter().zip(rates).map(point).collect()
        };
        let law = |n: f64| 100.0 * n / (1.0 + 0.05 * (n - 1.0) + 0.001 * n * (n - 1.0));
        let mut rates: Vec<f64> = client_counts(32).iter().map(|n| law(f64::from(*n))).collect();
        let [_, twice] = ScalingAnswer::of(&points(&rates)).unwrap().forecast().unwrap();
        assert!(twice.load == 64.0 && twice.rate.contains(law(64.0)), "{twice:?}");
        *rates.last_mut().unwrap() = 20.0;
        let refused = ScalingAnswer::of(&points(&rates)).unwrap().forecast();
        assert!(matches!(refused, Err(NoForecast::NotPredicted(_))), "{refused:?}");
        let few = ScalingAnswer::of(&points(&rates[..3]));
        assert!(matches!(few, Err(NoForecast::NoCurve(_))), "{few:?}");
    }
}
