//! pgbench's log of transactions: one line each, or one line for so many seconds.

use std::{
    fs::File,
    io::{BufWriter, Write},
    sync::Arc,
};

use script::Xoroshiro128;

use crate::{
    LoadError, LogPlan,
    tally::{Ending, Finished},
};
use server::dial::without_errno;

/// One lane's log file.
pub(crate) struct LaneLog {
    file: BufWriter<Arc<File>>,
    plan: LogPlan,
    columns: Columns,
    /// The thread's state for `--sampling-rate`.
    sample: Xoroshiro128,
    sum: Sum,
    /// The first thing that went wrong; nothing is written after it.
    failed: Option<std::io::Error>,
}

/// The optional columns of a run.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Columns {
    /// Open loop: the lag.
    pub(crate) lag: bool,
    /// More than one try is allowed: the retries.
    pub(crate) retries: bool,
}

/// The identity of a transaction in the log.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Who {
    pub(crate) client: u32,
    /// Number of the transaction among this client's, from 1.
    pub(crate) number: u64,
    pub(crate) script: usize,
}

/// One stretch of an aggregated log. Times are microseconds.
#[derive(Clone, Copy, Default)]
struct Sum {
    start_us: u64,
    count: u64,
    latency: Extent,
    lag: Extent,
    skipped: u64,
    retried: u64,
    retries: u64,
    serialization: u64,
    deadlock: u64,
    other: u64,
}

#[derive(Clone, Copy, Default)]
struct Extent {
    count: u64,
    sum: f64,
    sum_of_squares: f64,
    min: f64,
    max: f64,
}

/// `PREFIX.PID` for the first lane and `PREFIX.PID.N` for lane N.
pub(crate) fn path(plan: &LogPlan, lane: usize) -> String {
    let pid = std::process::id();
    match lane {
        0 => format!("{}.{pid}", plan.prefix),
        _ => format!("{}.{pid}.{lane}", plan.prefix),
    }
}

/// Makes the file of a lane.
pub(crate) fn create(plan: &LogPlan, lane: usize) -> Result<File, LoadError> {
    let path = path(plan, lane);
    File::create(&path).map_err(|error| {
        let why = without_errno(&error.to_string()).to_owned();
        LoadError::LogFile { path, why }
    })
}

impl LaneLog {
    /// A log that begins in `file`. `began` is the load's beginning in nanoseconds since the run
    /// began.
    pub(crate) fn new(
        file: Arc<File>,
        plan: LogPlan,
        columns: Columns,
        sample: Xoroshiro128,
        began: u64,
    ) -> Self {
        let start_us = (plan.epoch_us + began / 1_000) / 1_000_000 * 1_000_000;
        let sum = Sum { start_us, ..Sum::default() };
        LaneLog { file: BufWriter::new(file), plan, columns, sample, sum, failed: None }
    }

    /// Logs a finished transaction.
    pub(crate) fn write(&mut self, who: Who, done: &Finished) {
        if self.failed.is_some() {
            return;
        }
        // As pgbench: no number is drawn where everything is logged.
        let rate = self.plan.sampling_rate;
        if rate > 0.0 && rate < 1.0 && self.sample.double() > rate {
            return;
        }
        let written = match self.plan.aggregate_s {
            None => self.line(who, done),
            Some(seconds) => self.aggregate(seconds, done),
        };
        self.failed = written.err();
    }

    /// Completes the file at the end of the load, in nanoseconds since the run began, and tells
    /// what went wrong with it. As in pgbench, a stretch that is not over is left out unless it is asked for.
    pub(crate) fn finish(mut self, ended: u64) -> std::io::Result<()> {
        if let Some(error) = self.failed.take() {
            return Err(error);
        }
        if let Some(seconds) = self.plan.aggregate_s {
            self.roll(seconds, ended)?;
            if self.plan.last_stretch && !self.sum.is_empty() {
                self.sum.write(&mut self.file, &self.plan)?;
            }
        }
        self.file.flush()
    }

