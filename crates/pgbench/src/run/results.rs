//! Results of a run, as pgbench counts them and as its clean window shows them.

use std::collections::BTreeMap;

use load::{CommandPlace, LoadOutcome, WarmUp};
use measure::ServerTail;
use record::{LoadInterval, StatementResult, TransactionCounts, WorkloadResult};
use stats::{DetectableFall, IntervalSummary, LatencyHistogram, SteadyState, steady_state};

use crate::options::RunOptions;
use crate::words::{CommandWords, ScriptWords, Words};

use super::baseline::Baseline;
use super::drift::{DeadRows, HourlyDrift};
use super::found::SearchResult;
use super::tables::Tables;

/// Everything that there is to tell about a run.
pub(super) struct Results<'a> {
    pub(super) options: &'a RunOptions,
    pub(super) tables: &'a Tables,
    pub(super) outcome: &'a LoadOutcome,
    /// True if the server runs on the machine of the clients.
    pub(super) is_server_here: bool,
    /// The rig's performance against a server that does nothing.
    pub(super) baseline: Option<&'a Baseline>,
    /// Slow transactions by cause.
    pub(super) tail: Option<&'a ServerTail>,
    /// The search that this is the last run of.
    pub(super) search: Option<&'a SearchResult>,
    /// Dead rows before and after a long run.
    pub(super) dead_rows: Option<&'a DeadRows>,
}

impl Results<'_> {
    pub(super) fn workload(&self) -> &WorkloadResult {
        &self.outcome.workloads[0]
    }

    /// The place of the first error of each kind.
    pub(super) fn first_errors(&self) -> &BTreeMap<String, CommandPlace> {
        &self.outcome.first_errors[0]
    }

    /// The counts of pgbench: everything from when all clients were connected until the last one
    /// was done. After a warm-up, which pgbench does not have, the counts of the window.
    pub(super) fn counts(&self) -> &TransactionCounts {
        let workload = self.workload();
        if self.warmed_up() { &workload.counts } else { &workload.counts_total }
    }

    /// The time in which that happened, in seconds.
    pub(super) fn seconds(&self) -> f64 {
        match self.outcome.window {
            Some(window) if self.warmed_up() => window.seconds(),
            _ => self.workload().published_way.seconds,
        }
    }

    pub(super) fn warmed_up(&self) -> bool {
        self.options.ours.warm_up.is_some_and(|warm_up| warm_up != WarmUp::Fixed(0))
    }

    pub(super) fn words(&self) -> Words<'_> {
        let connecting = &self.outcome.connecting;
        let (mut latency, mut lag) = (LatencyHistogram::new(), LatencyHistogram::new());
        for script in self.outcome.scripts.iter().flatten() {
            latency.merge(&script.latency);
            lag.merge(&script.lag);
        }
        Words {
            options: self.options,
            scale: self.tables.scale,
            partitions: self.tables.partitions,
            counts: self.counts(),
            latency,
            lag,
            seconds: self.seconds(),
            connecting_ns: if self.options.connect_each {
                u64::try_from(connecting.latency.sum_ns()).unwrap_or(u64::MAX)
            } else {
                connecting.length_ns
            },
            scripts: self.scripts(),
        }
    }

    fn scripts(&self) -> Vec<ScriptWords<'_>> {
        // Statements stand in the order of the scripts, each script's together.
        let mut statements = self.workload().statements.iter();
        let outcomes = self.outcome.scripts.iter().flatten();
        let scripts = self.options.scripts.iter().zip(outcomes).map(|(script, outcome)| {
            let own = statements.by_ref().take(script.commands);
            ScriptWords {
                name: &script.name,
                weight: script.weight,
                counts: &outcome.counts,
                latency: &outcome.latency,
                commands: own.map(command).collect(),
            }
        });
        scripts.collect()
    }

    /// The intervals of the window.
    pub(super) fn window_intervals(&self) -> impl Iterator<Item = &LoadInterval> {
        let window = self.outcome.window;
        self.outcome.intervals.iter().filter(move |interval| {
            window.is_some_and(|window| {
                interval.start >= window.open && interval.start < window.close
            })
        })
    }

    /// The window as it is judged, and the length of an interval in seconds.
    fn summaries(&self) -> (Vec<IntervalSummary>, f64) {
        let interval_ms = self.options.ours.interval_ms;
        let intervals = &self.outcome.intervals;
        let summarise = |window| record::summaries(intervals, window, interval_ms);
        (self.outcome.window.map_or(Vec::new(), summarise), interval_ms as f64 / 1e3)
    }

    /// The steadiness of the window.
    pub(super) fn steady(&self) -> SteadyState {
        let (summaries, interval_s) = self.summaries();
        steady_state(&summaries, interval_s)
    }

    /// The change an hour, of a window of ten minutes and more.
    pub(super) fn drift(&self) -> Option<HourlyDrift> {
        let (summaries, interval_s) = self.summaries();
        HourlyDrift::of(&summaries, interval_s)
    }

    /// A fall that the window would have shown.
    pub(super) fn detectable(&self) -> Option<DetectableFall> {
        let (summaries, interval_s) = self.summaries();
        stats::detectable(&summaries, interval_s)
    }

    /// Transactions a second in the window from `after_s` on, and the seconds that this covers.
    pub(super) fn rate_after(&self, after_s: f64) -> (f64, f64) {
        let Some(window) = self.outcome.window else {
            return (0.0, 0.0);
        };
        let begin = window.open.plus_ns((after_s * 1e9) as u64);
        // Half an interval of tolerance: a start is on the grid only to within rounding.
        let half_ns = self.options.ours.interval_ms * 500_000;
        let (mut transactions, mut length_ns) = (0, 0);
        for interval in self.window_intervals() {
            if interval.start.plus_ns(half_ns) >= begin {
                transactions += interval.counts.transactions;
                length_ns += interval.length_ns;
            }
        }
        let seconds = length_ns as f64 / 1e9;
        (if seconds > 0.0 { transactions as f64 / seconds } else { 0.0 }, seconds)
    }
}

fn command(statement: &StatementResult) -> CommandWords<'_> {
    CommandWords {
        text: &statement.text,
        // pgbench shows 0 for a command that was never run.
        mean_ms: statement.latency.mean_ns().unwrap_or(0.0) / 1e6,
        failures: statement.failures,
        retries: statement.retries,
    }
}
