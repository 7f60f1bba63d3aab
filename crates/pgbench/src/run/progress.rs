//! Progress of a load: pgbench's progress lines, or one live line on a terminal.

use std::time::{Instant, SystemTime, UNIX_EPOCH};

use load::{LoadEvent, LoadOutcome, WarmUp};
use record::{LoadInterval, Moment, TransactionCounts};
use stats::LatencyHistogram;

use crate::console::Console;
use crate::options::{Length, RunOptions};

use super::figure::{rate, short_ms};
use super::plan::is_open;

const BAR_CELLS: u64 = 20;

/// The first parts of a line that fit into a terminal; the first one always.
fn fitting(parts: &[String], columns: usize) -> String {
    let mut line = String::new();
    for part in parts {
        if !line.is_empty() && line.chars().count() + part.chars().count() >= columns {
            break;
        }
        line.push_str(part);
    }
    line
}

/// Tells of intervals as they come.
pub(super) struct Progress<'a> {
    options: &'a RunOptions,
    style: Style,
    began_connecting: Instant,
    connected: u32,
    /// The beginning of the load and the end of the last report.
    began: Option<Moment>,
    reported: Moment,
    /// Since the last report.
    since: Sum,
    last_line: String,
}

enum Style {
    /// `-P`: a line every so many nanoseconds.
    Lines(u64),
    /// One line that is replaced; seen on a terminal only.
    Live,
}

#[derive(Default)]
struct Sum {
    counts: TransactionCounts,
    latency: LatencyHistogram,
    lag: LatencyHistogram,
}

impl<'a> Progress<'a> {
    pub(super) fn new(options: &'a RunOptions) -> Self {
        Progress {
            options,
            style: match options.progress_s {
                Some(seconds) => Style::Lines(u64::from(seconds) * 1_000_000_000),
                None => Style::Live,
            },
            began_connecting: Instant::now(),
            connected: 0,
            began: None,
            reported: Moment::default(),
            since: Sum::default(),
            last_line: String::new(),
        }
    }

    pub(super) fn observe(&mut self, event: &LoadEvent<'_>, console: &mut Console<'_>) {
        match event {
            LoadEvent::Connecting { done, of } => {
                self.connected = *done;
                self.live(console, self.connecting_line(*done, *of));
            }
            LoadEvent::LoadBegan { .. } => {
                if self.options.clients > 1 {
                    let line = self.connecting_line(self.options.clients, self.options.clients);
                    self.live(console, line);
                    self.keep(console);
                }
            }
            LoadEvent::Interval(intervals) => {
                intervals.iter().for_each(|interval| self.interval(interval, console));
            }
            LoadEvent::Generators(_) | LoadEvent::WindowOpens { .. } | LoadEvent::Message(_) => {}
        }
    }

    /// Leaves a last line: the totals where there are any, the same as in the results.
    pub(super) fn end(&mut self, outcome: Option<&LoadOutcome>, console: &mut Console<'_>) {
        if let Some(totals) = outcome.and_then(|outcome| self.totals(outcome, console.columns)) {
            self.live(console, totals);
        }
        self.keep(console);
    }

    /// `  measured        20 s   28,055 a second   p50 0.8 ms  p99 2.1 ms`. Programs look for "tps" in
    /// what a terminal shows.
    fn totals(&self, outcome: &LoadOutcome, columns: usize) -> Option<String> {
        let workload = outcome.workloads.first()?;
        let published = workload.published_way;
        if published.transactions == 0 || published.seconds <= 0.0 {
            return None;
        }
        let done = published.transactions as f64 / published.seconds;
        let quantile = |q| workload.latency.quantile_ns(q).map_or("–".to_owned(), short_ms);
        let parts = [
            format!("  measured        {:.0} s   {} a second", published.seconds, rate(done)),
            format!("   p50 {} ms  p99 {} ms", quantile(0.5), quantile(0.99)),
            match workload.counts_total.failed() {
                0 => String::new(),
                failed => format!("  {} failed", terms::grouped(failed)),
            },
        ];
        Some(fitting(&parts, columns))
    }

    fn interval(&mut self, interval: &LoadInterval, console: &mut Console<'_>) {
        let began = *self.began.get_or_insert(interval.start);
        if self.reported < began {
            self.reported = began;
        }
        let end = interval.start.plus_ns(interval.length_ns);
        self.since.counts.add(&interval.counts);
        self.since.latency.merge(&interval.latency);
        self.since.lag.merge(&interval.lag);
        let length_ns = end.since(self.reported);
        match self.style {
            // Intervals end a little early or late; half of one decides.
            Style::Lines(every_ns) if length_ns + interval.length_ns / 2 >= every_ns => {
                console.narrate(self.line(end.since(began), length_ns));
            }
            Style::Lines(_) => return,
            Style::Live => {
                let line = self.live_line(end.since(began), length_ns, interval, console.columns);
                self.live(console, line);
            }
        }
        self.since = Sum::default();
        self.reported = end;
    }

