//! Throughput over a load, and what more of it would give: the Universal Scalability Law (Gunther, "Guerrilla Capacity
//! Planning", 2007) with a posterior in place of a least-squares fit.
//!
//! The law is X(N) = X(1) · N / (1 + σ(N − 1) + κN(N − 1)): σ is contention (the share of work that waits for others), κ
//! coherence (what each pair of workers costs). A closed loop before a limit bends more sharply than that, so laws with
//! ((1 + (σ(N − 1))^p)^(1/p) in place of 1 + σ(N − 1) take part, with p of 2, 4 and 16. N counts from the smallest load
//! observed. The errors of the logarithms have an unknown deviation, which includes that the system obeys no such law.

use crate::student;

/// Loads that a curve needs: three unknowns and one observation that can contradict them.
pub const LOADS_MIN: usize = 4;

/// A load and the throughput observed there.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ScalingPoint {
    /// Clients, or CPUs.
    pub load: f64,
    /// Transactions a second: the median of the windows at this load.
    pub rate: f64,
}

/// An estimate from a posterior, and the bounds between which the value lies with the confidence asked for.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ScalingEstimate {
    /// The median.
    pub point: f64,
    /// The lower bound.
    pub low: f64,
    /// The upper bound, which may be infinite.
    pub high: f64,
}

impl ScalingEstimate {
    /// True between the bounds.
    pub fn contains(&self, value: f64) -> bool {
        self.low <= value && value <= self.high
    }
}

/// Why there is no curve.
#[derive(Clone, Copy, Debug, thiserror::Error, PartialEq)]
pub enum NoScalingCurve {
    /// Too few different loads.
    #[error("{seen} loads were observed, at least {LOADS_MIN} are needed")]
    TooFewLoads {
        /// Loads observed.
        seen: usize,
    },
    /// A load or a throughput of zero.
    #[error("at a load of {load} there was no throughput")]
    NoThroughput {
        /// The load.
        load: f64,
    },
}

/// A prediction of the largest load from the others, beside what was observed there.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct HeldOutLoad {
    /// The largest load and what was observed.
    pub observed: ScalingPoint,
    /// Throughput there as the smaller loads predict it.
    pub predicted: ScalingEstimate,
}

impl HeldOutLoad {
    /// True if the smaller loads have predicted the largest one.
    pub fn is_predicted(&self) -> bool {
        self.predicted.contains(self.observed.rate)
    }
}

/// One law of the posterior.
#[derive(Clone, Copy, Debug)]
struct WeightedLaw {
    sharpness: f64,
    contention: f64,
    coherence: f64,
    /// The logarithm of X(1), and the scale of its t distribution.
    log_rate: f64,
    scale: f64,
    /// All weights add up to 1.
    weight: f64,
}

impl WeightedLaw {
    /// The logarithm of N ÷ (the slowdown at N workers); `workers` counts from 1.
    fn log_gain(&self, workers: f64) -> f64 {
        log_gain(workers, self.sharpness, self.contention, self.coherence)
    }
}

fn log_gain(workers: f64, sharpness: f64, contention: f64, coherence: f64) -> f64 {
    let waiting = contention * (workers - 1.0);
    let contended = (1.0 + waiting.powf(sharpness)).powf(1.0 / sharpness);
    workers.ln() - (contended + coherence * workers * (workers - 1.0)).ln()
}

/// Throughput over a load.
#[derive(Clone, Debug)]
pub struct ScalingCurve {
    laws: Vec<WeightedLaw>,
    smallest: f64,
    n: f64,
    freedom: f64,
}

/// Sharpness of the bend and its prior weight: the law itself counts as much as all others.
const SHARPNESS: [(f64, f64); 4] = [(1.0, 0.5), (2.0, 0.2), (4.0, 0.15), (16.0, 0.15)];
/// Steps of contention and coherence, equally likely on a logarithmic scale, beside none at all.
const STEPS: usize = 40;
const CONTENTION: (f64, f64) = (1e-4, 3.0);
const COHERENCE: (f64, f64) = (1e-8, 0.3);
/// What is known of the deviation before: as much as one observation with errors of 5 %.
const PRIOR_FREEDOM: f64 = 1.0;
const PRIOR_DEVIATION: f64 = 0.05;
/// A law with a smaller share of the largest weight changes no figure.
const NEGLIGIBLE: f64 = 1e-4;

/// Steps of a parameter: none, and a logarithmic grid.
fn steps((low, high): (f64, f64)) -> impl Iterator<Item = f64> {
    let ratio = (high / low).ln() / (STEPS - 1) as f64;
    std::iter::once(0.0).chain((0..STEPS).map(move |step| low * (ratio * step as f64).exp()))
}

