//! Reads a record, finished or not.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use rustix::fs::FileType;

use serde::Deserialize;
use sha2::{Digest as _, Sha256};
use spec::StudyFolder;

use crate::allowance::Allowance;
use crate::error::Error;
use crate::finished::{self, FinishedTrial};
use crate::folder::read_below;
use crate::inside::Inside;
use crate::kept_exploration::KeptExploration;
use crate::layout::{HEADER, STUDY, TRIALS, is_unfinished, trial_directory};
use crate::{FORMAT, LoadInterval, PairingAttempt, RecordHeader, Sample, TimelineMark, Trial};

/// A record, opened: its first page, its study and every attempt at its trials are in memory; what
/// lies beside an attempt is read when it is asked for.
#[derive(Clone, Debug)]
pub struct RecordReader {
    directory: PathBuf,
    header: RecordHeader,
    folder: StudyFolder,
    trials: Vec<Trial>,
    pairs: Vec<PairingAttempt>,
}

impl RecordReader {
    /// Opens a record.
    pub fn open(directory: &Path) -> Result<RecordReader, Error> {
        let inside = Inside::open(directory)?;
        let header = read_header(&inside)?;
        let folder = read_below(&inside.directory(STUDY)?, &header.study)?;
        let below = inside.directory(TRIALS)?;
        let mut allowance = Allowance::of_record();
        let mut trials = Vec::new();
        for entry in below.entries()? {
            if entry.kind == FileType::Directory && !is_unfinished(Path::new(&entry.name)) {
                let trial = finished::read_trial(&below.directory(&entry.name)?, &mut allowance)?;
                let expected = trial_directory(&trial);
                if entry.name != *expected {
                    let why = format!("it is the trial of another directory, {expected}");
                    let path = below.path(entry.name);
                    return Err(Error::Damaged { path, line: 0, why });
                }
                trials.push(trial);
            }
        }
        trials.sort_by_key(|trial| (trial.number, trial.attempt));
        let pairs = PairingAttempt::read_all(&inside, &mut allowance)?;
        Ok(RecordReader { directory: directory.to_owned(), header, folder, trials, pairs })
    }

    /// SHA-256 of what verdicts rest on (header, study, trials, pairs), as hexadecimal digits.
    ///
    /// # Errors
    /// Content that has no form in JSON.
    pub fn digest(&self) -> Result<String, Error> {
        let files = &self.folder.files;
        let text = serde_json::to_vec(&(&self.header, files, &self.trials, &self.pairs));
        let text = text.map_err(|error| Error::Damaged {
            path: self.directory.clone(),
            line: 0,
            why: error.to_string(),
        })?;
        Ok(Sha256::digest(text).iter().map(|byte| format!("{byte:02x}")).collect())
    }

    /// The directory of the record.
    pub fn directory(&self) -> &Path {
        &self.directory
    }

    /// The first page.
    pub fn header(&self) -> &RecordHeader {
        &self.header
    }

    /// The study's folder as it was run.
    pub fn folder(&self) -> &StudyFolder {
        &self.folder
    }

    /// Every attempt at its trials, ordered by trial and attempt.
    pub fn trials(&self) -> &[Trial] {
        &self.trials
    }

    /// Every attempt at what was measured in pairs, ordered by pairing and attempt.
    pub fn pairs(&self) -> &[PairingAttempt] {
        &self.pairs
    }

    /// The states that an exploration has kept of a trial's disk; none where it has kept none.
    ///
    /// # Errors
    /// If their directory leads out of the record.
    pub fn exploration(&self, trial: &Trial) -> Result<Option<KeptExploration>, Error> {
        KeptExploration::open(&self.place(trial)?)
    }

    /// Reads what the clients of a trial did, second by second. `keep` takes each interval, and says how
    /// many bytes it keeps of it: a trial of hours fits into memory only when its readers keep little.
    pub fn intervals(
        &self,
        trial: &Trial,
        keep: impl FnMut(LoadInterval) -> usize,
    ) -> Result<(), Error> {
        finished::read_intervals(&self.place(trial)?, &mut Allowance::of_trial(), keep)
    }

    /// Reads the samples of a trial. `keep` is as in [`RecordReader::intervals`].
    pub fn samples(&self, trial: &Trial, keep: impl FnMut(Sample) -> usize) -> Result<(), Error> {
        finished::read_samples(&self.place(trial)?, &mut Allowance::of_trial(), keep)
    }

