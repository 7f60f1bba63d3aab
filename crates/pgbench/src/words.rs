//! pgbench's report at the end of a run, word for word: programs read it.
//!
//! [`Words`] holds everything that is said; [`Words::block`] says it as the pgbench does that is spoken.

use std::fmt::Write;

use load::{Pace, Protocol};
use record::TransactionCounts;
use stats::LatencyHistogram;

use crate::major::Major;
use crate::options::{Length, Partitions, RunOptions};

/// A run as pgbench tells of it.
#[derive(Debug)]
pub struct Words<'a> {
    /// The options of the run.
    pub options: &'a RunOptions,
    /// `-s`, or the number of branches.
    pub scale: i64,
    /// The partitions of pgbench_accounts, if there are any.
    pub partitions: Option<Partitions>,
    /// The counts of all transactions by the way in which they ended.
    pub counts: &'a TransactionCounts,
    /// Their latency from the intended start.
    pub latency: LatencyHistogram,
    /// Delay of their starts behind schedule.
    pub lag: LatencyHistogram,
    /// From when all clients were connected until the last one was done, in seconds.
    pub seconds: f64,
    /// Connecting all clients; with `-C`, the sum of all connecting. Nanoseconds.
    pub connecting_ns: u64,
    /// One entry a script, in order.
    pub scripts: Vec<ScriptWords<'a>>,
}

/// One script's share of a run.
#[derive(Debug)]
pub struct ScriptWords<'a> {
    /// File name, or the description of a built-in.
    pub name: &'a str,
    /// Its weight.
    pub weight: u32,
    /// The counts of its transactions by the way in which they ended.
    pub counts: &'a TransactionCounts,
    /// Their latency.
    pub latency: &'a LatencyHistogram,
    /// Its commands in order; empty unless asked for.
    pub commands: Vec<CommandWords<'a>>,
}

/// One command of a script.
#[derive(Debug)]
pub struct CommandWords<'a> {
    /// Its first line.
    pub text: &'a str,
    /// Mean time in milliseconds, 0 when it never succeeded.
    pub mean_ms: f64,
    /// Errors that were not retried.
    pub failures: u64,
    /// Errors that were.
    pub retries: u64,
}

impl<'a> Words<'a> {
    /// The final block.
    pub fn block(&self) -> String {
        let mut text = String::new();
        // Writing to a String cannot fail.
        let _ = self.parameters(&mut text);
        if self.total() > 0 {
            let _ = self.endings(&mut text);
            let _ = self.times(&mut text);
            let _ = self.per_script(&mut text);
        } else if self.options.major <= Major::V17 {
            let _ = self.failures(&mut text, "", self.counts);
        }
        text
    }

