//! The load above which a goal no longer holds, from windows that hold or fail, some of them by
//! chance.
//!
//! A window at load x holds with the probability
//!
//! ```text
//! γ (1 − F) + (1 − λ) F,   F = 1 / (1 + exp(−(θ − ln x) / σ))
//! ```
//!
//! θ is the logarithm of the threshold, σ the width of the transition, λ the lapse rate: the share of
//! windows that fail although the load can be kept, because something else disturbed them. γ is the
//! share that holds although it cannot. What is known of θ, σ and λ is a posterior distribution over
//! a grid. The next load is the one whose window is expected to lower the entropy of θ most. This is
//! the psi method (Kontsevich and Tyler, "Bayesian adaptive estimation of psychometric slope and
//! threshold", Vision Research 39, 1999) with the lapse rate as a nuisance parameter (Prins, "The
//! psi-marginal adaptive method", Journal of Vision 13, 2013).

/// Lapse rates, and how likely each is beforehand.
const LAPSES: [(f64, f64); 4] = [(0.02, 0.4), (0.1, 0.3), (0.25, 0.2), (0.45, 0.1)];
/// Widths of the transition, of the logarithm of the load, and how likely each is beforehand.
const WIDTHS: [(f64, f64); 4] = [(0.005, 0.35), (0.02, 0.3), (0.06, 0.2), (0.15, 0.15)];
/// The share of windows that hold at a load that cannot be kept.
const GUESSES: f64 = 0.02;
/// Prior probability that no load can be kept, and that every load can.
const NOWHERE: f64 = 0.02;
const EVERYWHERE: f64 = 0.05;
/// Quantiles of the posterior beside which the next load is looked for.
const LOOKED_AT: [f64; 11] = [0.02, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.98];
/// Distances from its median, in loads, which are checked too: a window far below tells lapses
/// from a low threshold.
const DISTANCES: [isize; 7] = [-40, -20, -10, -5, 5, 10, 20];
/// By how much the logarithm of longer windows' threshold may lie lower or higher: the scales of two
/// exponential distributions.
const LOWER: f64 = 0.15;
const HIGHER: f64 = 0.03;
/// Likelihood of a threshold that the shorter windows exclude, relative to one that they are sure
/// of.
const UNRELATED: f64 = 0.01;
/// Thresholds less likely than this do not count for what to try next.
const NEGLIGIBLE: f64 = 1e-7;

const SHAPES: usize = LAPSES.len() * WIDTHS.len();

/// Distribution of a threshold among given loads.
#[derive(Clone, Debug)]
pub struct ThresholdDistribution {
    /// ln of the loads, ascending.
    loads: Vec<f64>,
    /// The probability of each threshold (that so many of the loads can be kept), for each lapse
    /// rate and width. Sums to 1.
    posterior: Vec<[f64; SHAPES]>,
}

impl ThresholdDistribution {
    /// Nothing is known yet. Higher thresholds are more likely, with the root of the load.
    ///
    /// `loads` are positive and ascending, at least one.
    pub fn new(loads: &[f64]) -> ThresholdDistribution {
        ThresholdDistribution::unknown(loads.iter().map(|load| load.ln()).collect())
    }

    fn unknown(loads: Vec<f64>) -> ThresholdDistribution {
        // Between two loads: by their distance and the root of the load.
        let between: Vec<f64> = loads
            .windows(2)
            .map(|pair| (pair[1] - pair[0]) * ((pair[0] + pair[1]) / 4.0).exp())
            .collect();
        let all: f64 = between.iter().sum();
        let inner = between.iter().map(|weight| weight / all * (1.0 - NOWHERE - EVERYWHERE));
        let posterior = [NOWHERE]
            .into_iter()
            .chain(inner)
            .chain([EVERYWHERE])
            .map(|prior| {
                std::array::from_fn(|shape| {
                    let (lapse, width) =
                        (LAPSES[shape / WIDTHS.len()], WIDTHS[shape % WIDTHS.len()]);
                    prior * lapse.1 * width.1
                })
            })
            .collect();
        let mut threshold = ThresholdDistribution { loads, posterior };
        threshold.normalise();
        threshold
    }