impl ScalingCurve {
    /// The posterior that loads and their throughputs give.
    ///
    /// # Errors
    /// Below [`LOADS_MIN`] different loads, or where nothing was done at one of them.
    pub fn of(points: &[ScalingPoint]) -> Result<ScalingCurve, NoScalingCurve> {
        let is_bad = |point: &&ScalingPoint| !(point.load > 0.0 && point.rate > 0.0);
        if let Some(bad) = points.iter().find(is_bad) {
            return Err(NoScalingCurve::NoThroughput { load: bad.load });
        }
        let mut loads: Vec<f64> = points.iter().map(|point| point.load).collect();
        loads.sort_by(f64::total_cmp);
        loads.dedup();
        let Some(&smallest) = loads.first().filter(|_| loads.len() >= LOADS_MIN) else {
            return Err(NoScalingCurve::TooFewLoads { seen: loads.len() });
        };
        let n = points.len() as f64;
        // Two parameters bend the curve; the third, X(1), and the deviation are integrated out.
        let freedom = (n - 1.0 + PRIOR_FREEDOM).max(1.0);
        let mut laws = Vec::new();
        for (sharpness, prior) in SHARPNESS {
            for contention in steps(CONTENTION) {
                for coherence in steps(COHERENCE) {
                    let residual = |point: &ScalingPoint| {
                        let workers = point.load / smallest;
                        point.rate.ln() - log_gain(workers, sharpness, contention, coherence)
                    };
                    let residuals: Vec<f64> = points.iter().map(residual).collect();
                    let log_rate = residuals.iter().sum::<f64>() / n;
                    let squares: f64 = residuals.iter().map(|one| (one - log_rate).powi(2)).sum();
                    let squares = squares + PRIOR_FREEDOM * PRIOR_DEVIATION.powi(2);
                    laws.push(WeightedLaw {
                        sharpness,
                        contention,
                        coherence,
                        log_rate,
                        scale: (squares / freedom).sqrt(),
                        weight: prior.ln() - freedom / 2.0 * squares.ln(),
                    });
                }
            }
        }
        let largest = laws.iter().map(|law| law.weight).fold(f64::NEG_INFINITY, f64::max);
        laws.iter_mut().for_each(|law| law.weight = (law.weight - largest).exp());
        laws.retain(|law| law.weight > NEGLIGIBLE);
        let sum: f64 = laws.iter().map(|law| law.weight).sum();
        laws.iter_mut().for_each(|law| law.weight /= sum);
        Ok(ScalingCurve { laws, smallest, n, freedom })
    }

    /// Throughput that would be observed at a load, with errors of measurement and of the law.
    pub fn predicted(&self, load: f64, confidence: f64) -> ScalingEstimate {
        let workers = (load / self.smallest).max(1.0);
        let spread = (1.0 + 1.0 / self.n).sqrt();
        let parts = self.laws.iter().map(|law| {
            let centre = law.log_rate + law.log_gain(workers);
            (law.weight, centre, law.scale * spread)
        });
        let parts: Vec<_> = parts.collect();
        let table = StudentTable::of(self.freedom);
        let at = |q: f64| mixture_quantile(&parts, &table, q).exp();
        let tail = (1.0 - confidence) / 2.0;
        ScalingEstimate { point: at(0.5), low: at(tail), high: at(1.0 - tail) }
    }

    /// Contention σ: the share of the work that waits for others.
    pub fn contention(&self, confidence: f64) -> ScalingEstimate {
        self.weighted(confidence, |law| law.contention)
    }

    /// Coherence κ: the cost of each pair of workers, as a share of the work.
    pub fn coherence(&self, confidence: f64) -> ScalingEstimate {
        self.weighted(confidence, |law| law.coherence)
    }

    /// The load with the highest throughput; the bounds may be infinite, where more never does harm.
    pub fn peak_load(&self, confidence: f64) -> ScalingEstimate {
        self.weighted(confidence, |law| {
            // The gain rises before the peak and falls after it.
            let (mut low, mut high) = (0.0_f64, PEAK_MAX.ln());
            let rises = |log_workers: f64| {
                law.log_gain((log_workers + PEAK_STEP).exp()) > law.log_gain(log_workers.exp())
            };
            if rises(high) {
                return f64::INFINITY;
            }
            while high - low > PEAK_STEP {
                let middle = f64::midpoint(low, high);
                if rises(middle) { low = middle } else { high = middle }
            }
            low.exp() * self.smallest
        })
    }

