//! Figures of each phase of a scenario: what clients counted in it and what was read in it.

use check::TrialFigure;
use record::{LoadInterval, MeasuredWindow, TransactionCounts};
use spec::{Metric, ScenarioPhase, Workload, metrics};
use stats::{LatencyHistogram, TimeSlope};

use super::course::standstills;
use super::evidence::{Evidence, ms};
use super::latency::{LATENCY, PERCENTILES, latency};
use super::servers::means;
use super::tables::tables;
use crate::trial::load_plan;

/// The figures of all phases, each under the scope of its phase.
pub(super) fn by_phase(evidence: &Evidence<'_>) -> Vec<TrialFigure> {
    let mut figures = Vec::new();
    let mut first: Vec<f64> = Vec::new();
    for (number, phase) in evidence.point.phases.iter().enumerate() {
        let window = window_of(evidence.window, phase);
        for (part, (index, names)) in parts(&evidence.point.workloads).into_iter().enumerate() {
            let course = PhaseCourse::of(evidence, window, index);
            if number == 0 {
                first.push(course.tps());
            }
            for name in names {
                let scope = ScenarioPhase::scope(name, &phase.name);
                figures.extend(course.figures(&scope));
                if number > 0
                    && let Some(clean) = first.get(part)
                {
                    figures.extend(course.recovery(*clean, &scope));
                }
            }
        }
        let read = means(evidence, window).into_iter().chain(tables(evidence, window));
        figures.extend(read.map(|figure| TrialFigure {
            scope: ScenarioPhase::scope(&figure.scope, &phase.name),
            ..figure
        }));
    }
    figures
}

/// All workloads together, and each where there are several; with the scopes of their figures.
pub(super) fn parts(workloads: &[Workload]) -> Vec<(Option<usize>, Vec<&str>)> {
    if let [only] = workloads {
        return vec![(None, vec!["", only.name.as_str()])];
    }
    let each = workloads.iter().enumerate();
    let each = each.map(|(index, one)| (Some(index), vec![one.name.as_str()]));
    std::iter::once((None, vec![""])).chain(each).collect()
}

/// The part of a window that is a phase.
pub(in crate::trial) fn window_of(window: MeasuredWindow, phase: &ScenarioPhase) -> MeasuredWindow {
    let at = |ms: u64| window.open.plus_ns(ms * 1_000_000).min(window.close);
    MeasuredWindow { open: at(phase.from_ms), close: at(phase.until_ms()), ..window }
}

/// The clients of one workload, or of all, in one phase.
pub(super) struct PhaseCourse {
    window: MeasuredWindow,
    pub(super) counts: TransactionCounts,
    latency: LatencyHistogram,
    backlog_max: u64,
    is_paced: bool,
    /// Length of an interval in seconds.
    interval_s: f64,
    /// Successful transactions a second, interval by interval.
    rates: Vec<f64>,
    /// The rates of these that ended within their deadline.
    good_rates: Vec<f64>,
    /// Mean latency of each interval in which a transaction ended, in milliseconds.
    latencies_ms: Vec<f64>,
}