    /// Distribution of the threshold of longer windows: it is rather lower, because an event that
    /// is rare in short windows is frequent in long ones. Nothing is known of their lapse rate and
    /// width.
    pub fn of_longer_windows(&self) -> ThresholdDistribution {
        let mut longer = ThresholdDistribution::unknown(self.loads.clone());
        let own: Vec<f64> = self.posterior.iter().map(|all| all.iter().sum()).collect();
        let last = self.loads.len() - 1;
        let place = |threshold: usize| match threshold {
            0 => self.loads[0],
            threshold => self.loads[(threshold - 1).min(last)],
        };
        for (to, probabilities) in longer.posterior.iter_mut().enumerate() {
            let likely: f64 = own
                .iter()
                .enumerate()
                .map(|(from, probability)| {
                    let rise = place(to) - place(from);
                    let scale = if rise > 0.0 { HIGHER } else { LOWER };
                    probability * (-rise.abs() / scale).exp()
                })
                .sum();
            // The prior stays where nothing else speaks for a threshold.
            probabilities.iter_mut().for_each(|probability| *probability *= likely + UNRELATED);
        }
        longer.normalise();
        longer
    }

    /// A window at the load with this index has held, or has not.
    pub fn tell(&mut self, load: usize, held: bool) {
        for threshold in 0..self.posterior.len() {
            let holds = self.holds(load, threshold);
            for (probability, holds) in self.posterior[threshold].iter_mut().zip(holds) {
                *probability *= if held { holds } else { 1.0 - holds };
            }
        }
        self.normalise();
    }

    /// Number of loads, from the lowest, that can be kept: the `q` quantile of the distribution.
    pub fn quantile(&self, q: f64) -> usize {
        let mut sum = 0.0;
        let reaches = |probabilities: &[f64; SHAPES]| {
            sum += probabilities.iter().sum::<f64>();
            sum >= q
        };
        self.posterior.iter().position(reaches).unwrap_or(self.loads.len())
    }

    /// The mean of what is known of the lapse rate, 0 to 1.
    pub fn lapse_rate(&self) -> f64 {
        let mean = |probabilities: &[f64; SHAPES]| -> f64 {
            let each = probabilities.iter().enumerate();
            each.map(|(shape, probability)| probability * LAPSES[shape / WIDTHS.len()].0).sum()
        };
        self.posterior.iter().map(mean).sum()
    }

    /// The index of the load at which a window is expected to tell most about the threshold.
    pub fn most_informative(&self) -> usize {
        let last = self.loads.len().saturating_sub(1);
        let median = self.quantile(0.5);
        let mut candidates: Vec<usize> = LOOKED_AT
            .iter()
            .map(|q| self.quantile(*q))
            .flat_map(|at| [at.saturating_sub(1), at])
            .chain(DISTANCES.iter().map(|distance| median.saturating_add_signed(*distance)))
            .map(|load| load.min(last))
            .collect();
        candidates.sort_unstable();
        candidates.dedup();
        let entropies = candidates.iter().map(|load| (*load, self.expected_entropy(*load)));
        let best = entropies.min_by(|a, b| a.1.total_cmp(&b.1));
        best.expect("the loads around the median are candidates").0
    }

    /// The entropy of the threshold after a window at this load, in nats.
    fn expected_entropy(&self, load: usize) -> f64 {
        let (mut held, mut failed) = (Entropy::default(), Entropy::default());
        for (threshold, probabilities) in self.posterior.iter().enumerate() {
            let all: f64 = probabilities.iter().sum();
            if all < NEGLIGIBLE {
                continue;
            }
            let holds = self.holds(load, threshold);
            let both: f64 = probabilities.iter().zip(holds).map(|(p, holds)| p * holds).sum();
            held.add(both);
            failed.add((all - both).max(0.0));
        }
        held.weighted() + failed.weighted()
    }

