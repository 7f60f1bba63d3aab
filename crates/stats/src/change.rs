//! Changes and trends of a series whose neighbouring values resemble each other.
//!
//! The model is a level with autoregressive noise of order 1: xₜ − m = φ (xₜ₋₁ − m) + eₜ, of which neither
//! m nor φ nor the variance of e is known. Alternatives are a level that differs between two places
//! (Levin and Kline, "The cusum test of homogeneity with an application in spontaneous abortion
//! epidemiology", 1985: an epidemic change; one that lasts to the end is a step) and a line. Evidence
//! is the generalised likelihood ratio (Davis, Huang and Yao, "Testing for a change in the parameter
//! values and order of an autoregressive model", Annals of Statistics 23, 1995), with φ at its most
//! likely value under either hypothesis. A statistic that estimates φ or a long-run variance
//! once, from a series that may contain a step, loses the step in it; with 60 values and φ = 0.9
//! there are too few for one that is robust against steps.
//!
//! The limits of the evidence are by simulation of φ from −0.3 to 0.95. The quantiles
//! hardly depend on φ, so that one limit for a length keeps the level for all of them.

use crate::sample;

/// Series that are shorter are not judged.
pub(crate) const VALUES_MIN: usize = 10;

/// Of longer changes than this, which do not last to the end, only so many first places are looked at, evenly
/// spread: a change of so many values is found wherever it begins.
const EVERY_PLACE: usize = 160;

/// Values in a change, and before it, at least.
pub(crate) const SHORTEST: usize = 3;

/// The candidates for φ. A random walk (1) has no level that could change.
const PHIS: [f64; 15] =
    [-0.5, -0.3, -0.1, 0.0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.87, 0.93, 0.97];

/// A value so many standard deviations from the median of its neighbourhood counts as one that is just
/// so far away: a spike is no change of level.
const SPIKE: f64 = 4.0;

/// The median absolute deviation of a normal sample times this is its standard deviation.
const MAD_SCALE: f64 = 1.4826;

/// Noise below this share of the largest value is rounding.
const ROUNDING: f64 = 1e-6;

/// A level that differs from `from` until before `to`, both places in the series.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct LevelChange {
    /// The first place of the other level.
    pub(crate) from: usize,
    /// The place after its last one.
    pub(crate) to: usize,
    /// The difference of the levels.
    pub(crate) shift: f64,
    /// By how much the evidence exceeds what chance yields; a change that is not seen has less than 0.
    pub(crate) excess: f64,
}

/// A line: how much it rises from the first value to the last one.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Trend {
    /// The most likely rise.
    pub(crate) rise: f64,
    /// The lower bound of its interval, of 95 % or more.
    pub(crate) low: f64,
    /// The upper bound.
    pub(crate) high: f64,
    /// As that of a change.
    pub(crate) excess: f64,
}

/// The limit of twice the logarithm of the likelihood ratio of the likeliest change among `n` values,
/// which 1 % to 2 % of all series without a change exceed.
fn change_limit(n: f64) -> f64 {
    11.5 + 2.7 * n.ln()
}

/// The same for a line, at 1 % to 3 %. For long series the 5.02 of Wilks.
fn trend_limit(n: f64) -> f64 {
    5.02 + 11.0 / (1.0 + n / 60.0)
}

/// A series, ready to be looked at.
pub(crate) struct Series {
    values: Vec<f64>,
}

/// A series under one φ, as independent errors around the most likely level.
struct Whitened {
    phi: f64,
    /// √(1−φ²): what the first value, which has no predecessor, is multiplied by.
    start: f64,
    /// 1−φ: what is left of a level.
    keep: f64,
    errors: Vec<f64>,
    /// Sums of the errors before each place.
    sums: Vec<f64>,
    squares: f64,
    /// The squares of the level's regressor.
    level_squares: f64,
}

impl Whitened {
    fn new(values: &[f64], phi: f64) -> Whitened {
        let (start, keep) = ((1.0 - phi * phi).sqrt(), 1.0 - phi);
        let level_squares = start * start + keep * keep * (values.len() - 1) as f64;
        let mut errors = whiten(values.iter().copied(), phi);
        let along = start * errors[0] + keep * errors[1..].iter().sum::<f64>();
        let level = along / level_squares;
        errors[0] -= level * start;
        errors[1..].iter_mut().for_each(|error| *error -= level * keep);
        let mut sum = 0.0;
        let sums = std::iter::once(0.0).chain(errors.iter().map(|error| {
            sum += error;
            sum
        }));
        let sums = sums.collect();
        let squares = errors.iter().map(|error| error * error).sum();
        Whitened { phi, start, keep, errors, sums, squares, level_squares }
    }

    /// Twice the logarithm of the likelihood, but for a constant, if so many squares are left.
    fn likelihood(&self, squares: f64, rounding: f64) -> f64 {
        let n = self.errors.len() as f64;
        (1.0 - self.phi * self.phi).ln() - n * (squares / n).max(rounding * rounding).ln()
    }

