//! A node's data directory: copied while the server stands, and put back.

use std::path::{Path, PathBuf};

use crate::answer::DataCopied;
use crate::copy::copy_tree;
use crate::error::Error;
use crate::files::{exchange, make_directory, remove_tree};
use crate::inner::node::Node;

/// A copy of a stopped node's data.
#[derive(Debug)]
pub(crate) struct Snapshot {
    directory: PathBuf,
    bytes: u64,
}

impl Snapshot {
    /// The answer to the one who asked for it.
    pub(crate) fn copied(&self) -> DataCopied {
        DataCopied { directory: self.directory.clone(), bytes: self.bytes }
    }

    pub(crate) fn remove(self) -> Result<(), Error> {
        remove_tree(&self.directory)
    }
}

impl Node {
    pub(crate) fn snapshot(&self) -> Result<Snapshot, Error> {
        self.program.expect_stopped("copying")?;
        self.gather_parts()?;
        let directory = self.program.shared.new_snapshot_directory();
        let bytes = copy_tree(&self.data_here()?, &directory, self.program.shared.user)?;
        Ok(Snapshot { directory, bytes })
    }

    /// The place where other processes of this host can read the data of the stopped node.
    pub(crate) fn stopped_data(&self) -> Result<PathBuf, Error> {
        self.program.expect_stopped("cloning")?;
        self.gather_parts()?;
        self.data_here()
    }

    /// Makes its data directory from the data files of `directory`, replacing one that is there.
    pub(crate) fn init_from_copy(&mut self, directory: &Path) -> Result<(), Error> {
        self.program.expect_stopped("restoring")?;
        self.make_room()?;
        copy_tree(directory, &self.data_here()?, self.program.shared.user).map(drop)
    }

    /// Exchanges its data directory with that of another node, which is stopped.
    pub(crate) fn exchange_data(&mut self, other: &Path) -> Result<(), Error> {
        let doing = "exchanging the data of";
        self.program.expect_stopped(doing)?;
        match self.disk {
            Some(_) => Err(self.program.state(doing, "has a disk of its own")),
            None => exchange(&self.data(), other, self.program.owner),
        }
    }

    /// Makes sure that the node's directory is there, its data directory is not, and its archive
    /// holds nothing of other data.
    pub(super) fn make_room(&mut self) -> Result<(), Error> {
        self.make_directories()?;
        self.empty_archive()?;
        self.remove_data()
    }

    /// Makes sure that the node's directory and that of its log are there.
    pub(super) fn make_directories(&self) -> Result<(), Error> {
        self.program.make_directory()?;
        let log = self.program.file("log");
        match log.is_dir() {
            true => Ok(()),
            false => make_directory(&log, self.program.owner),
        }
    }

    /// Removes its data directory.
    pub(super) fn remove_data(&mut self) -> Result<(), Error> {
        match self.disk {
            // Whatever an earlier cut did to its file system is gone with it.
            Some(_) => self.format_disk(),
            None => remove_tree(&self.data()),
        }
    }
}