    /// The probability that a window at a load holds where so many loads can be kept, for each shape.
    fn holds(&self, load: usize, threshold: usize) -> [f64; SHAPES] {
        let theta = match threshold {
            0 => f64::NEG_INFINITY,
            n if n == self.loads.len() => f64::INFINITY,
            n => self.loads[n - 1].midpoint(self.loads[n]),
        };
        let mut holds = [0.0; SHAPES];
        for (at, (width, _)) in WIDTHS.iter().enumerate() {
            let kept = 1.0 / (1.0 + (-(theta - self.loads[load]) / width).exp());
            for (of, (lapse, _)) in LAPSES.iter().enumerate() {
                holds[of * WIDTHS.len() + at] = GUESSES * (1.0 - kept) + (1.0 - lapse) * kept;
            }
        }
        holds
    }

    fn normalise(&mut self) {
        let all: f64 = self.posterior.iter().flatten().sum();
        self.posterior.iter_mut().flatten().for_each(|probability| *probability /= all);
    }
}

/// Σ p and Σ p ln p of probabilities that do not sum to 1.
#[derive(Default)]
struct Entropy {
    sum: f64,
    sum_p_ln_p: f64,
}

impl Entropy {
    fn add(&mut self, p: f64) {
        if p > 0.0 {
            self.sum += p;
            self.sum_p_ln_p += p * p.ln();
        }
    }

    /// The entropy of the distribution, times the probability of all of it.
    fn weighted(&self) -> f64 {
        if self.sum > 0.0 { self.sum * self.sum.ln() - self.sum_p_ln_p } else { 0.0 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Twenty windows, each at the load that tells most: loads up to `truth`, counted from 1, hold.
    fn narrow(known: &mut ThresholdDistribution, truth: usize) {
        for _ in 0..20 {
            let load = known.most_informative();
            known.tell(load, load < truth);
        }
    }

    #[test]
    fn what_windows_show_moves_what_is_known() {
        let loads: Vec<f64> = (1..=100).map(f64::from).collect();
        let mut known = ThresholdDistribution::new(&loads);
        assert!(known.quantile(0.05) < 20 && known.quantile(0.95) > 80, "nothing is known");
        narrow(&mut known, 60);
        assert_eq!(known.quantile(0.5), 60);
        assert!(known.quantile(0.95) - known.quantile(0.05) <= 3);
        assert!(known.lapse_rate() < 0.1, "{}", known.lapse_rate());
    }

    #[test]
    fn windows_that_fail_far_below_are_lapses() {
        let loads: Vec<f64> = (1..=100).map(f64::from).collect();
        let mut known = ThresholdDistribution::new(&loads);
        for window in 0..40 {
            let load = known.most_informative();
            known.tell(load, loads[load] <= 60.0 && window % 3 != 0);
        }
        assert!((57..=63).contains(&known.quantile(0.5)), "{}", known.quantile(0.5));
        assert!(known.lapse_rate() > 0.15, "{}", known.lapse_rate());
    }

    #[test]
    fn longer_windows_have_a_threshold_nearby() {
        let loads: Vec<f64> = (1..=100).map(f64::from).collect();
        let mut short = ThresholdDistribution::new(&loads);
        narrow(&mut short, 60);
        let mut longer = short.of_longer_windows();
        let likely = longer.quantile(0.25)..=longer.quantile(0.75);
        assert!(
            likely.contains(&56) && !likely.contains(&30) && !likely.contains(&70),
            "{likely:?}"
        );
        // What longer windows show is believed, wherever it lies.
        narrow(&mut longer, 20);
        assert_eq!(longer.quantile(0.5), 20);
    }

    #[test]
    fn there_may_be_one_load() {
        let mut known = ThresholdDistribution::new(&[1.0]);
        assert_eq!(known.most_informative(), 0);
        (0..5).for_each(|_| known.tell(0, true));
        assert_eq!(known.quantile(0.1), 1);
        let mut known = ThresholdDistribution::new(&[1.0]);
        (0..5).for_each(|_| known.tell(0, false));
        assert_eq!(known.quantile(0.9), 0);
    }
}
