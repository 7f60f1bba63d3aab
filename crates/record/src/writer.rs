//! Writes a record while the study runs.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use spec::Folder;

use crate::error::{Error, io as io_error};
use crate::finished::{self, Finished};
use crate::folder::write_folder;
use crate::layout::{STUDY, TRIALS, UNFINISHED, is_unfinished, trial_directory};
use crate::lock::Lock;
use crate::reader::Reader;
use crate::{Header, Paired, RunState, Trial, files};

/// A record being written.
///
/// Every trial is written whole, under another name, and renamed when it is on the disk. However a
/// run ends, by Ctrl-C, a full disk or a power cut, its record holds finished trials and nothing
/// else, and can be resumed.
#[derive(Debug)]
pub struct Writer {
    directory: PathBuf,
    header: Header,
    _lock: Lock,
}

impl Writer {
    /// Begins a record in a new directory `DATE-STUDY-N` below `runs`, N being the first number
    /// that is free.
    ///
    /// # Errors
    /// If the directory cannot be made or written to.
    pub fn create_below(runs: &Path, header: Header, folder: &Folder) -> Result<Writer, Error> {
        let directory = files::make_numbered(runs, &header.started_at, &header.study)?;
        Writer::begin(directory, header, folder)
    }

    /// Begins a record in a directory of one's own choice, which must be new or empty.
    ///
    /// # Errors
    /// If the directory holds something, or cannot be made or written to.
    pub fn create(directory: &Path, header: Header, folder: &Folder) -> Result<Writer, Error> {
        Writer::begin(files::make_empty(directory)?, header, folder)
    }

    /// Goes on with a record. What it holds already is read by [`Reader`].
    ///
    /// # Errors
    /// If it is no record of this format, or cannot be written to.
    pub fn resume(directory: &Path) -> Result<Writer, Error> {
        // A folder that is no record gets no lock either.
        Reader::open(directory)?;
        let lock = Lock::take(directory)?;
        let reader = Reader::open(directory)?;
        let trials = directory.join(TRIALS);
        for entry in fs::read_dir(&trials).map_err(io_error("reading", &trials))? {
            let path = entry.map_err(io_error("reading", &trials))?.path();
            if is_unfinished(&path) {
                fs::remove_dir_all(&path).map_err(io_error("removing", &path))?;
            }
        }
        let mut writer = Writer {
            directory: directory.to_owned(),
            header: reader.header().clone(),
            _lock: lock,
        };
        // From here on its new attempts are of this format. What earlier ones lack stays said.
        if let Some(lacks) = writer.header.lacks() {
            writer.header.notes.push(lacks.to_owned());
            writer.header.format = crate::FORMAT;
        }
        writer.header.ended_at = None;
        writer.header.state = RunState::Running;
        writer.save_header()?;
        Ok(writer)
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

    /// Changes the first page, and writes it in one step.
    ///
    /// # Errors
    /// If it cannot be written; the one before then still stands.
    pub fn change_header(&mut self, change: impl FnOnce(&mut Header)) -> Result<(), Error> {
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
    pub fn add(&self, finished: &Finished) -> Result<(), Error> {
        let trials = self.directory.join(TRIALS);
        let place = trials.join(trial_directory(&finished.trial));
        let unfinished = trials.join(format!("{}{UNFINISHED}", trial_directory(&finished.trial)));
        if place.exists() {
            let why = io::Error::new(io::ErrorKind::AlreadyExists, "an attempt is never replaced");
            return Err(io_error("writing", &place)(why));
        }
        if unfinished.exists() {
            fs::remove_dir_all(&unfinished).map_err(io_error("removing", &unfinished))?;
        }
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
    ///
    /// # Errors
    /// If it cannot be written.
    pub fn add_pairs(&self, paired: &Paired) -> Result<(), Error> {
        paired.write(&self.directory)
    }

    /// An empty directory for the ledger of the trial of this number, while it runs.
    ///
    /// # Errors
    /// If it cannot be made.
    pub fn ledger_place(&self, number: usize) -> Result<PathBuf, Error> {
        self.drop_ledger(number)?;
        let place = self.ledger_of(number);
        fs::create_dir(&place).map_err(io_error("creating", &place))?;
        std::path::absolute(&place).map_err(io_error("creating", &place))
    }

    /// Puts the ledger of a trial that was added beside its other files.
    ///
    /// # Errors
    /// If it cannot be moved.
    pub fn keep_ledger(&self, trial: &Trial) -> Result<(), Error> {
        let place = self.ledger_of(trial.number);
        let is_empty = fs::read_dir(&place).is_ok_and(|mut entries| entries.next().is_none());
        match is_empty {
            true => self.drop_ledger(trial.number),
            false => {
                let trials = self.directory.join(TRIALS);
                files::rename(&place, &trials.join(trial_directory(trial)).join(LEDGER))
            }
        }
    }

    /// Removes the ledger of a trial.
    ///
    /// # Errors
    /// If it cannot be removed.
    pub fn drop_ledger(&self, number: usize) -> Result<(), Error> {
        let place = self.ledger_of(number);
        match fs::remove_dir_all(&place) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                Err(io_error("removing", &place)(error))
            }
            _ => Ok(()),
        }
    }

    /// It is called like a trial that was never finished: a run that goes on removes it.
    fn ledger_of(&self, number: usize) -> PathBuf {
        self.directory.join(TRIALS).join(format!("{number:04}-{LEDGER}{UNFINISHED}"))
    }

    /// Writes another file beside the record: a report, a table.
    ///
    /// # Errors
    /// If it cannot be written; the one before then still stands.
    pub fn attach(&self, name: &str, text: &str) -> Result<PathBuf, Error> {
        attach(&self.directory, name, text)
    }

    fn begin(directory: PathBuf, header: Header, folder: &Folder) -> Result<Writer, Error> {
        if folder.is_private {
            // Reports and trials quote the study.
            files::close(&directory)?;
        }
        let lock = Lock::take(&directory)?;
        write_folder(folder, &directory.join(STUDY).join(&folder.name))?;
        let trials = directory.join(TRIALS);
        fs::create_dir(&trials).map_err(io_error("creating", &trials))?;
        let writer = Writer { directory, header, _lock: lock };
        // Last, for it is what makes the directory a record.
        writer.save_header()?;
        Ok(writer)
    }

    fn save_header(&self) -> Result<(), Error> {
        let path = self.directory.join(crate::layout::HEADER);
        files::replace(&path, |out| files::json(out, &self.header))
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

/// The directory of a ledger beside its trial's files.
const LEDGER: &str = "ledger";