impl PhaseCourse {
    pub(super) fn of(
        evidence: &Evidence<'_>,
        window: MeasuredWindow,
        index: Option<usize>,
    ) -> PhaseCourse {
        let interval_ms = load_plan::interval_ms(evidence.point.window_ms);
        let interval_ns = interval_ms * 1_000_000;
        let count = (window.close.since(window.open) / interval_ns) as usize;
        let own = evidence.outcome.intervals.iter().filter(|interval| {
            interval.start >= window.open
                && interval.start < window.close
                && index.is_none_or(|index| index == interval.workload)
        });
        let own: Vec<&LoadInterval> = own.collect();
        let mut counts = TransactionCounts::default();
        let (mut latency, mut rates) = (LatencyHistogram::new(), vec![0.0; count]);
        let mut good_rates = rates.clone();
        let mut sums = vec![(0.0, 0.0); count];
        let mut backlogs = vec![0; count];
        for interval in own {
            counts.add(&interval.counts);
            latency.merge(&interval.latency);
            let at = (interval.start.since(window.open) / interval_ns) as usize;
            // What is shorter than an interval at the end is in the counts alone.
            if let (Some(rate), Some(good), Some(sum), Some(backlog)) =
                (rates.get_mut(at), good_rates.get_mut(at), sums.get_mut(at), backlogs.get_mut(at))
            {
                *rate += interval.counts.transactions as f64 * 1e3 / interval_ms as f64;
                *good += interval.counts.good() as f64 * 1e3 / interval_ms as f64;
                sum.0 += interval.latency.sum_ns() as f64;
                sum.1 += interval.latency.count() as f64;
                *backlog += interval.backlog;
            }
        }
        let is_paced = evidence.point.workloads.iter().enumerate().any(|(at, workload)| {
            index.is_none_or(|index| index == at) && workload.pace != spec::Pace::Closed
        });
        let latencies = sums.into_iter().filter(|(_, count)| *count > 0.0);
        PhaseCourse {
            window,
            counts,
            latency,
            backlog_max: backlogs.into_iter().max().unwrap_or(0), // no interval, no backlog
            is_paced,
            interval_s: interval_ms as f64 / 1e3,
            rates,
            good_rates,
            latencies_ms: latencies.map(|(sum, count)| ms(sum / count)).collect(),
        }
    }

    fn tps(&self) -> f64 {
        self.counts.transactions as f64 / self.window.seconds()
    }

    /// Successful transactions a second within their deadline.
    pub(super) fn goodput(&self) -> f64 {
        self.counts.good() as f64 / self.window.seconds()
    }

    /// The time until goodput was where it had been in the first phase, in seconds, and whether it ever was.
    pub(super) fn goodput_recovery(&self, clean: f64) -> (f64, bool) {
        let recovered = recovered_after(&self.good_rates, clean * RECOVERED_SHARE, self.interval_s);
        (recovered.unwrap_or_else(|| self.window.seconds()), recovered.is_some())
    }

    fn figures(&self, scope: &str) -> Vec<TrialFigure> {
        let figure = |metric, value| TrialFigure::new(metric, scope, value);
        let seconds = self.seconds();
        let standing = standstills(&seconds);
        // Without a standstill the longest one took no time.
        let longest = standing.iter().max().map_or(0, |longest| *longest);
        let counts = &self.counts;
        let mut figures = vec![
            figure(&metrics::TPS, self.tps()),
            figure(&metrics::TRANSACTIONS, counts.transactions as f64),
            figure(&metrics::FAILED, counts.failed() as f64),
            figure(&metrics::SKIPPED, counts.skipped as f64),
            figure(&metrics::LATE, counts.late as f64),
            figure(&metrics::RETRIES, counts.retries as f64),
            figure(&metrics::STANDSTILLS, standing.len() as f64),
            figure(&metrics::STANDSTILL_S, standing.iter().sum::<usize>() as f64),
            figure(&metrics::STANDSTILL_MAX_S, longest as f64),
        ];
        let of_seconds = [
            (&metrics::TPS_SECOND_MIN, seconds.iter().copied().reduce(f64::min)),
            (&metrics::TPS_SECOND_MAX, seconds.iter().copied().reduce(f64::max)),
            (&metrics::TPS_CV, stats::sample::coefficient_of_variation(&seconds)),
        ];
        figures.extend(of_seconds.into_iter().filter_map(|(m, value)| Some(figure(m, value?))));
        figures.extend(latency(&self.latency, LATENCY, scope));
        figures.extend(PERCENTILES.iter().filter_map(|(metric, quantile)| {
            Some(figure(metric, ms(self.latency.quantile_ns(*quantile)? as f64)))
        }));
        if self.is_paced {
            figures.push(figure(&metrics::BACKLOG_MAX, self.backlog_max as f64));
        }
        figures.extend(slopes(&self.rates, self.interval_s, TPS_SLOPES, scope));
        figures.extend(slopes(&self.latencies_ms, self.interval_s, LATENCY_SLOPES, scope));
        figures
    }

