//! A trial with what a page shows of its seconds, and nothing else of them.
//!
//! The record of a trial of hours is larger than memory: what is handed over, one by one, is reduced at
//! once to the few numbers that charts are drawn from.

use std::collections::BTreeMap;

use record::{FinishedTrial, LoadInterval, Moment, Sample, TimelineMark, Trial};
use spec::{Metric, metrics};
use stats::LatencyHistogram;

/// Metrics that charts are drawn from.
const DRAWN: [&Metric; 25] = [
    &metrics::XMIN_AGE,
    &metrics::DEAD_TUPLES,
    &metrics::BLOAT_SHARE,
    &metrics::HEAP_BYTES,
    &metrics::INDEX_BYTES,
    &metrics::SLOT_RETAINED_BYTES,
    &metrics::WAITING_SESSIONS,
    &metrics::WAIT_SAMPLES,
    &metrics::REPLICATION_FLUSH_LAG_BYTES,
    &metrics::POOL_CLIENTS_ACTIVE,
    &metrics::POOL_CLIENTS_WAITING,
    &metrics::GROUP_CPU_USER_CORES,
    &metrics::GROUP_CPU_SYSTEM_CORES,
    &metrics::CPU_USER_PCT,
    &metrics::CPU_SYSTEM_PCT,
    &metrics::CPU_IOWAIT_PCT,
    &metrics::CPU_STEAL_PCT,
    &metrics::WAL_BYTES,
    &metrics::DISK_WRITE_BYTES,
    &metrics::DISK_READ_BYTES,
    &metrics::NET_SEND_BYTES,
    &metrics::NET_RECEIVE_BYTES,
    &metrics::LINK_TO_BYTES,
    &metrics::LINK_FROM_BYTES,
    &metrics::PRESSURE_PCT,
];

/// Series of one metric: nodes times labels. More of them are no chart.
const SERIES_MAX: usize = 500;

/// Lines of a server's log that a page shows of a trial that broke, and how long they are.
const LOG_LINES_MAX: usize = 60;
const LOG_BYTES_MAX: usize = 64 << 10;

/// Longer intervals are shown by their own percentiles, shorter ones are merged.
pub(crate) const SECOND_FROM_NS: u64 = 900_000_000;

/// A trial, and what charts are drawn from.
#[derive(Clone, Debug)]
pub struct ChartedTrial {
    pub(crate) trial: Trial,
    pub(crate) stretches: Vec<Stretch>,
    pub(crate) samples: Samples,
    pub(crate) marks: Vec<TimelineMark>,
    /// The ends of server logs, node → lines.
    pub(crate) logs: BTreeMap<String, String>,
}

/// Part of an interval that charts show.
#[derive(Clone, Debug)]
pub(crate) struct Stretch {
    pub(crate) start: Moment,
    pub(crate) length_ns: u64,
    pub(crate) workload: usize,
    pub(crate) transactions: u64,
    pub(crate) errors: BTreeMap<String, u64>,
    pub(crate) backlog: u64,
    pub(crate) p50_ns: Option<u64>,
    pub(crate) p99_ns: Option<u64>,
    /// The latency of an interval that is shorter than a second.
    pub(crate) latency: Option<LatencyHistogram>,
}

/// Samples by metric, node and label.
#[derive(Clone, Debug, Default)]
pub(crate) struct Samples(BTreeMap<&'static str, BTreeMap<(String, String), Vec<Reading>>>);

/// One value at one moment.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Reading {
    pub(crate) at: Moment,
    pub(crate) value: f64,
}

impl Samples {
    /// The readings of a metric by node and label.
    pub(crate) fn of(
        &self,
        metric: &Metric,
    ) -> impl Iterator<Item = (&(String, String), &[Reading])> {
        debug_assert!(is_shown(metric.name).is_some(), "{} is not kept", metric.name);
        let all = self.0.get(metric.name).into_iter().flatten();
        all.map(|(key, readings)| (key, readings.as_slice()))
    }
}

fn is_shown(metric: &str) -> Option<&'static str> {
    let shown = DRAWN.into_iter().chain([&metrics::PROCESSES_RUNNING]);
    shown.map(|shown| shown.name).find(|name| *name == metric)
}

impl ChartedTrial {
    /// A trial of whose seconds nothing is known yet.
    pub fn of(trial: Trial) -> ChartedTrial {
        let (samples, logs) = (Samples::default(), BTreeMap::new());
        ChartedTrial { trial, stretches: Vec::new(), samples, marks: Vec::new(), logs }
    }

    /// Takes what the clients did in an interval; how many bytes are kept of it.
    pub fn interval(&mut self, interval: LoadInterval) -> usize {
        let LoadInterval { start, length_ns, workload, counts, latency, backlog, .. } = interval;
        let [p50_ns, p99_ns] = latency.quantiles_ns([0.5, 0.99]);
        let latency = (length_ns <= SECOND_FROM_NS).then_some(latency);
        let errors = counts.errors;
        // A histogram that is not kept takes no memory.
        let histogram = latency.as_ref().map_or(0, LatencyHistogram::memory_bytes);
        let kept = 2 * size_of::<Stretch>() + histogram + errors.len() * ERROR_BYTES;
        let transactions = counts.transactions;
        self.stretches.push(Stretch {
            start,
            length_ns,
            workload,
            transactions,
            errors,
            backlog,
            p50_ns,
            p99_ns,
            latency,
        });
        kept
    }

    /// Takes a reading of a probe; how many bytes are kept of it.
    pub fn sample(&mut self, sample: Sample) -> usize {
        let Some(metric) = is_shown(&sample.metric) else {
            return 0;
        };
        let series = self.samples.0.entry(metric).or_default();
        let (is_full, key) = (series.len() >= SERIES_MAX, (sample.node, sample.label));
        let reading = Reading { at: sample.at, value: sample.value };
        if let Some(readings) = series.get_mut(&key) {
            readings.push(reading);
            return 2 * size_of::<Reading>();
        }
        if is_full {
            return 0;
        }
        let kept = SERIES_BYTES + key.0.len() + key.1.len();
        series.insert(key, vec![reading]);
        kept
    }

    /// Takes what happened; how many bytes are kept of it.
    pub fn mark(&mut self, mark: TimelineMark) -> usize {
        let kept = 2 * size_of::<TimelineMark>() + mark.node.len() + mark.text.len();
        self.marks.push(mark);
        kept
    }

    /// Takes a server's log, of which the end has the reason; how many bytes are kept of it.
    pub fn log(&mut self, node: &str, text: &str) -> usize {
        let from = text.len().saturating_sub(LOG_BYTES_MAX);
        let from = (from..text.len()).find(|at| text.is_char_boundary(*at)).unwrap_or(text.len());
        let lines: Vec<&str> = text[from..].lines().collect();
        let end = lines[lines.len().saturating_sub(LOG_LINES_MAX)..].join("\n");
        let kept = SERIES_BYTES + node.len() + end.len();
        self.logs.insert(node.to_owned(), end);
        kept
    }
}

impl From<FinishedTrial> for ChartedTrial {
    fn from(finished: FinishedTrial) -> ChartedTrial {
        let mut evidence = ChartedTrial::of(finished.trial);
        for interval in finished.intervals {
            evidence.interval(interval);
        }
        for sample in finished.samples {
            evidence.sample(sample);
        }
        for mark in finished.marks {
            evidence.mark(mark);
        }
        for (node, text) in &finished.logs {
            evidence.log(node, text);
        }
        evidence
    }
}

/// An entry of a map with a text as its key.
const ERROR_BYTES: usize = 128;
const SERIES_BYTES: usize = 256;
