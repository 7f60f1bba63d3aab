//! A node's data directory: copied while the server stands, and put back.

use std::path::PathBuf;

use crate::copy::copy_tree;
use crate::error::Error;
use crate::files::{make_directory, remove_tree};
use crate::node::Node;

/// A copy of a stopped node's data.
#[derive(Debug)]
pub(crate) struct Snapshot {
    directory: PathBuf,
    bytes: u64,
}

impl Snapshot {
    /// How many bytes its files hold.
    pub(crate) fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Removes it before the lab ends.
    ///
    /// # Errors
    /// The file system's.
    pub(crate) fn remove(self) -> Result<(), Error> {
        remove_tree(&self.directory)
    }
}

impl Node {
    /// Copies the data of the stopped node.
    ///
    /// # Errors
    /// [`Error::State`] if it runs; the file system's.
    pub(crate) fn snapshot(&self) -> Result<Snapshot, Error> {
        self.program.expect_stopped("copying")?;
        let directory = self.program.shared.new_snapshot_directory();
        let bytes = copy_tree(&self.data_here()?, &directory, self.program.shared.user)?;
        Ok(Snapshot { directory, bytes })
    }

    /// Makes its data directory from a snapshot of this lab, replacing one that is there. What it
    /// wrote is on the disk only after [`crate::Lab::sync`].
    ///
    /// # Errors
    /// [`Error::State`] if it runs; the file system's.
    pub(crate) fn init_from_snapshot(&mut self, snapshot: &Snapshot) -> Result<(), Error> {
        self.program.expect_stopped("restoring")?;
        self.make_room()?;
        copy_tree(&snapshot.directory, &self.data_here()?, self.program.shared.user).map(drop)
    }

    /// Makes its data directory from that of another node of this lab, which is stopped.
    ///
    /// # Errors
    /// [`Error::State`] if either runs; the file system's.
    pub(crate) fn clone_data(&mut self, from: &Node) -> Result<(), Error> {
        self.program.expect_stopped("cloning into")?;
        from.program.expect_stopped("cloning")?;
        self.make_room()?;
        copy_tree(&from.data_here()?, &self.data_here()?, self.program.shared.user).map(drop)
    }

    /// Makes sure that the node's directory is there, its data directory is not, and its archive
    /// holds nothing of other data.
    pub(super) fn make_room(&mut self) -> Result<(), Error> {
        self.program.make_directory()?;
        let log = self.program.file("log");
        if !log.is_dir() {
            make_directory(&log, self.program.owner)?;
        }
        self.empty_archive()?;
        self.remove_data()
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