    fn line(&mut self, who: Who, done: &Finished) -> std::io::Result<()> {
        let file = &mut self.file;
        write!(file, "{} {} ", who.client, who.number)?;
        if done.ending == Ending::Good {
            write!(file, "{}", done.ended.saturating_sub(done.scheduled) / 1_000)?;
        } else {
            write!(file, "{}", word(done.ending, self.plan.failures_detailed))?;
        }
        let now_us = self.plan.epoch_us + done.ended / 1_000;
        write!(file, " {} {} {}", who.script, now_us / 1_000_000, now_us % 1_000_000)?;
        if self.columns.lag {
            write!(file, " {}", done.began.saturating_sub(done.scheduled) / 1_000)?;
        }
        if self.columns.retries {
            write!(file, " {}", done.retries)?;
        }
        writeln!(file)
    }

    fn aggregate(&mut self, seconds: u64, done: &Finished) -> std::io::Result<()> {
        self.roll(seconds, done.ended)?;
        self.sum.add(done, self.columns);
        Ok(())
    }

    /// Writes the stretches that are over.
    fn roll(&mut self, seconds: u64, now: u64) -> std::io::Result<()> {
        let length_us = seconds * 1_000_000;
        let now_us = self.plan.epoch_us + now / 1_000;
        while self.sum.start_us + length_us <= now_us {
            self.sum.write(&mut self.file, &self.plan)?;
            self.sum = Sum { start_us: self.sum.start_us + length_us, ..Sum::default() };
        }
        Ok(())
    }
}

fn word(ending: Ending, detailed: bool) -> &'static str {
    match ending {
        Ending::Skipped => "skipped",
        Ending::Serialization if detailed => "serialization",
        Ending::Deadlock if detailed => "deadlock",
        Ending::Other if detailed => "other",
        Ending::Good | Ending::Serialization | Ending::Deadlock | Ending::Other => "failed",
    }
}

impl Sum {
    fn is_empty(&self) -> bool {
        self.count + self.skipped + self.serialization + self.deadlock + self.other == 0
    }

    fn add(&mut self, done: &Finished, columns: Columns) {
        if done.retries > 0 {
            self.retried += 1;
            self.retries += u64::from(done.retries);
        }
        match done.ending {
            Ending::Skipped => self.skipped += 1,
            Ending::Serialization => self.serialization += 1,
            Ending::Deadlock => self.deadlock += 1,
            Ending::Other => self.other += 1,
            Ending::Good => {
                self.count += 1;
                self.latency.add(done.ended.saturating_sub(done.scheduled) as f64 / 1e3);
                if columns.lag {
                    self.lag.add(done.began.saturating_sub(done.scheduled) as f64 / 1e3);
                }
            }
        }
    }

    fn write(&self, file: &mut impl Write, plan: &LogPlan) -> std::io::Result<()> {
        write!(file, "{} {} ", self.start_us / 1_000_000, self.count)?;
        self.latency.write(file)?;
        write!(file, " ")?;
        self.lag.write(file)?;
        write!(file, " {} {} {}", self.skipped, self.retried, self.retries)?;
        let detailed = |n: u64| if plan.failures_detailed { n } else { 0 };
        write!(file, " {} {}", detailed(self.serialization), detailed(self.deadlock))?;
        if plan.other_failures {
            write!(file, " {}", detailed(self.other))?;
        }
        writeln!(file)
    }
}

impl Extent {
    fn add(&mut self, value: f64) {
        self.min = if self.count == 0 { value } else { self.min.min(value) };
        self.max = if self.count == 0 { value } else { self.max.max(value) };
        self.count += 1;
        self.sum += value;
        self.sum_of_squares += value * value;
    }