    /// Successful transactions of each whole second.
    fn seconds(&self) -> Vec<f64> {
        let in_second = (1.0 / self.interval_s).round() as usize;
        let whole = self.rates.chunks_exact(in_second.max(1));
        whole.map(|second| second.iter().sum::<f64>() * self.interval_s).collect()
    }

    /// Time until throughput was where it had been in the first phase.
    fn recovery(&self, clean: f64, scope: &str) -> Vec<TrialFigure> {
        let recovered = recovered_after(&self.rates, clean * RECOVERED_SHARE, self.interval_s);
        let after_s = recovered.unwrap_or_else(|| self.window.seconds());
        vec![
            TrialFigure::bounded(&metrics::TPS_RECOVERY_S, scope, after_s, recovered.is_none()),
            TrialFigure::new(
                &metrics::TPS_RECOVERED,
                scope,
                f64::from(u8::from(recovered.is_some())),
            ),
        ]
    }
}

/// The time after which rates are at `level` and stay there, in seconds; none if they never are. They are there
/// where the mean of all that follow is, and that of the next [`STAY_PARTS`]th of the phase.
fn recovered_after(rates: &[f64], level: f64, interval_s: f64) -> Option<f64> {
    let length = (rates.len() / STAY_PARTS).max(1);
    let mean = |part: &[f64]| part.iter().sum::<f64>() / part.len() as f64;
    let is_there = |from: &usize| {
        let rest = &rates[*from..];
        rest.len() >= length && mean(rest) >= level && mean(&rest[..length]) >= level
    };
    (0..rates.len()).find(is_there).map(|from| from as f64 * interval_s)
}

/// The part of a phase over which throughput must be back.
const STAY_PARTS: usize = 10;
/// The share of the first phase's throughput at which a workload has recovered.
const RECOVERED_SHARE: f64 = 0.95;

/// The metrics of a slope: itself, and the two ends of its interval.
type SlopeMetrics = [&'static Metric; 3];
pub(super) const TPS_SLOPES: SlopeMetrics =
    [&metrics::TPS_SLOPE_PCT, &metrics::TPS_SLOPE_LOW_PCT, &metrics::TPS_SLOPE_HIGH_PCT];
const LATENCY_SLOPES: SlopeMetrics = [
    &metrics::LATENCY_SLOPE_PCT,
    &metrics::LATENCY_SLOPE_LOW_PCT,
    &metrics::LATENCY_SLOPE_HIGH_PCT,
];

fn slopes(readings: &[f64], interval_s: f64, of: SlopeMetrics, scope: &str) -> Vec<TrialFigure> {
    let slope = TimeSlope::of(readings, interval_s, CONFIDENCE).and_then(|one| one.in_percent());
    let figures = slope.map(|slope| {
        let (low, high) = slope.bounds();
        let figures = of.into_iter().zip([slope.an_hour, low, high]);
        figures.map(|(metric, value)| TrialFigure::new(metric, scope, value)).collect()
    });
    figures.unwrap_or_default() // too short for a slope
}

const CONFIDENCE: f64 = 0.95;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn throughput_is_back_where_it_stays() {
        let check = |rates: &[f64], expected: Option<f64>| {
            assert_eq!(recovered_after(rates, 95.0, 1.0), expected, "{rates:?}");
        };
        let at = |from: usize, low: f64| -> Vec<f64> {
            (0..60).map(|second| if second < from { low } else { 100.0 }).collect()
        };
        check(&at(0, 0.0), Some(0.0));
        check(&at(20, 50.0), Some(20.0));
        check(&at(60, 50.0), None);
        // A second that happens to be fast is no recovery.
        let mut late = at(40, 50.0);
        late[10] = 130.0;
        check(&late, Some(40.0));
        // Back, and down again.
        let mut lost = at(20, 50.0);
        lost[40..].fill(50.0);
        check(&lost, None);
        check(&[], None);
    }
}