    /// The name of what ran.
    pub fn what(&self) -> &'a str {
        match &self.options.scripts[..] {
            [one] => &one.name,
            _ => "multiple scripts",
        }
    }

    fn total(&self) -> u64 {
        total(self.counts)
    }

    fn parameters(&self, to: &mut String) -> std::fmt::Result {
        let options = self.options;
        writeln!(to, "transaction type: {}", self.what())?;
        writeln!(to, "scaling factor: {}", self.scale)?;
        if let Some(Partitions { count, method }) = self.partitions {
            writeln!(to, "partition method: {}\npartitions: {count}", method.name())?;
        }
        writeln!(to, "query mode: {}", protocol_name(options.protocol))?;
        writeln!(to, "number of clients: {}", options.clients)?;
        writeln!(to, "number of threads: {}", options.lanes)?;
        if options.on_error.tries_max > 0 {
            writeln!(to, "maximum number of tries: {}", options.on_error.tries_max)?;
        }
        let processed = self.counts.transactions;
        match options.length {
            Length::Transactions(each) => {
                let planned = u64::from(each) * u64::from(options.clients);
                writeln!(to, "number of transactions per client: {each}")?;
                writeln!(to, "number of transactions actually processed: {processed}/{planned}")
            }
            Length::Seconds(seconds) => {
                writeln!(to, "duration: {seconds} s")?;
                writeln!(to, "number of transactions actually processed: {processed}")
            }
        }
    }

    fn endings(&self, to: &mut String) -> std::fmt::Result {
        let options = self.options;
        self.failures(to, "", self.counts)?;
        if self.skips() {
            let skipped = self.counts.skipped;
            let percent = percent(skipped, self.total());
            writeln!(to, "number of transactions skipped: {skipped} ({percent:.3}%)")?;
        }
        if let Some(limit_us) = options.latency_limit_us {
            let (late, processed) = (self.counts.late, self.counts.transactions);
            writeln!(
                to,
                "number of transactions above the {:.1} ms latency limit: {late}/{processed} \
                 ({:.3}%)",
                limit_us as f64 / 1000.0,
                percent(late, processed)
            )?;
        }
        Ok(())
    }

    /// Failures and retries, of the run or of one script.
    fn failures(
        &self,
        to: &mut String,
        indent: &str,
        counts: &TransactionCounts,
    ) -> std::fmt::Result {
        let options = self.options;
        let total = total(counts);
        let is_undefined = total == 0 && options.major <= Major::V17;
        let mut line = |what: &str, n: u64| {
            let percent = if is_undefined { f64::NAN } else { percent(n, total) };
            writeln!(to, "{indent}number of {what}: {n} ({percent:.3}%)")
        };
        line("failed transactions", counts.failed())?;
        if options.failures_detailed {
            line("serialization failures", counts.serialization_failures)?;
            line("deadlock failures", counts.deadlock_failures)?;
            if options.major >= Major::V19 {
                line("other failures", counts.other_failures)?;
            }
        }
        if options.on_error.tries_max != 1 {
            line("transactions retried", counts.retried)?;
            writeln!(to, "{indent}total number of retries: {}", counts.retries)?;
        }
        Ok(())
    }

    fn times(&self, to: &mut String) -> std::fmt::Result {
        let options = self.options;
        let measured =
            self.is_open() || options.progress_s.is_some() || options.latency_limit_us.is_some();
        let failed = self.counts.failed();
        if measured {
            mean_and_deviation(to, "latency", &self.latency)?;
        } else {
            // pgbench measures no latency here: it divides the time by the transactions.
            let mean_ms = self.seconds * 1000.0 * f64::from(options.clients) / self.total() as f64;
            let note = if failed > 0 { " (including failures)" } else { "" };
            writeln!(to, "latency average = {mean_ms:.3} ms{note}")?;
        }
        if self.is_open() {
            // Without a transaction, pgbench shows a lag of 0.
            let mean_ms = self.lag.mean_ns().unwrap_or(0.0) / 1e6;
            // See above.
            let max_ms = self.lag.max_ns().unwrap_or(0) as f64 / 1e6;
            writeln!(to, "rate limit schedule lag: avg {mean_ms:.3} (max {max_ms:.3}) ms")?;
        }
        let connecting_ms = self.connecting_ns as f64 / 1e6;
        let tps = self.counts.transactions as f64 / self.seconds;
        if options.connect_each {
            let connections = (self.counts.transactions + failed).max(1) as f64;
            writeln!(to, "average connection time = {:.3} ms", connecting_ms / connections)?;
            writeln!(to, "tps = {tps:.6} (including reconnection times)")
        } else {
            writeln!(to, "initial connection time = {connecting_ms:.3} ms")?;
            writeln!(to, "tps = {tps:.6} (without initial connection time)")
        }
    }

    fn per_script(&self, to: &mut String) -> std::fmt::Result {
        let several = self.scripts.len() > 1;
        for (index, script) in self.scripts.iter().enumerate() {
            if several {
                self.script(to, index + 1, script)?;
            }
            if self.options.per_command {
                self.commands(to, if several { " - " } else { "" }, script)?;
            }
        }
        Ok(())
    }

    fn script(&self, to: &mut String, number: usize, script: &ScriptWords<'_>) -> std::fmt::Result {
        let weights: u64 = self.scripts.iter().map(|script| u64::from(script.weight)).sum();
        let of_weights = 100.0 * f64::from(script.weight) / weights as f64;
        let script_total = total(script.counts);
        let processed = script.counts.transactions;
        let tps = processed as f64 / self.seconds;
        writeln!(to, "SQL script {number}: {}", script.name)?;
        writeln!(to, " - weight: {} (targets {of_weights:.1}% of total)", script.weight)?;
        let is_old = self.options.major <= Major::V16;
        if is_old {
            let of_total = 100.0 * processed as f64 / self.counts.transactions as f64;
            writeln!(to, " - {processed} transactions ({of_total:.1}% of total, tps = {tps:.6})")?;
        } else {
            let of_total = percent(script_total, self.total());
            writeln!(to, " - {script_total} transactions ({of_total:.1}% of total)")?;
        }
        if script_total > 0 || is_old {
            if !is_old {
                writeln!(
                    to,
                    " - number of transactions actually processed: {processed} (tps = {tps:.6})"
                )?;
            }
            self.failures(to, " - ", script.counts)?;
            if self.skips() && script_total > 0 {
                let skipped = script.counts.skipped;
                let percent = percent(skipped, script_total);
                writeln!(to, " - number of transactions skipped: {skipped} ({percent:.3}%)")?;
            }
        }
        mean_and_deviation(to, " - latency", script.latency)
    }

    fn commands(
        &self,
        to: &mut String,
        indent: &str,
        script: &ScriptWords<'_>,
    ) -> std::fmt::Result {
        let once = self.options.on_error.tries_max == 1;
        let columns = if once { " and failures" } else { ", failures and retries" };
        writeln!(to, "{indent}statement latencies in milliseconds{columns}:")?;
        let gap = if self.options.major <= Major::V17 { "  " } else { " " };
        for CommandWords { text, mean_ms, failures, retries } in &script.commands {
            let retries = if once { String::new() } else { format!("{gap}{retries:10}") };
            writeln!(to, "   {mean_ms:11.3}  {failures:10}{retries}{gap}{text}")?;
        }
        Ok(())
    }

    fn is_open(&self) -> bool {
        self.options.pace != Pace::Closed
    }

    fn skips(&self) -> bool {
        self.is_open() && self.options.latency_limit_us.is_some()
    }
}

/// As pgbench names it.
pub fn protocol_name(protocol: Protocol) -> &'static str {
    protocol.name()
}

/// Transactions that came to any end, skipped ones included.
fn total(counts: &TransactionCounts) -> u64 {
    counts.transactions + counts.skipped + counts.failed()
}

fn percent(part: u64, whole: u64) -> f64 {
    if whole == 0 { 0.0 } else { 100.0 * part as f64 / whole as f64 }
}

fn mean_and_deviation(
    to: &mut String,
    prefix: &str,
    latency: &LatencyHistogram,
) -> std::fmt::Result {
    if let (Some(mean_ns), Some(stddev_ns)) = (latency.mean_ns(), latency.stddev_ns()) {
        writeln!(to, "{prefix} average = {:.3} ms", mean_ns / 1e6)?;
        writeln!(to, "{prefix} stddev = {:.3} ms", stddev_ns / 1e6)?;
    }
    Ok(())
}