    fn write(&self, file: &mut impl Write) -> std::io::Result<()> {
        let Extent { sum, sum_of_squares, min, max, .. } = self;
        write!(file, "{sum:.0} {sum_of_squares:.0} {min:.0} {max:.0}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tally::CycleEnd;

    const MS: u64 = 1_000_000;

    fn plan(prefix: String) -> LogPlan {
        LogPlan {
            prefix,
            sampling_rate: 0.0,
            aggregate_s: None,
            last_stretch: false,
            other_failures: false,
            failures_detailed: true,
            epoch_us: 1_000_000_000,
        }
    }

    /// The log of a lane for transactions that ended so at these milliseconds.
    fn written(aggregate_s: Option<u64>, ended_ms: u64, done: &[(u64, Ending, u32)]) -> String {
        written_with(|plan| plan.aggregate_s = aggregate_s, ended_ms, done)
    }

    /// The same, with more of the plan changed.
    fn written_with(
        change: impl FnOnce(&mut LogPlan),
        ended_ms: u64,
        done: &[(u64, Ending, u32)],
    ) -> String {
        let directory = tempfile::tempdir().unwrap();
        let prefix = directory.path().join("log").display().to_string();
        let columns = Columns { lag: true, retries: true };
        let mut plan = plan(prefix.clone());
        change(&mut plan);
        let file = Arc::new(create(&plan, 3).unwrap());
        let mut log = LaneLog::new(file, plan, columns, Xoroshiro128::from_seed(1), 0);
        for (number, (at_ms, ending, retries)) in done.iter().enumerate() {
            let done = Finished {
                workload: 0,
                backend: 0,
                script: 0,
                ending: *ending,
                scheduled: (at_ms - 5) * MS,
                began: (at_ms - 3) * MS,
                ended: at_ms * MS,
                retries: *retries,
                late: false,
                missed: false,
                cycle: CycleEnd::None,
            };
            log.write(Who { client: 7, number: number as u64, script: 1 }, &done);
        }
        log.finish(ended_ms * MS).unwrap();
        std::fs::read_to_string(format!("{prefix}.{}.3", std::process::id())).unwrap()
    }

    #[test]
    fn one_line_for_each_transaction() {
        let done = [(10, Ending::Good, 2), (20, Ending::Skipped, 0), (1_500, Ending::Deadlock, 1)];
        let expected = "7 0 5000 1 1000 10000 2000 2\n7 1 skipped 1 1000 20000 2000 0\n\
                        7 2 deadlock 1 1001 500000 2000 1\n";
        assert_eq!(written(None, 2_000, &done), expected);
    }

    #[test]
    fn one_line_for_each_stretch_that_is_over() {
        let done = [(10, Ending::Good, 2), (20, Ending::Good, 0), (2_500, Ending::Other, 0)];
        let first = "1000 2 10000 50000000 5000 5000 4000 8000000 2000 2000 0 1 2 0 0\n";
        let second = "1001 0 0 0 0 0 0 0 0 0 0 0 0 0 0\n";
        let expected = format!("{first}{second}");
        assert_eq!(written(Some(1), 2_900, &done), expected, "the last second is not over");
        let all = |plan: &mut LogPlan| (plan.aggregate_s, plan.last_stretch) = (Some(1), true);
        let last = "1002 0 0 0 0 0 0 0 0 0 0 0 0 0 0\n";
        assert_eq!(written_with(all, 2_900, &done).replace(first, ""), format!("{second}{last}"));
        let text = written(Some(1), 3_100, &done);
        assert_eq!(text.lines().count(), 3, "its end is seen although nothing followed: {text}");
    }

    /// Errors that are neither serialization failures nor deadlocks, as pgbench 19 logs them.
    #[test]
    fn other_failures_have_a_word_and_a_column() {
        let done = [(10, Ending::Other, 0), (20, Ending::Serialization, 0), (30, Ending::Other, 0)];
        let check = |other_failures, failures_detailed, each: &str, sum: &str| {
            let change = |aggregate_s| {
                move |plan: &mut LogPlan| {
                    (plan.aggregate_s, plan.other_failures) = (aggregate_s, other_failures);
                    plan.failures_detailed = failures_detailed;
                }
            };
            let words: Vec<String> = written_with(change(None), 2_000, &done)
                .lines()
                .filter_map(|line| line.split(' ').nth(2).map(str::to_owned))
                .collect();
            assert_eq!(words.join(" "), each, "{other_failures} {failures_detailed}");
            let line = written_with(change(Some(1)), 1_100, &done);
            assert_eq!(line, format!("1000 0 0 0 0 0 0 0 0 0 0 0 0 {sum}\n"));
        };
        check(true, true, "other serialization other", "1 0 2");
        check(true, false, "failed failed failed", "0 0 0");
        check(false, false, "failed failed failed", "0 0");
    }
}