    /// `progress: 1.0 s, 2345.0 tps, lat 0.425 ms stddev 0.113, 0 failed`
    fn line(&self, elapsed_ns: u64, length_ns: u64) -> String {
        let Sum { counts, latency, lag } = &self.since;
        let time = if self.options.progress_timestamp {
            // A clock that stands before 1970 shows 1970.
            let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
            format!("{:.3} s", now.as_secs_f64())
        } else {
            format!("{:.1} s", elapsed_ns as f64 / 1e9)
        };
        let tps = counts.transactions as f64 * 1e9 / length_ns.max(1) as f64;
        // pgbench shows 0 for a stretch without a transaction.
        let mean_ms = latency.mean_ns().unwrap_or(0.0) / 1e6;
        // See above.
        let stddev_ms = latency.stddev_ns().unwrap_or(0.0) / 1e6;
        let mut line = format!(
            "progress: {time}, {tps:.1} tps, lat {mean_ms:.3} ms stddev {stddev_ms:.3}, {} failed",
            counts.failed()
        );
        if is_open(self.options) {
            // See above: pgbench shows 0.
            let lag_ms = lag.mean_ns().unwrap_or(0.0) / 1e6;
            line.push_str(&format!(", lag {lag_ms:.3} ms"));
            if self.options.latency_limit_us.is_some() {
                line.push_str(&format!(", {} skipped", counts.skipped));
            }
        }
        if self.options.on_error.tries_max != 1 {
            let TransactionCounts { retried, retries, .. } = counts;
            line.push_str(&format!(", {retried} retried, {retries} retries"));
        }
        line
    }

    fn connecting_line(&self, done: u32, of: u32) -> String {
        let seconds = self.began_connecting.elapsed().as_secs_f64();
        format!("  connecting      {} of {}   {seconds:.2} s", done, of)
    }

    fn live_line(
        &self,
        elapsed_ns: u64,
        length_ns: u64,
        last: &LoadInterval,
        columns: usize,
    ) -> String {
        let Sum { counts, latency, .. } = &self.since;
        let done = counts.transactions as f64 * 1e9 / length_ns.max(1) as f64;
        let quantile = |q: f64| latency.quantile_ns(q).map_or("–".to_owned(), short_ms);
        let (time, share) = self.position(elapsed_ns);
        let bar = match share {
            Some(share) => {
                let full = (share * BAR_CELLS as f64).round().clamp(0.0, BAR_CELLS as f64) as usize;
                let (full, rest) = ("━".repeat(full), "─".repeat(BAR_CELLS as usize - full));
                format!("{full}{rest} ")
            }
            None => String::new(),
        };
        let failed = match counts.failed() {
            0 => String::new(),
            failed => format!("  {} failed", terms::grouped(failed)),
        };
        let (p50, p99) = (quantile(0.5), quantile(0.99));
        let behind = match self.options.pace.rate() {
            // A rate that is reached leaves a few transactions waiting, too.
            Some(asked) if last.backlog as f64 > asked / 10.0 => {
                let backlog = terms::grouped(last.backlog);
                format!("   of {} asked, {backlog} behind", rate(asked))
            }
            _ => String::new(),
        };
        let rest = [
            format!("{time}   {} a second{behind}{failed}", rate(done)),
            format!("   p50 {p50} ms  p99 {p99} ms"),
        ];
        let head = "  measuring       ";
        match head.chars().count() + bar.chars().count() + rest[0].chars().count() < columns {
            true => fitting(&[format!("{head}{bar}{}", rest[0]), rest[1].clone()], columns),
            false => fitting(&[format!("{head}{}", rest[0]), rest[1].clone()], columns),
        }
    }

    /// The position of the run, and its share of the whole where that is known.
    fn position(&self, elapsed_ns: u64) -> (String, Option<f64>) {
        let elapsed_s = elapsed_ns as f64 / 1e9;
        let warm_up_s = match self.options.ours.warm_up {
            None => Some(0.0),
            Some(WarmUp::Fixed(ms)) => Some(ms as f64 / 1000.0),
            Some(WarmUp::Auto { .. }) => None,
        };
        match (self.options.length, warm_up_s) {
            (Length::Seconds(seconds), Some(warm_up_s)) => {
                let whole_s = f64::from(seconds) + warm_up_s;
                (format!("{elapsed_s:.0} s/{whole_s:.0} s"), Some(elapsed_s / whole_s))
            }
            _ => (format!("{elapsed_s:.0} s"), None),
        }
    }

    fn live(&mut self, console: &mut Console<'_>, line: String) {
        if matches!(self.style, Style::Live) {
            console.live(&line);
            self.last_line = line;
        }
    }

    fn keep(&mut self, console: &mut Console<'_>) {
        let line = std::mem::take(&mut self.last_line);
        if console.err_is_terminal && !line.is_empty() {
            console.wipe();
            console.narrate(line);
        }
    }
}
