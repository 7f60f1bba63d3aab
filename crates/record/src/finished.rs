//! A finished trial with all that was measured in it, and its directory.

use std::collections::BTreeMap;
use std::io::{self, BufRead, Write};
use std::path::Path;

use serde::de::DeserializeOwned;

use crate::error::{Error, io as io_error};
use crate::inside::Inside;
use crate::{Interval, Mark, Sample, Trial, files};

/// A trial and everything that lies beside it.
#[derive(Clone, Debug)]
pub struct Finished {
    /// The trial.
    pub trial: Trial,
    /// What the clients did, one for each second and workload.
    pub intervals: Vec<Interval>,
    /// What the probes read.
    pub samples: Vec<Sample>,
    /// What happened.
    pub marks: Vec<Mark>,
    /// The last lines of server logs, node → text: for trials in which something broke.
    pub logs: BTreeMap<String, String>,
}

const TRIAL: &str = "trial.json";
const INTERVALS: &str = "intervals.jsonl";
const SAMPLES: &str = "samples.csv";
const MARKS: &str = "marks.jsonl";
const LOG_SUFFIX: &str = ".log";

/// Limits far above what runs write: record.json of a plan of 100,000 trials has 20 MiB.
pub(crate) const JSON_BYTES_MAX: u64 = 32 << 20;
const LINES_BYTES_MAX: u64 = 128 << 20;
const LOG_BYTES_MAX: u64 = 16 << 20;

/// Writes all files of a trial into an empty directory.
pub(crate) fn write(finished: &Finished, directory: &Path) -> Result<(), Error> {
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

/// The trial without values that are none: a quotient by zero is NaN, for which JSON has no word.
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
pub(crate) fn read_trial(directory: &Inside) -> Result<Trial, Error> {
    read_json(directory, TRIAL)
}

/// Reads a value from a file of its own.
pub(crate) fn read_json<T: DeserializeOwned>(directory: &Inside, name: &str) -> Result<T, Error> {
    let text = directory.text(name, JSON_BYTES_MAX)?;
    serde_json::from_str(&text)
        .map_err(|error| damaged(&directory.path(name), error.line(), &error))
}

/// Reads what the clients did.
pub(crate) fn read_intervals(directory: &Inside) -> Result<Vec<Interval>, Error> {
    read_lines(directory, INTERVALS)
}

/// Reads what happened.
pub(crate) fn read_marks(directory: &Inside) -> Result<Vec<Mark>, Error> {
    read_lines(directory, MARKS)
}

/// Reads what the probes read.
pub(crate) fn read_samples(directory: &Inside) -> Result<Vec<Sample>, Error> {
    let source = directory.file(SAMPLES, LINES_BYTES_MAX)?;
    let mut reader = csv::Reader::from_reader(source.lines());
    let mut samples = Vec::new();
    for (row, sample) in reader.deserialize().enumerate() {
        samples.push(sample.map_err(|error| damaged(&directory.path(SAMPLES), row + 2, &error))?);
    }
    Ok(samples)
}

/// Reads the tails of server logs, node → text.
pub(crate) fn read_logs(directory: &Inside) -> Result<BTreeMap<String, String>, Error> {
    let mut logs = BTreeMap::new();
    for entry in directory.entries()? {
        let name = entry.name.to_string_lossy();
        if let Some(node) = name.strip_suffix(LOG_SUFFIX) {
            let bytes = directory.bytes(&entry.name, LOG_BYTES_MAX)?;
            logs.insert(node.to_owned(), String::from_utf8_lossy(&bytes).into_owned());
        }
    }
    Ok(logs)
}

/// One value a line, so that a person can grep and a reader can stop anywhere.
pub(crate) fn lines(out: &mut impl Write, values: &[impl serde::Serialize]) -> io::Result<()> {
    for value in values {
        serde_json::to_writer(&mut *out, value)?;
        out.write_all(b"\n")?;
    }
    Ok(())
}

pub(crate) fn read_lines<T: DeserializeOwned>(
    directory: &Inside,
    name: &str,
) -> Result<Vec<T>, Error> {
    let source = directory.file(name, LINES_BYTES_MAX)?;
    let path = source.path.clone();
    let mut values = Vec::new();
    for (row, line) in source.lines().lines().enumerate() {
        let line = line.map_err(io_error("reading", &path))?;
        let value = serde_json::from_str(&line);
        values.push(value.map_err(|error| damaged(&path, row + 1, &error))?);
    }
    Ok(values)
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