    /// Reads the marks of a trial. `keep` is as in [`RecordReader::intervals`].
    pub fn marks(
        &self,
        trial: &Trial,
        keep: impl FnMut(TimelineMark) -> usize,
    ) -> Result<(), Error> {
        finished::read_marks(&self.place(trial)?, &mut Allowance::of_trial(), keep)
    }

    /// The last lines of the servers' logs, node and text; there are some where something broke. `keep`
    /// is as in [`RecordReader::intervals`].
    pub fn logs(&self, trial: &Trial, keep: impl FnMut(&str, &str) -> usize) -> Result<(), Error> {
        finished::read_logs(&self.place(trial)?, &mut Allowance::of_trial(), keep)
    }

    /// A trial with everything that lies beside it, where that fits into memory.
    pub fn whole(&self, trial: &Trial) -> Result<FinishedTrial, Error> {
        let (mut intervals, mut samples, mut marks) = (Vec::new(), Vec::new(), Vec::new());
        let mut logs = BTreeMap::new();
        self.intervals(trial, |interval| kept(&mut intervals, interval, 0))?;
        self.samples(trial, |sample| {
            let texts = sample.node.len() + sample.metric.len() + sample.label.len();
            kept(&mut samples, sample, texts)
        })?;
        self.marks(trial, |mark| {
            let texts = mark.node.len() + mark.text.len();
            kept(&mut marks, mark, texts)
        })?;
        self.logs(trial, |node, text| {
            logs.insert(node.to_owned(), text.to_owned());
            node.len() + text.len()
        })?;
        Ok(FinishedTrial { trial: trial.clone(), intervals, samples, marks, logs })
    }

    fn place(&self, trial: &Trial) -> Result<Inside, Error> {
        Inside::open(&self.directory)?.directory(TRIALS)?.directory(trial_directory(trial))
    }
}

/// Adds to a list; the bytes that are kept, with room for the list to grow.
fn kept<T>(list: &mut Vec<T>, one: T, beside: usize) -> usize {
    list.push(one);
    2 * size_of::<T>() + beside
}

/// True if a folder looks like a record. Its contents are checked when it is opened.
pub fn is_record(directory: &Path) -> bool {
    directory.join(HEADER).symlink_metadata().is_ok()
}

/// The number of trials of which an attempt has ended. Nothing of them is read.
///
/// # Errors
/// If the directory is no record, or cannot be listed.
pub fn ended_trials(directory: &Path) -> Result<usize, Error> {
    let below = Inside::open(directory)?.directory(TRIALS)?;
    let entries = below.entries()?.into_iter();
    let ended = entries.filter(|entry| {
        entry.kind == FileType::Directory && !is_unfinished(Path::new(&entry.name))
    });
    let number = |name: &str| name.split('-').next().map(str::to_owned);
    let numbers: BTreeSet<String> =
        ended.filter_map(|entry| number(entry.name.to_str()?)).collect();
    Ok(numbers.len())
}

/// The two fields that every format has, so that another format is recognised as one.
#[derive(Deserialize)]
struct Stamp {
    format: u32,
    #[serde(default)]
    pgrig: String,
}

impl RecordHeader {
    /// Reads the first page of a record alone.
    ///
    /// # Errors
    /// If the directory is no record, is of another format, or its first page is damaged.
    pub fn read(directory: &Path) -> Result<RecordHeader, Error> {
        read_header(&Inside::open(directory)?)
    }
}

fn read_header(directory: &Inside) -> Result<RecordHeader, Error> {
    if !directory.has(HEADER) {
        return Err(Error::NotARecord { path: directory.own_path() });
    }
    let path = directory.path(HEADER);
    let text = directory.text(HEADER, finished::JSON_BYTES_MAX)?;
    let damaged = |error: serde_json::Error| Error::Damaged {
        path: path.clone(),
        line: error.line(),
        why: error.to_string(),
    };
    let stamp: Stamp = serde_json::from_str(&text).map_err(damaged)?;
    if stamp.format != FORMAT {
        return Err(Error::Format { path, found: stamp.format, writer: stamp.pgrig });
    }
    serde_json::from_str(&text).map_err(damaged)
}
