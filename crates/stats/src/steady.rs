//! The end of the warm-up, and the steadiness of what follows.
//!
//! Most systems under test warm up, some never settle (Barrett et al., OOPSLA 2017), so a steady
//! state is looked for and not assumed. What was seen to change is named; what was not is steady
//! only if an interval shows that it cannot have changed by much. Standstills are found first,
//! then the warm-up (MSER-5), then changes of the level and drifts in what is left (see
//! `change.rs`), in throughput, latency and backlog.

use std::fmt;

use crate::change::{SHORTEST, Series, Trend, VALUES_MIN};
use crate::mser;
use crate::sample;
use crate::standstill::{self, Stretch};

/// Values in a batch, where the series is long enough: the 5 of MSER-5.
const BATCH_MAX: usize = 5;
/// Batches that a series is cut into at least; a short one gets smaller batches.
const BATCHES_MIN: usize = 10;
/// Levels closer than this are the same for all practical purposes.
const LEVEL_SHARE_MIN: f64 = 0.02;
/// A part that is lower than another one by so many standard errors is lower.
const LOWER: f64 = 3.0;
/// Where a series climbs on, the parts are near each other.
const CLIMBS: f64 = 2.0;
/// The changes of one quantity that are named.
const NAMED_MAX: usize = 6;
/// Shorter intervals than this, and than a fiftieth of the window, are taken together.
const SHORTEST_S: f64 = 1.0;
const PARTS: f64 = 50.0;

/// What happened in an interval.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct IntervalSummary {
    /// Transactions that ended well.
    pub transactions: f64,
    /// The sum of their latencies in nanoseconds.
    pub latency_sum_ns: f64,
    /// Transactions that were due and had not begun when it ended; 0 in a closed loop.
    pub backlog: f64,
}

/// What may change in a window.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WindowQuantity {
    /// Transactions a second.
    Throughput,
    /// The mean latency of those that end in an interval, in nanoseconds.
    Latency,
    /// Transactions that were due and have not begun. Shares are of all transactions of the window.
    Backlog,
}

/// Steadiness of a window.
#[derive(Clone, Debug, PartialEq)]
pub enum SteadyState {
    /// Steady from `warmup_s` on.
    Steady {
        /// Length of the beginning to leave out, in seconds.
        warmup_s: f64,
        /// The change of throughput that is left.
        shift: WindowShift,
    },
    /// No change was seen, but one that matters is possible.
    CannotTell {
        /// As above.
        warmup_s: f64,
        /// The change that cannot be excluded, if it is one of throughput.
        shift: WindowShift,
    },
    /// Not steady: the trial runs longer or is void.
    NotSteady {
        /// The reasons, at least one: standstills, then throughput, latency and backlog.
        reasons: Vec<UnsteadyReason>,
    },
    /// The series is too short to say, as in a smoke test: nothing is left out.
    TooShort {
        /// Length of the series in seconds.
        length_s: f64,
        /// Length that is needed, in seconds.
        needed_s: f64,
    },
}

/// How much a quantity changed from the beginning of the steady part to its end, as shares of its level,
/// on a line.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct WindowShift {
    /// The quantity.
    pub quantity: WindowQuantity,
    /// The most likely change.
    pub share: f64,
    /// The lower bound of its 95 % interval.
    pub low: f64,
    /// The upper bound.
    pub high: f64,
    /// The length of that part, in seconds.
    pub seconds: f64,
}

/// Why a window is not steady. Times are seconds since it opened.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum UnsteadyReason {
    /// The level was another one from here on.
    Change {
        /// Of what.
        quantity: WindowQuantity,
        /// When it began.
        at_s: f64,
        /// How long it lasted; nothing if to the end.
        length_s: Option<f64>,
        /// The level without it.
        before: f64,
        /// The level in it.
        after: f64,
        /// The difference as a share of the larger one; of the backlog, of all transactions.
        share: f64,
    },
    /// It rose or fell all the time.
    Drift(WindowShift),
    /// No transaction ended well.
    Standstill {
        /// When it began.
        at_s: f64,
        /// How long it lasted.
        length_s: f64,
    },
    /// A figure is NaN, infinite or negative.
    NotARate,
}

/// A fall that a window of this length and noise would have shown.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct DetectableFall {
    /// The fall of throughput as a share of its level.
    pub share: f64,
    /// How long it lasts, in seconds.
    pub seconds: f64,
}

impl WindowQuantity {
    /// The share by which it may change in a window that is called steady. The mean latency near
    /// saturation moves more than the load does. Of a backlog, so many transactions more are a rate that was missed (see
    /// [`crate::is_rate_missed`]).
    #[must_use]
    pub fn tolerance(self) -> f64 {
        match self {
            WindowQuantity::Throughput => 0.1,
            WindowQuantity::Latency => 0.25,
            WindowQuantity::Backlog => LEVEL_SHARE_MIN,
        }
    }

