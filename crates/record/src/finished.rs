//! A finished trial with all that was measured in it, and its directory.

use std::collections::BTreeMap;
use std::io::{self, BufRead, Write};
use std::path::{Path, PathBuf};

use serde::de::DeserializeOwned;

use crate::allowance::Allowance;
use crate::counts::COUNT_MAX;
use crate::error::{Error, io as io_error};
use crate::inside::Inside;
use crate::{LoadInterval, PublishedWay, Sample, TimelineMark, Trial, files, weight};

/// A trial and everything that lies beside it.
#[derive(Clone, Debug)]
pub struct FinishedTrial {
    /// The trial.
    pub trial: Trial,
    /// Counts of the clients, one for each second and workload.
    pub intervals: Vec<LoadInterval>,
    /// Readings of the probes.
    pub samples: Vec<Sample>,
    /// Events.
    pub marks: Vec<TimelineMark>,
    /// The last lines of server logs, node → text: for trials in which something broke.
    pub logs: BTreeMap<String, String>,
}

const TRIAL: &str = "trial.json";
const INTERVALS: &str = "intervals.jsonl";
const SAMPLES: &str = "samples.csv";
const MARKS: &str = "marks.jsonl";
const TOO_LARGE: &str = "a count is larger than any load can make it";
const LOG_SUFFIX: &str = ".log";

/// Limits far above what runs write: record.json of a plan of 10,000 trials has 2 MiB, trial.json of a
/// hundred statements 500 KiB. In memory they may take 25 and 45 times as much while they are read.
pub(crate) const JSON_BYTES_MAX: u64 = 6 << 20;
const TRIAL_BYTES_MAX: u64 = 2 << 20;

/// A day with a sample of a hundred things a second has half of it.
const LINES_BYTES_MAX: u64 = 1 << 30;
const LOG_BYTES_MAX: u64 = 8 << 20;

/// Writes all files of a trial into an empty directory.
pub(crate) fn write(finished: &FinishedTrial, directory: &Path) -> Result<(), Error> {
    let trial = finite(&finished.trial);
    files::write(&directory.join(TRIAL), |out| files::json(out, &trial))?;
    files::write(&directory.join(INTERVALS), |out| lines(out, &finished.intervals))?;
    files::write(&directory.join(SAMPLES), |out| samples(out, &finished.samples))?;
    files::write(&directory.join(MARKS), |out| lines(out, &finished.marks))?;
    for (node, text) in &finished.logs {
        let name = format!("{}{LOG_SUFFIX}", node.replace('/', "_"));
        files::write(&directory.join(name), |out| out.write_all(text.as_bytes()))?;
    }
    files::sync_directory(directory)
}

/// The trial without undefined values: a quotient by zero is NaN, for which JSON has no word.
fn finite(trial: &Trial) -> Trial {
    let mut trial = trial.clone();
    for scopes in trial.metrics.values_mut() {
        scopes.retain(|_, value| value.is_finite());
    }
    trial.metrics.retain(|_, scopes| !scopes.is_empty());
    let seconds = trial.workloads.iter_mut().map(|workload| &mut workload.published_way.seconds);
    let numbers = seconds.chain([&mut trial.generator.busy_share_max]);
    numbers.filter(|number| !number.is_finite()).for_each(|number| *number = 0.0);
    trial
}

/// Reads the trial alone.
pub(crate) fn read_trial(directory: &Inside, allowance: &mut Allowance) -> Result<Trial, Error> {
    let path = directory.path(TRIAL);
    let trial: Trial = allowance.unpacking(&path, || {
        let text = directory.text(TRIAL, TRIAL_BYTES_MAX)?;
        serde_json::from_str(&text).map_err(|error| damaged(&path, error.line(), &error))
    })?;
    allowance.keep(weight::of_trial(&trial), &path)?;
    let is_sound = trial.workloads.iter().all(|workload| {
        let PublishedWay { transactions, .. } = workload.published_way;
        let counts = [workload.unknown, workload.never_started, transactions];
        let are_sound = counts.into_iter().all(|count| count <= COUNT_MAX);
        are_sound && workload.counts.are_sound() && workload.counts_total.are_sound()
    });
    match is_sound {
        true => Ok(trial),
        false => Err(damaged(&path, 0, &TOO_LARGE)),
    }
}

/// Reads a value from a file of its own.
pub(crate) fn read_json<T: DeserializeOwned>(directory: &Inside, name: &str) -> Result<T, Error> {
    let text = directory.text(name, JSON_BYTES_MAX)?;
    serde_json::from_str(&text)
        .map_err(|error| damaged(&directory.path(name), error.line(), &error))
}