    /// The change that explains most: its places, its shift and the squares it explains.
    fn change(&self) -> (usize, usize, f64, f64) {
        let n = self.errors.len();
        // The product of the errors with a change's regressor is a term of its first place and one of its end.
        let first = |from: usize| self.errors[from] - self.keep * self.sums[from + 1];
        let end = |to: usize| {
            // After the last error comes none.
            let after = self.errors.get(to).map_or(0.0, |error| self.phi * error);
            self.keep * self.sums[to] - after
        };
        let firsts: Vec<f64> = (0..n).map(first).collect();
        let ends: Vec<f64> = (0..=n).map(end).collect();
        // The squares of its regressor, the level taken out, depend on its length and on whether it ends.
        let squares = |length: usize, after: f64| {
            let inside = (length - 1) as f64;
            let level = self.keep * (1.0 + self.keep * inside - after);
            let all = 1.0 + inside * self.keep * self.keep + after * after;
            (all - level * level / self.level_squares).max(f64::EPSILON)
        };
        let stride = n.div_ceil(EVERY_PLACE);
        let mut best = (0, n, 0.0, 0.0);
        let mut try_all = |froms: &mut dyn Iterator<Item = usize>, length: usize, squares: f64| {
            let weight = squares.recip();
            for from in froms {
                let along = firsts[from] + ends[from + length];
                if along * along * weight > best.3 {
                    best = (from, from + length, along * weight, along * along * weight);
                }
            }
        };
        for length in SHORTEST..=n - SHORTEST {
            let step = if length < EVERY_PLACE { 1 } else { stride };
            if length % step == 0 {
                let froms = &mut (SHORTEST..n - length).step_by(step);
                try_all(froms, length, squares(length, self.phi));
            }
            try_all(&mut std::iter::once(n - length), length, squares(length, 0.0));
        }
        best
    }

    /// The rise of the most likely line, and the squares of its regressor.
    fn line(&self) -> (f64, f64) {
        let n = self.errors.len();
        let last = (n - 1) as f64;
        let line = whiten((0..n).map(|place| place as f64 / last - 0.5), self.phi);
        let level = self.start * line[0] + self.keep * line[1..].iter().sum::<f64>();
        let squares = line.iter().map(|value| value * value).sum::<f64>()
            - level * level / self.level_squares;
        let along: f64 = line.iter().zip(&self.errors).map(|(a, b)| a * b).sum();
        (along / squares, squares)
    }
}

/// Each value less what φ says of it.
fn whiten(values: impl Iterator<Item = f64>, phi: f64) -> Vec<f64> {
    let mut before = None;
    let whitened = values.map(|value| match before.replace(value) {
        Some(before) => value - phi * before,
        None => (1.0 - phi * phi).sqrt() * value,
    });
    whitened.collect()
}

impl Series {
    /// `None` below [`VALUES_MIN`] values or where one is not finite.
    pub(crate) fn new(values: &[f64]) -> Option<Series> {
        if values.len() < VALUES_MIN || values.iter().any(|value| !value.is_finite()) {
            return None;
        }
        Some(Series { values: without_spikes(values) })
    }

    /// The change that is most likely.
    pub(crate) fn change(&self) -> LevelChange {
        let (all, rounding, none) = self.whitened();
        let candidates = all.iter().map(|one| {
            let (from, to, shift, explained) = one.change();
            (one.likelihood(one.squares - explained, rounding), from, to, shift)
        });
        let likeliest = candidates.max_by(|a, b| a.0.total_cmp(&b.0));
        let (likelihood, from, to, shift) = likeliest.expect("there are candidates for φ");
        let excess = likelihood - none - change_limit(self.values.len() as f64);
        LevelChange { from, to, shift, excess }
    }

    /// The line that is most likely.
    pub(crate) fn trend(&self) -> Trend {
        let (all, rounding, none) = self.whitened();
        let limit = trend_limit(self.values.len() as f64);
        let lines: Vec<(f64, f64, f64)> = all
            .iter()
            .map(|one| {
                let (rise, squares) = one.line();
                (one.likelihood(one.squares - rise * rise * squares, rounding), rise, squares)
            })
            .collect();
        let likeliest = lines.iter().max_by(|a, b| a.0.total_cmp(&b.0));
        let (most, rise, _) = *likeliest.expect("there are candidates for φ");
        let (mut low, mut high) = (rise, rise);
        // A rise belongs to the interval if it is likely enough under some φ.
        for ((likelihood, rise, squares), one) in lines.iter().zip(&all) {
            let n = self.values.len() as f64;
            let left = (one.squares - rise * rise * squares).max(n * rounding * rounding);
            let room = limit - (most - likelihood);
            if room >= 0.0 {
                let reach = (left * ((room / n).exp() - 1.0) / squares).sqrt();
                (low, high) = (low.min(rise - reach), high.max(rise + reach));
            }
        }
        Trend { rise, low, high, excess: most - none - limit }
    }

    /// The series under every φ, the noise that is rounding, and the likelihood without a change.
    fn whitened(&self) -> (Vec<Whitened>, f64, f64) {
        let most = self.values.iter().fold(f64::MIN_POSITIVE, |most, value| most.max(value.abs()));
        let rounding = ROUNDING * most;
        let all = PHIS.map(|phi| Whitened::new(&self.values, phi));
        let likelihoods = all.iter().map(|one| one.likelihood(one.squares, rounding));
        let none = likelihoods.fold(f64::NEG_INFINITY, f64::max);
        (all.into(), rounding, none)
    }
}

/// The values, those that stand apart from their four neighbours moved towards them (Hampel's
/// identifier: Davies and Gather, "The identification of multiple outliers", 1993).
fn without_spikes(values: &[f64]) -> Vec<f64> {
    let last = values.len().saturating_sub(5);
    let medians: Vec<f64> = (0..values.len())
        .filter_map(|place| sample::median(&values[place.saturating_sub(2).min(last)..][..5]))
        .collect();
    let off: Vec<f64> = values.iter().zip(&medians).map(|(value, median)| value - median).collect();
    let sizes: Vec<f64> = off.iter().map(|off| off.abs()).collect();
    let limit = SPIKE * MAD_SCALE * sample::median(&sizes).unwrap_or(f64::INFINITY);
    medians.iter().zip(off).map(|(median, off)| median + off.clamp(-limit, limit)).collect()
}