    /// In a sentence.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            WindowQuantity::Throughput => "throughput",
            WindowQuantity::Latency => "latency",
            WindowQuantity::Backlog => "backlog",
        }
    }
}

impl UnsteadyReason {
    /// True if the change is more than a window may have that is called steady.
    #[must_use]
    pub fn is_large(&self) -> bool {
        match self {
            UnsteadyReason::Change { quantity, share, .. } => share.abs() > quantity.tolerance(),
            UnsteadyReason::Drift(shift) => shift.share.abs() > shift.quantity.tolerance(),
            UnsteadyReason::Standstill { .. } | UnsteadyReason::NotARate => true,
        }
    }
}

/// Judges a window of `intervals`, each `interval_s` long.
///
/// Steps, dips and drifts of 2 % and more are found if they exceed the noise, which may depend on what came before. In simulations
/// of a window of 60 seconds, each with a standard deviation of 3 % and a correlation of 0 to 0.9 with
/// the one before, a fall by 15 % for ten seconds or longer is found in more than 95 % and
/// windows without a change are called unsteady in less than 5 %.
pub fn steady_state(intervals: &[IntervalSummary], interval_s: f64) -> SteadyState {
    match Judged::new(intervals, interval_s) {
        Ok(judged) => judged.state(),
        Err(state) => state,
    }
}

/// The smallest fall of throughput that would have been found at each of three places, early, in the middle and at the
/// end, had it been there for ten seconds or a third of the window: it is put into the series, and the series judged.
/// `None` where nothing is judged, and where not even a standstill of that length would have been found.
pub fn detectable(intervals: &[IntervalSummary], interval_s: f64) -> Option<DetectableFall> {
    let judged = Judged::new(intervals, interval_s).ok()?;
    let rates = judged.values(WindowQuantity::Throughput)?;
    let n = rates.len();
    let length =
        ((FALL_S / judged.bin_s).round() as usize).clamp(n.div_ceil(10).max(SHORTEST), n / 3);
    let is_found = |share: f64| {
        [(n / 6).max(SHORTEST), (n - length) / 2, n - length].into_iter().all(|from| {
            let mut fallen = rates.clone();
            fallen[from..from + length].iter_mut().for_each(|rate| *rate -= share * judged.level);
            Series::new(&fallen).is_some_and(|series| series.change().excess >= 0.0)
        })
    };
    if !is_found(1.0) {
        return None;
    }
    let (mut below, mut above) = (0.0, 1.0);
    while above - below > 0.01 {
        let share = (below + above) / 2.0;
        if is_found(share) { above = share } else { below = share }
    }
    Some(DetectableFall {
        share: f64::max(above, LEVEL_SHARE_MIN),
        seconds: length as f64 * judged.bin_s,
    })
}

/// The length of a fall that is asked for, where the window is long enough.
const FALL_S: f64 = 10.0;

/// A window without its standstills and its warm-up, in bins in which something ended.
struct Judged {
    standstills: Vec<UnsteadyReason>,
    bins: Vec<IntervalSummary>,
    bin_s: f64,
    /// When each bin began, in seconds since the window opened.
    begins_s: Vec<f64>,
    warmup_s: f64,
    /// The mean throughput.
    level: f64,
}