    /// The share of a proportional growth that is left at a load: X(load) ÷ (load · X(smallest) ÷ smallest).
    pub fn efficiency(&self, load: f64, confidence: f64) -> ScalingEstimate {
        let workers = (load / self.smallest).max(1.0);
        self.weighted(confidence, |law| (law.log_gain(workers) - workers.ln()).exp())
    }

    fn weighted(&self, confidence: f64, value: impl Fn(&WeightedLaw) -> f64) -> ScalingEstimate {
        let mut values: Vec<_> = self.laws.iter().map(|law| (value(law), law.weight)).collect();
        values.sort_by(|one, other| one.0.total_cmp(&other.0));
        let at = |q: f64| {
            let mut sum = 0.0;
            let reached = values.iter().find(|(_, weight)| {
                sum += weight;
                sum >= q
            });
            // The weights add up to 1 but for rounding.
            reached.or(values.last()).expect("a posterior has laws").0
        };
        let tail = (1.0 - confidence) / 2.0;
        ScalingEstimate { point: at(0.5), low: at(tail), high: at(1.0 - tail) }
    }
}

/// The largest number of workers at which a peak is looked for; a later one is called infinite.
const PEAK_MAX: f64 = 1e5;
/// Precision of a peak, as a difference of logarithms.
const PEAK_STEP: f64 = 1e-4;

/// The prediction of the largest load from the smaller ones.
///
/// # Errors
/// If the smaller loads give no curve.
pub fn hold_out_largest(
    points: &[ScalingPoint],
    confidence: f64,
) -> Result<HeldOutLoad, NoScalingCurve> {
    let too_few = NoScalingCurve::TooFewLoads { seen: points.len() };
    let largest = points.iter().max_by(|a, b| a.load.total_cmp(&b.load)).ok_or(too_few)?;
    let others: Vec<_> = points.iter().filter(|point| point.load < largest.load).copied().collect();
    let predicted = ScalingCurve::of(&others)?.predicted(largest.load, confidence);
    Ok(HeldOutLoad { observed: *largest, predicted })
}

/// The distribution function of Student's t at equal steps of the inverse hyperbolic sine, which is computed once for many
/// values. Between the steps it is linear, with errors below 10⁻⁵.
struct StudentTable {
    shares: Vec<f64>,
}

impl StudentTable {
    /// The value from which on the share is that of the edge.
    const EDGE: f64 = 9.0;
    const STEPS: f64 = 900.0;

    fn of(freedom: f64) -> StudentTable {
        let steps = 0..=(2.0 * Self::STEPS) as u32;
        let value = |step: u32| (f64::from(step) / Self::STEPS - 1.0) * Self::EDGE;
        StudentTable {
            shares: steps.map(|step| student::t_below(value(step).sinh(), freedom)).collect(),
        }
    }

    fn below(&self, value: f64) -> f64 {
        let place = (value.asinh() / Self::EDGE + 1.0) * Self::STEPS;
        let place = place.clamp(0.0, 2.0 * Self::STEPS - 1.0);
        let (step, rest) = (place.floor(), place.fract());
        let [low, high] = [step as usize, step as usize + 1].map(|step| self.shares[step]);
        low + (high - low) * rest
    }
}

