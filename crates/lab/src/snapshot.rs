//! A copy of a stopped node's data.

use std::path::PathBuf;
use std::sync::Arc;

use crate::error::Error;
use crate::open_lab::OpenLab;
use crate::verb::Verb;

/// A copy of a stopped node's data. It stays until the lab ends, unless it is removed before.
#[derive(Debug)]
pub struct Snapshot {
    pub(crate) lab: Arc<OpenLab>,
    pub(crate) number: u32,
    /// Its directory on its host.
    pub(crate) directory: PathBuf,
    pub(crate) bytes: u64,
}

impl Snapshot {
    /// The bytes in its files.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Removes it before the lab ends.
    pub fn remove(self) -> Result<(), Error> {
        self.lab.ask(self.number, Verb::Drop)
    }
}
