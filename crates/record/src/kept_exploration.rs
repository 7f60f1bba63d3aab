//! The files that an exploration of a disk's states has left in a trial's ledger. Somebody else may have
//! written them: each is reached through the record, and none is read beyond its limit.

use std::io::Read;
use std::path::PathBuf;

use crate::error::Error;
use crate::inside::Inside;
use crate::layout::{KEPT_STATES, LEDGER};
use crate::ledger::Ledger;

/// A kept exploration, opened.
#[derive(Debug)]
pub struct KeptExploration {
    ledger: Inside,
    states: Inside,
}

impl KeptExploration {
    /// Opens that of a trial; none where the trial has kept no states.
    pub(crate) fn open(trial: &Inside) -> Result<Option<KeptExploration>, Error> {
        if !trial.has(LEDGER) {
            return Ok(None);
        }
        let ledger = trial.directory(LEDGER)?;
        if !ledger.has(KEPT_STATES) {
            return Ok(None);
        }
        let states = ledger.directory(KEPT_STATES)?;
        Ok(Some(KeptExploration { ledger, states }))
    }

    /// The trial's ledger.
    ///
    /// # Errors
    /// As [`Ledger::read`].
    pub fn ledger(&self) -> Result<Ledger, Error> {
        Ledger::read_inside(&self.ledger, &|| false)
    }

    /// The directory of the ledger, for messages.
    pub fn path(&self) -> PathBuf {
        self.ledger.own_path()
    }

    /// The path of one of its files, for messages.
    pub fn path_of(&self, name: &str) -> PathBuf {
        self.states.path(name)
    }

    /// Reads one of its files as text.
    ///
    /// # Errors
    /// If it is no regular file in the record, has more bytes than that, or is no text.
    pub fn text(&self, name: &str, bytes_max: u64) -> Result<String, Error> {
        self.states.text(name, bytes_max)
    }

    /// Opens one of its files for reading, up to so many bytes.
    ///
    /// # Errors
    /// If it is no regular file in the record, or has more bytes than that.
    pub fn file(&self, name: &str, bytes_max: u64) -> Result<impl Read + use<>, Error> {
        self.states.file(name, bytes_max).map(|source| source.bytes())
    }
}
