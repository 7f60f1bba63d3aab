//! Writes a record while the study runs.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use spec::StudyFolder;

use crate::error::{Error, io as io_error};
use crate::finished::{self, FinishedTrial};
use crate::folder::write_folder;
use crate::layout::{
    self, BEGUN, LEDGER, STUDY, TRIALS, UNFINISHED, is_unfinished, trial_directory,
};
use crate::lock::Lock;
use crate::reader::RecordReader;
use crate::{
    AttemptEnding, InterruptedState, PairingAttempt, RecordHeader, RunState, Trial, files,
};

/// A record being written.
///
/// Every trial is written whole, under another name, and renamed when it is on the disk. However a
/// run ends, by Ctrl-C, a full disk or a power cut, its record holds finished trials, names the one
/// that never ended, and can be resumed.
#[derive(Debug)]
pub struct RecordWriter {
    directory: PathBuf,
    header: RecordHeader,
    _lock: Lock,
}

impl RecordWriter {
    /// Begins a record in a new directory `DATE-STUDY-N` below `runs`, N being the first number
    /// that is free.
    pub fn create_below(
        runs: &Path,
        header: RecordHeader,
        folder: &StudyFolder,
    ) -> Result<RecordWriter, Error> {
        // A comparison is of a study's variants, and is no run of that study.
        let kind = if header.comparison.is_some() { "compare" } else { header.study.as_str() };
        let directory = files::make_numbered(runs, &header.started_at, kind)?;
        RecordWriter::make(directory, header, folder)
    }

    /// Begins a record in a directory of one's own choice, which must be new or empty.
    pub fn create(
        directory: &Path,
        header: RecordHeader,
        folder: &StudyFolder,
    ) -> Result<RecordWriter, Error> {
        RecordWriter::make(files::make_empty(directory)?, header, folder)
    }

    /// Goes on with a record. What it holds already is read by [`RecordReader`]. An attempt that never ended is
    /// one of them from now on.
    pub fn resume(directory: &Path) -> Result<RecordWriter, Error> {
        // A folder that is no record gets no lock either.
        RecordReader::open(directory)?;
        let lock = Lock::take(directory)?;
        let reader = RecordReader::open(directory)?;
        let trials = directory.join(TRIALS);
        for entry in fs::read_dir(&trials).map_err(io_error("reading", &trials))? {
            let path = entry.map_err(io_error("reading", &trials))?.path();
            match layout::begun(&path) {
                Some(name) => adopt(&path, &trials.join(name))?,
                None if is_unfinished(&path) => remove(&path)?,
                None => {}
            }
        }
        let mut writer = RecordWriter {
            directory: directory.to_owned(),
            header: reader.header().clone(),
            _lock: lock,
        };
        writer.header.ended_at = None;
        writer.header.state = RunState::Running;
        writer.save_header()?;
        Ok(writer)
    }

    /// The directory of the record.
    pub fn directory(&self) -> &Path {
        &self.directory
    }

    /// The first page.
    pub fn header(&self) -> &RecordHeader {
        &self.header
    }

    /// Changes the first page, and writes it in one step.
    ///
    /// # Errors
    /// If it cannot be written; the one before then still stands.
    pub fn change_header(&mut self, change: impl FnOnce(&mut RecordHeader)) -> Result<(), Error> {
        let before = self.header.clone();
        change(&mut self.header);
        let saved = self.save_header();
        if saved.is_err() {
            self.header = before;
        }
        saved
    }

    /// Adds a finished attempt. What the record holds already is never replaced.
    ///
    /// # Errors
    /// If it cannot be written, or that attempt is there already; the record then holds what it
    /// held before.
    pub fn add(&self, finished: &FinishedTrial) -> Result<(), Error> {
        let trials = self.directory.join(TRIALS);
        let place = trials.join(trial_directory(&finished.trial));
        let unfinished = trials.join(format!("{}{UNFINISHED}", trial_directory(&finished.trial)));
        if place.exists() {
            let why = io::Error::new(io::ErrorKind::AlreadyExists, "an attempt is never replaced");
            return Err(io_error("writing", &place)(why));
        }
        remove(&unfinished)?;
        fs::create_dir(&unfinished).map_err(io_error("creating", &unfinished))?;
        let written = finished::write(finished, &unfinished)
            .and_then(|()| files::rename(&unfinished, &place));
        if written.is_err() {
            // Gives back the blocks; the first error is the one to report.
            let _ = fs::remove_dir_all(&unfinished);
        }
        written
    }

    /// Adds what was measured in pairs.
    pub fn add_pairs(&self, paired: &PairingAttempt) -> Result<(), Error> {
        paired.write(&self.directory)
    }

