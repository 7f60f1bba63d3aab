//! Reads a record, finished or not.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use serde::Deserialize;
use spec::Folder;

use crate::error::{Error, io};
use crate::finished;
use crate::folder::read_folder;
use crate::writer::is_unfinished;
use crate::{FORMAT, FORMAT_OLDEST, Header, Interval, Mark, Paired, Sample, Trial};

/// A record, opened: its first page, its study and every attempt at its trials are in memory; what
/// lies beside an attempt is read when it is asked for.
#[derive(Clone, Debug)]
pub struct Reader {
    directory: PathBuf,
    header: Header,
    folder: Folder,
    trials: Vec<Trial>,
    pairs: Vec<Paired>,
}

pub(crate) const HEADER: &str = "record.json";
pub(crate) const STUDY: &str = "study";
pub(crate) const TRIALS: &str = "trials";

impl Reader {
    /// Opens a record.
    ///
    /// # Errors
    /// If the directory is no record, is of another format, or a file of it is damaged.
    pub fn open(directory: &Path) -> Result<Reader, Error> {
        let header = read_header(directory)?;
        let folder = read_folder(&directory.join(STUDY).join(&header.study))?;
        let mut trials = Vec::new();
        let below = directory.join(TRIALS);
        for entry in fs::read_dir(&below).map_err(io("reading", &below))? {
            let path = entry.map_err(io("reading", &below))?.path();
            if path.is_dir() && !is_unfinished(&path) {
                trials.push(finished::read_trial(&path)?);
            }
        }
        trials.sort_by_key(|trial| (trial.number, trial.attempt));
        let pairs = Paired::read_all(directory)?;
        Ok(Reader { directory: directory.to_owned(), header, folder, trials, pairs })
    }

    /// Where it is.
    #[must_use]
    pub fn directory(&self) -> &Path {
        &self.directory
    }

    /// Its first page.
    #[must_use]
    pub fn header(&self) -> &Header {
        &self.header
    }

    /// The study's folder as it was run.
    #[must_use]
    pub fn folder(&self) -> &Folder {
        &self.folder
    }

    /// Every attempt at its trials, ordered by trial and attempt.
    #[must_use]
    pub fn trials(&self) -> &[Trial] {
        &self.trials
    }

    /// Every attempt at what was measured in pairs, ordered by pairing and attempt.
    #[must_use]
    pub fn pairs(&self) -> &[Paired] {
        &self.pairs
    }

    /// What the clients of a trial did, second by second.
    ///
    /// # Errors
    /// If the file is missing or damaged.
    pub fn intervals(&self, trial: &Trial) -> Result<Vec<Interval>, Error> {
        finished::read_intervals(&self.place(trial))
    }

    /// What the probes read during a trial.
    ///
    /// # Errors
    /// If the file is missing or damaged.
    pub fn samples(&self, trial: &Trial) -> Result<Vec<Sample>, Error> {
        finished::read_samples(&self.place(trial))
    }

    /// What happened during a trial.
    ///
    /// # Errors
    /// If the file is missing or damaged.
    pub fn marks(&self, trial: &Trial) -> Result<Vec<Mark>, Error> {
        finished::read_marks(&self.place(trial))
    }

    /// The last lines of the servers' logs, node → text; empty where nothing broke.
    ///
    /// # Errors
    /// If a file cannot be read.
    pub fn logs(&self, trial: &Trial) -> Result<BTreeMap<String, String>, Error> {
        finished::read_logs(&self.place(trial))
    }

    fn place(&self, trial: &Trial) -> PathBuf {
        self.directory.join(TRIALS).join(trial_directory(trial))
    }
}

/// What an attempt's directory is called: `0001-VARIANT-SCENARIO`, and from the second attempt on
/// `0001-VARIANT-SCENARIO-attempt-2`.
pub(crate) fn trial_directory(trial: &Trial) -> String {
    let name = format!("{:04}-{}-{}", trial.number, trial.variant, trial.scenario);
    match trial.attempt {
        0 | 1 => name,
        attempt => format!("{name}-attempt-{attempt}"),
    }
}

/// The two fields that every format has, so that another format is recognised as one.
#[derive(Deserialize)]
struct Stamp {
    format: u32,
    #[serde(default)]
    pgrig: String,
}

fn read_header(directory: &Path) -> Result<Header, Error> {
    let path = directory.join(HEADER);
    if directory.is_dir() && !path.exists() {
        return Err(Error::NotARecord { path: directory.to_owned() });
    }
    let text = fs::read_to_string(&path).map_err(io("reading", &path))?;
    let damaged = |error: serde_json::Error| Error::Damaged {
        path: path.clone(),
        line: error.line(),
        why: error.to_string(),
    };
    let stamp: Stamp = serde_json::from_str(&text).map_err(damaged)?;
    if !(FORMAT_OLDEST..=FORMAT).contains(&stamp.format) {
        return Err(Error::Format { path, found: stamp.format, writer: stamp.pgrig });
    }
    serde_json::from_str(&text).map_err(damaged)
}