/// The quantile of a mixture of t distributions, each with its weight, centre and scale.
fn mixture_quantile(parts: &[(f64, f64, f64)], table: &StudentTable, q: f64) -> f64 {
    let below = |value: f64| {
        let part = |(weight, centre, scale): &(f64, f64, f64)| {
            weight * table.below((value - centre) / scale)
        };
        parts.iter().map(part).sum::<f64>()
    };
    let reach = |sign: f64| {
        let edge = move |(_, centre, scale): &(f64, f64, f64)| centre + sign * scale * 1e3;
        parts.iter().map(edge)
    };
    let mut low = reach(-1.0).fold(f64::INFINITY, f64::min);
    let mut high = reach(1.0).fold(f64::NEG_INFINITY, f64::max);
    for _ in 0..50 {
        let middle = f64::midpoint(low, high);
        if below(middle) < q { low = middle } else { high = middle }
    }
    f64::midpoint(low, high)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Prng;

    /// Systems that are drawn for each row. With 400 the shares were 0.94 to 0.98.
    const SYSTEMS: u32 = 40;

    /// A normal deviate by Box and Muller.
    fn normal(random: &mut Prng) -> f64 {
        let radius = (-2.0 * (1.0 - random.unit()).ln()).sqrt();
        radius * (std::f64::consts::TAU * random.unit()).cos()
    }

    /// A system: throughput at a load.
    type Truth = Box<dyn Fn(f64) -> f64>;

    /// Systems of each kind, drawn at random: the law itself, a closed loop before a limit, and one that queues.
    fn truth(random: &mut Prng) -> Truth {
        let between =
            |random: &mut Prng, low: f64, high: f64| low * (high / low).powf(random.unit());
        let (one, kind) = (between(random, 50.0, 5_000.0), random.below(4));
        match kind {
            0 | 1 => {
                let (contention, coherence) =
                    (between(random, 1e-3, 0.5), between(random, 1e-6, 1e-2));
                Box::new(move |load| one * log_gain(load, 1.0, contention, coherence).exp())
            }
            2 => {
                let limit = between(random, 2.0, 100.0);
                Box::new(move |load| one * load.min(limit))
            }
            // A queue before several servers: between the bound of the ends and the law.
            _ => {
                let limit = between(random, 2.0, 100.0);
                Box::new(move |load| one / (load.powi(-3) + limit.powi(-3)).cbrt())
            }
        }
    }

    /// The shares of systems whose throughput at once and a half and at twice the largest load lies in the interval, and
    /// the share whose largest load was predicted from the smaller ones.
    fn coverage(loads: &[f64], deviation: f64, systems: u32) -> [f64; 3] {
        let mut random = Prng::new(7);
        let mut covered = [0_u32; 3];
        for _ in 0..systems {
            let truth = truth(&mut random);
            let points: Vec<_> = loads
                .iter()
                .map(|&load| {
                    let rate = truth(load) * (deviation * normal(&mut random)).exp();
                    ScalingPoint { load, rate }
                })
                .collect();
            let curve = ScalingCurve::of(&points).unwrap();
            let largest = *loads.last().unwrap();
            for (times, covered) in [1.5, 2.0].into_iter().zip(&mut covered) {
                let predicted = curve.predicted(largest * times, 0.95);
                *covered += u32::from(predicted.contains(truth(largest * times)));
            }
            if let Ok(held) = hold_out_largest(&points, 0.95) {
                covered[2] += u32::from(held.is_predicted());
            }
        }
        covered.map(|covered| f64::from(covered) / f64::from(systems))
    }

    #[test]
    fn predictions_cover_systems_that_obey_the_law_and_others() {
        let clients = [1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0];
        for deviation in [0.02, 0.08] {
            let seen = coverage(&clients, deviation, SYSTEMS);
            assert!(seen.iter().all(|share| *share >= 0.9), "{deviation}: {seen:?}");
        }
        // Few CPUs are few observations: the interval is wide, and true.
        let seen = coverage(&[1.0, 2.0, 3.0, 4.0], 0.05, SYSTEMS);
        assert!(seen[0] >= 0.9 && seen[1] >= 0.9, "{seen:?}");
    }

    #[test]
    fn the_parameters_of_a_known_system_are_found() {
        let rate = |load: f64| 1_000.0 * log_gain(load, 1.0, 0.05, 0.000_5).exp();
        let points = [1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0, 128.0]
            .map(|load| ScalingPoint { load, rate: rate(load) });
        let curve = ScalingCurve::of(&points).unwrap();
        assert!(curve.contention(0.95).contains(0.05), "{:?}", curve.contention(0.95));
        assert!(curve.coherence(0.95).contains(0.000_5), "{:?}", curve.coherence(0.95));
        // √((1 − σ) ÷ κ).
        let peak = curve.peak_load(0.95);
        assert!(peak.contains((0.95_f64 / 0.000_5).sqrt()) && peak.high < 60.0, "{peak:?}");
        let left = curve.efficiency(16.0, 0.95);
        assert!(left.contains(rate(16.0) / (16.0 * 1_000.0)), "{left:?}");
        assert!(hold_out_largest(&points, 0.95).unwrap().is_predicted());
    }

    #[test]
    fn a_system_that_breaks_down_beyond_all_smaller_loads_is_not_predicted() {
        let points = [1.0, 2.0, 4.0, 8.0, 16.0, 32.0]
            .map(|load| ScalingPoint { load, rate: if load < 32.0 { 100.0 * load } else { 50.0 } });
        let held = hold_out_largest(&points, 0.95).unwrap();
        assert!(!held.is_predicted(), "{held:?}");
    }

    #[test]
    fn what_gives_no_curve_says_why() {
        let point = |load, rate| ScalingPoint { load, rate };
        let few = [point(1.0, 1.0), point(2.0, 2.0), point(2.0, 2.1), point(4.0, 3.0)];
        let check = |points: &[ScalingPoint], expected| {
            assert_eq!(ScalingCurve::of(points).unwrap_err(), expected);
        };
        check(&few, NoScalingCurve::TooFewLoads { seen: 3 });
        check(&[point(1.0, 0.0)], NoScalingCurve::NoThroughput { load: 1.0 });
        check(&[], NoScalingCurve::TooFewLoads { seen: 0 });
    }
}