    /// Notes that the load of an attempt begins: until the whole of it is added, the record says that it
    /// never ended. Returns the empty directory of its ledger, [`RecordWriter::ledger_of`].
    pub fn begin(&self, trial: &Trial) -> Result<PathBuf, Error> {
        let place = self.begun(trial);
        let mut unfinished = place.clone().into_os_string();
        unfinished.push(UNFINISHED);
        let unfinished = PathBuf::from(unfinished);
        remove(&place)?;
        remove(&unfinished)?;
        let ledger = unfinished.join(LEDGER);
        fs::create_dir_all(&ledger).map_err(io_error("creating", &ledger))?;
        let text = "pgrig ended in the middle of it, and its result is unknown";
        let ending = AttemptEnding::interrupted(InterruptedState::Unchecked, text);
        let (intervals, samples, marks, logs) = Default::default();
        let begun = FinishedTrial {
            trial: Trial { ending, ..trial.clone() },
            intervals,
            samples,
            marks,
            logs,
        };
        finished::write(&begun, &unfinished)?;
        files::rename(&unfinished, &place)?;
        self.ledger_of(trial)
    }

    /// The place of an attempt's ledger while it is under way.
    pub fn ledger_of(&self, trial: &Trial) -> Result<PathBuf, Error> {
        let ledger = self.begun(trial).join(LEDGER);
        std::path::absolute(&ledger).map_err(io_error("creating", &ledger))
    }

    /// An attempt that was added is whole. Its ledger goes beside its other files, or away.
    pub fn end(&self, trial: &Trial, keeps_ledger: bool) -> Result<(), Error> {
        let begun = self.begun(trial);
        if keeps_ledger {
            let place = self.directory.join(TRIALS).join(trial_directory(trial));
            keep_ledger(&begun, &place)?;
        }
        remove(&begun)
    }

    fn begun(&self, trial: &Trial) -> PathBuf {
        self.directory.join(TRIALS).join(format!("{}{BEGUN}", trial_directory(trial)))
    }

    /// Writes another file beside the record: a report, a table.
    ///
    /// # Errors
    /// If it cannot be written; the one before then still stands.
    pub fn attach(&self, name: &str, text: &str) -> Result<PathBuf, Error> {
        attach(&self.directory, name, text)
    }

    fn make(
        directory: PathBuf,
        header: RecordHeader,
        folder: &StudyFolder,
    ) -> Result<RecordWriter, Error> {
        if folder.is_private {
            // Reports and trials quote the study.
            files::close(&directory)?;
        }
        let lock = Lock::take(&directory)?;
        write_folder(folder, &directory.join(STUDY).join(&folder.name))?;
        let trials = directory.join(TRIALS);
        fs::create_dir(&trials).map_err(io_error("creating", &trials))?;
        let writer = RecordWriter { directory, header, _lock: lock };
        // Last, for it is what makes the directory a record.
        writer.save_header()?;
        Ok(writer)
    }

    fn save_header(&self) -> Result<(), Error> {
        let path = self.directory.join(crate::layout::HEADER);
        files::replace(&path, |out| files::json(out, &self.header))
    }
}

/// Makes the directory of a record: `out`, which must be new or empty, or one below `runs` that is named
/// by the day and `kind`.
///
/// # Errors
/// If the directory holds something, or cannot be made.
pub fn make_directory(
    runs: &Path,
    out: Option<&Path>,
    started_at: &str,
    kind: &str,
) -> Result<PathBuf, Error> {
    match out {
        Some(directory) => files::make_empty(directory),
        None => files::make_numbered(runs, started_at, kind),
    }
}

/// Writes a file into a record's directory in one step.
///
/// # Errors
/// If it cannot be written; the one before then still stands.
pub fn attach(directory: &Path, name: &str, text: &str) -> Result<PathBuf, Error> {
    let path = directory.join(name);
    files::replace(&path, |out| io::Write::write_all(out, text.as_bytes()))?;
    Ok(path)
}

/// Files an attempt that was begun and never ended, unless the whole of it was added before pgrig
/// ended.
fn adopt(begun: &Path, place: &Path) -> Result<(), Error> {
    if !place.exists() {
        return files::rename(begun, place);
    }
    keep_ledger(begun, place)?;
    remove(begun)
}

/// Moves the ledger of an attempt beside its other files, if there is any.
fn keep_ledger(begun: &Path, place: &Path) -> Result<(), Error> {
    let (from, to) = (begun.join(LEDGER), place.join(LEDGER));
    let has_entries = fs::read_dir(&from).is_ok_and(|mut entries| entries.next().is_some());
    match has_entries && !to.exists() {
        true => files::rename(&from, &to),
        false => Ok(()),
    }
}

/// Removes a directory, if it is there.
fn remove(place: &Path) -> Result<(), Error> {
    match fs::remove_dir_all(place) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => {
            Err(io_error("removing", place)(error))
        }
        _ => Ok(()),
    }
}