impl Judged {
    fn new(intervals: &[IntervalSummary], interval_s: f64) -> Result<Judged, SteadyState> {
        let is_number = |one: &IntervalSummary| {
            [one.transactions, one.latency_sum_ns, one.backlog]
                .iter()
                .all(|figure| figure.is_finite() && *figure >= 0.0)
        };
        let length_s = intervals.len() as f64 * interval_s;
        let too_short = |group: usize| SteadyState::TooShort {
            length_s,
            needed_s: (VALUES_MIN * group) as f64 * interval_s,
        };
        if intervals.len() < VALUES_MIN || interval_s.is_nan() || interval_s <= 0.0 {
            return Err(too_short(1));
        }
        if !intervals.iter().all(is_number) {
            return Err(SteadyState::NotSteady { reasons: vec![UnsteadyReason::NotARate] });
        }
        let counts: Vec<f64> = intervals.iter().map(|one| one.transactions).collect();
        let standing = standstill::standstills(&counts, interval_s);
        let told = |stretch: &Stretch| UnsteadyReason::Standstill {
            at_s: stretch.start as f64 * interval_s,
            length_s: stretch.len() as f64 * interval_s,
        };
        let standstills: Vec<UnsteadyReason> = standing.iter().map(told).collect();
        let moving: Vec<usize> = (0..intervals.len())
            .filter(|place| !standing.iter().any(|stretch| stretch.contains(place)))
            .collect();
        let shortest = (SHORTEST_S.min(length_s / PARTS) / interval_s) as usize;
        let group = standstill::usual_gap(&counts).max(shortest);
        let whole = moving.chunks_exact(group);
        if whole.len() < VALUES_MIN {
            return Err(match standstills.is_empty() {
                true => too_short(group),
                false => SteadyState::NotSteady { reasons: standstills },
            });
        }
        let sum = |places: &[usize], figure: fn(&IntervalSummary) -> f64| -> f64 {
            places.iter().map(|place| figure(&intervals[*place])).sum()
        };
        let mut bins: Vec<IntervalSummary> = whole
            .clone()
            .map(|places| IntervalSummary {
                transactions: sum(places, |one| one.transactions),
                latency_sum_ns: sum(places, |one| one.latency_sum_ns),
                backlog: sum(places, |one| one.backlog) / group as f64,
            })
            .collect();
        let mut begins_s: Vec<f64> = whole.map(|places| places[0] as f64 * interval_s).collect();
        let bin_s = group as f64 * interval_s;
        let rates: Vec<f64> = bins.iter().map(|bin| bin.transactions / bin_s).collect();
        let cold = warm_up(&rates);
        bins.drain(..cold);
        let warmup_s = begins_s[cold];
        begins_s.drain(..cold);
        // Not the median, which may be 0 where transactions end together.
        let level = sample::mean(&rates[cold..]).unwrap_or(0.0);
        Ok(Judged { standstills, bins, bin_s, begins_s, warmup_s, level })
    }

    fn state(self) -> SteadyState {
        let mut reasons = self.standstills.clone();
        let mut shifts = Vec::new();
        for quantity in
            [WindowQuantity::Throughput, WindowQuantity::Latency, WindowQuantity::Backlog]
        {
            let (found, shift) = self.look(quantity).unzip();
            reasons.extend(found.into_iter().flatten());
            shifts.extend(shift);
        }
        if !reasons.is_empty() {
            return SteadyState::NotSteady { reasons };
        }
        let warmup_s = self.warmup_s;
        let is_wide = |shift: &&WindowShift| {
            let tolerance = shift.quantity.tolerance();
            shift.quantity != WindowQuantity::Backlog && shift.low.min(-shift.high) < -tolerance
        };
        match (shifts.iter().find(is_wide), shifts.first()) {
            (Some(wide), _) => SteadyState::CannotTell { warmup_s, shift: *wide },
            (None, Some(shift)) => SteadyState::Steady { warmup_s, shift: *shift },
            (None, None) => SteadyState::NotSteady { reasons: vec![UnsteadyReason::NotARate] },
        }
    }

    /// The figures of a quantity; of the latency their logarithms. `None` where there is no such figure.
    fn values(&self, quantity: WindowQuantity) -> Option<Vec<f64>> {
        let figure = |bin: &IntervalSummary| match quantity {
            WindowQuantity::Throughput => bin.transactions / self.bin_s,
            WindowQuantity::Latency => (bin.latency_sum_ns / bin.transactions).ln(),
            WindowQuantity::Backlog => bin.backlog,
        };
        let values: Vec<f64> = self.bins.iter().map(figure).collect();
        let is_there = values.iter().all(|value| value.is_finite())
            && (quantity != WindowQuantity::Backlog || values.iter().any(|value| *value > 0.0));
        is_there.then_some(values)
    }