/// Reads what the clients did. `keep` takes each interval, and says how many bytes it keeps of it.
pub(crate) fn read_intervals(
    directory: &Inside,
    allowance: &mut Allowance,
    mut keep: impl FnMut(LoadInterval) -> usize,
) -> Result<(), Error> {
    let path = directory.path(INTERVALS);
    let mut lines = Lines::open(directory, INTERVALS)?;
    while let Some(interval) = allowance.unpacking(&path, || lines.next::<LoadInterval>())? {
        if !interval.counts.are_sound() {
            return Err(damaged(&path, lines.row, &TOO_LARGE));
        }
        allowance.keep(keep(interval), &path)?;
    }
    Ok(())
}

/// Reads what happened. `keep` takes each mark, and says how many bytes it keeps of it.
pub(crate) fn read_marks(
    directory: &Inside,
    allowance: &mut Allowance,
    mut keep: impl FnMut(TimelineMark) -> usize,
) -> Result<(), Error> {
    let path = directory.path(MARKS);
    let mut lines = Lines::open(directory, MARKS)?;
    while let Some(mark) = lines.next()? {
        allowance.keep(keep(mark), &path)?;
    }
    Ok(())
}

/// Reads what the probes read. `keep` takes each sample, and says how many bytes it keeps of it.
pub(crate) fn read_samples(
    directory: &Inside,
    allowance: &mut Allowance,
    mut keep: impl FnMut(Sample) -> usize,
) -> Result<(), Error> {
    let path = directory.path(SAMPLES);
    let source = directory.file(SAMPLES, LINES_BYTES_MAX)?;
    let mut reader = csv::Reader::from_reader(source.lines());
    for (row, sample) in reader.deserialize().enumerate() {
        let sample = sample.map_err(|error| damaged(&path, row + 2, &error))?;
        allowance.keep(keep(sample), &path)?;
    }
    Ok(())
}

/// Reads the tails of server logs. `keep` takes each with the node's name, and says how many bytes it
/// keeps of it.
pub(crate) fn read_logs(
    directory: &Inside,
    allowance: &mut Allowance,
    mut keep: impl FnMut(&str, &str) -> usize,
) -> Result<(), Error> {
    for entry in directory.entries()? {
        let name = entry.name.to_string_lossy();
        if let Some(node) = name.strip_suffix(LOG_SUFFIX) {
            let bytes = directory.bytes(&entry.name, LOG_BYTES_MAX)?;
            let kept = keep(node, &String::from_utf8_lossy(&bytes));
            allowance.keep(kept, &directory.path(&entry.name))?;
        }
    }
    Ok(())
}

/// One value a line, so that a person can grep and a reader can stop anywhere.
pub(crate) fn lines(out: &mut impl Write, values: &[impl serde::Serialize]) -> io::Result<()> {
    for value in values {
        out.write_all(terms::escaped(&serde_json::to_string(value)?).as_bytes())?;
        out.write_all(b"\n")?;
    }
    Ok(())
}

/// A file of lines, each of which is a value.
pub(crate) struct Lines {
    path: PathBuf,
    source: Box<dyn BufRead>,
    line: String,
    /// The line that was read last, from 1.
    row: usize,
}

impl Lines {
    pub(crate) fn open(directory: &Inside, name: &str) -> Result<Lines, Error> {
        let source = directory.file(name, LINES_BYTES_MAX)?;
        let path = source.path.clone();
        Ok(Lines { path, source: Box::new(source.lines()), line: String::new(), row: 0 })
    }

    /// The value of the next line.
    pub(crate) fn next<T: DeserializeOwned>(&mut self) -> Result<Option<T>, Error> {
        self.line.clear();
        self.row += 1;
        let read = self.source.read_line(&mut self.line);
        if read.map_err(io_error("reading", &self.path))? == 0 {
            return Ok(None);
        }
        let value = serde_json::from_str(&self.line);
        value.map(Some).map_err(|error| damaged(&self.path, self.row, &error))
    }
}

fn samples(out: &mut impl Write, samples: &[Sample]) -> io::Result<()> {
    let mut writer = csv::Writer::from_writer(out);
    if samples.is_empty() {
        writer.write_record(["at", "node", "metric", "label", "value"]).map_err(from_csv)?;
    }
    for sample in samples {
        writer.serialize(sample).map_err(from_csv)?;
    }
    writer.flush()
}

fn from_csv(error: csv::Error) -> io::Error {
    match error.into_kind() {
        csv::ErrorKind::Io(error) => error,
        other => io::Error::other(format!("{other:?}")),
    }
}

fn damaged(path: &Path, line: usize, why: &impl ToString) -> Error {
    Error::Damaged { path: path.to_owned(), line, why: why.to_string() }
}