    /// The changes of a quantity, in the order of time, and its change over the window as one line.
    fn look(&self, quantity: WindowQuantity) -> Option<(Vec<UnsteadyReason>, WindowShift)> {
        let values = self.values(quantity)?;
        let all: f64 = self.bins.iter().map(|bin| bin.transactions).sum();
        let share = |difference: f64| match quantity {
            WindowQuantity::Throughput => difference / self.level,
            WindowQuantity::Latency => difference.exp_m1(),
            WindowQuantity::Backlog => difference / all,
        };
        let seconds = self.bins.len() as f64 * self.bin_s;
        let shift = |trend: Trend| WindowShift {
            quantity,
            share: share(trend.rise),
            low: share(trend.low),
            high: share(trend.high),
            seconds,
        };
        let overall = Series::new(&values)?.trend();
        let mut left = values.clone();
        let mut drift = None;
        let mut changes = Vec::new();
        while changes.len() < NAMED_MAX {
            let series = Series::new(&left)?;
            let (change, trend) = (series.change(), series.trend());
            let is_line = drift.is_none() && trend.excess >= change.excess;
            let (excess, size) =
                if is_line { (trend.excess, trend.rise) } else { (change.excess, change.shift) };
            if excess < 0.0 || share(size).abs() < LEVEL_SHARE_MIN {
                break;
            }
            if is_line {
                drift = Some(UnsteadyReason::Drift(shift(trend)));
                let last = (left.len() - 1) as f64;
                let line = left.iter_mut().enumerate();
                line.for_each(|(place, value)| *value -= trend.rise * place as f64 / last);
            } else {
                left[change.from..change.to].iter_mut().for_each(|value| *value -= change.shift);
                changes.push(change);
            }
        }
        changes.sort_by_key(|change| change.from);
        let told = changes.into_iter().map(|change| {
            let inside =
                sample::mean(&values[change.from..change.to]).expect("a change has values");
            let outside = inside - change.shift;
            let (before, after) = match quantity {
                WindowQuantity::Latency => (outside.exp(), inside.exp()),
                WindowQuantity::Throughput | WindowQuantity::Backlog => (outside.max(0.0), inside),
            };
            let share = match quantity {
                WindowQuantity::Backlog => change.shift / all,
                _ => (after - before) / after.max(before),
            };
            let at_s = self.begins_s[change.from];
            let length_s = self.begins_s.get(change.to).map(|end| end - at_s);
            UnsteadyReason::Change { quantity, at_s, length_s, before, after, share }
        });
        Some((drift.into_iter().chain(told).collect(), shift(overall)))
    }
}

/// The number of values that are a warm-up: MSER over means of 5 (fewer in series shorter than 50, so that there are ten
/// batches or more), as far as what it leaves out is lower than what follows and does not fall. The good part before a
/// collapse is not lower, and the part with a dip falls.
fn warm_up(rates: &[f64]) -> usize {
    let batch = (rates.len() / BATCHES_MIN).clamp(1, BATCH_MAX);
    let batches: Vec<f64> = rates.chunks_exact(batch).filter_map(sample::mean).collect();
    let most = (rates.len() - VALUES_MIN).min(rates.len() / 2) / batch;
    // Fewer than three batches show no warm-up.
    let cut = mser::truncation(&batches, most).unwrap_or(0);
    let warm = &rates[cut * batch..];
    let (Some(level), Some(noise)) = (sample::mean(warm), sample::stddev(warm)) else { return 0 };
    let error = |values: usize| noise / (values as f64).sqrt();
    let is_lower = |value: f64, than: f64, values: usize| {
        than - value > (LOWER * error(values)).max(LEVEL_SHARE_MIN * level)
    };
    // What climbs up to the limit is no warm-up: what follows has not settled either.
    let climbs_on = cut == most && cut > 0 && level - batches[cut - 1] > CLIMBS * error(batch);
    if climbs_on || !is_lower(rates[0], level, 1) {
        return 0;
    }
    let mut highest = f64::NEG_INFINITY;
    let climbs = batches[..cut].iter().take_while(|value| {
        let falls = is_lower(**value, highest, batch);
        highest = highest.max(**value);
        !falls
    });
    climbs.count() * batch
}

impl fmt::Display for UnsteadyReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            UnsteadyReason::Change { quantity, at_s, length_s, before, after, .. } => {
                let verb = if after > before { "rose" } else { "fell" };
                let (from, to, unit) = match quantity {
                    WindowQuantity::Throughput => (before, after, " a second"),
                    WindowQuantity::Latency => (before / 1e6, after / 1e6, " ms"),
                    WindowQuantity::Backlog => (before, after, ""),
                };
                let (from, to) = (Figure(from), Figure(to));
                write!(f, "{} {verb} from {from} to {to}{unit} at {at_s:.0} s", quantity.name())?;
                length_s.map_or(Ok(()), |length_s| write!(f, " for {length_s:.0} s"))
            }
            UnsteadyReason::Drift(shift) => shift.fmt(f),
            UnsteadyReason::Standstill { at_s, length_s } => {
                write!(f, "no transaction ended for {length_s:.0} s at {at_s:.0} s")
            }
            UnsteadyReason::NotARate => write!(f, "a rate is not a number above zero"),
        }
    }
}

impl fmt::Display for WindowShift {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [share, low, high] = [self.share, self.low, self.high].map(|share| share * 100.0);
        let (name, seconds) = (self.quantity.name(), self.seconds);
        write!(f, "{name} changed by {share:+.1} % [{low:+.1} %, {high:+.1} %] over {seconds:.0} s")
    }
}

impl fmt::Display for DetectableFall {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "a fall of {:.0} % for {:.0} s", self.share * 100.0, self.seconds)
    }
}

/// A figure as people read it: three digits at least.
struct Figure(f64);

impl fmt::Display for Figure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let digits = (2.0 - self.0.abs().max(0.1).log10().floor()).max(0.0) as usize;
        write!(f, "{:.digits$}", self.0)
    }
}
