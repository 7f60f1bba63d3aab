//! A node's data: copied, checked, restored, and on a disk whose power is cut.

use std::sync::Arc;

use fault::disk::{Cut, Disk};

use super::{Node, Place};
use crate::anywhere::copy::{self, Snapshot};
use crate::error::Error;
use crate::node::{Checksums, Format};
use crate::remote::NodeVerb;

impl Node {
    /// Copies the data of the stopped node.
    ///
    /// # Errors
    /// [`Error::State`] if it runs; the file system's.
    pub fn snapshot(&self) -> Result<Snapshot, Error> {
        Ok(Snapshot(match &self.0 {
            Place::Here(node) => copy::Place::Here(node.snapshot()?),
            Place::There(node) => {
                let (lab, object) = (Arc::clone(&node.lab), node.lab.new_object());
                let bytes = node.ask(NodeVerb::Snapshot(object))?;
                copy::Place::There(copy::Remote { lab, object, bytes })
            }
        }))
    }

    /// Makes its data directory from a snapshot of this lab, replacing one that is there. What it
    /// wrote is on the disk only after [`crate::Lab::sync`].
    ///
    /// # Errors
    /// [`Error::State`] if it runs; the file system's.
    pub fn init_from_snapshot(&mut self, snapshot: &Snapshot) -> Result<(), Error> {
        match (&mut self.0, &snapshot.0) {
            (Place::Here(node), copy::Place::Here(snapshot)) => node.init_from_snapshot(snapshot),
            (Place::There(node), copy::Place::There(remote)) => {
                node.ask(NodeVerb::InitFromSnapshot(remote.object))
            }
            _ => Err(self.elsewhere("restoring")),
        }
    }

    /// Makes its data directory from that of another node of this lab, which is stopped.
    ///
    /// # Errors
    /// [`Error::State`] if either runs; the file system's.
    pub fn clone_data(&mut self, from: &Node) -> Result<(), Error> {
        match (&mut self.0, &from.0) {
            (Place::Here(node), Place::Here(from)) => node.clone_data(from),
            (Place::There(node), Place::There(from)) => node.ask(NodeVerb::CloneData(from.object)),
            _ => Err(self.elsewhere("cloning into")),
        }
    }

    /// The format of the stopped node's data, as its own pg_controldata tells it: programs whose data
    /// have the same can read them.
    ///
    /// # Errors
    /// [`Error::State`] if it runs; [`Error::MissingPart`] without pg_controldata; [`Error::File`] with
    /// what pg_controldata said.
    pub fn format(&self) -> Result<Format, Error> {
        match &self.0 {
            Place::Here(node) => node.format(),
            Place::There(node) => node.ask(NodeVerb::Format),
        }
    }

    /// Compares every block's checksum with its content (pg_checksums --check). The node must have
    /// been shut down, and its data made with `--data-checksums`.
    ///
    /// # Errors
    /// [`Error::State`] if it runs; [`Error::Checksums`] with what pg_checksums said.
    pub fn check_checksums(&mut self) -> Result<Checksums, Error> {
        match &mut self.0 {
            Place::Here(node) => node.check_checksums(),
            Place::There(node) => node.ask(NodeVerb::CheckChecksums),
        }
    }

    /// Gives its data a new, empty WAL (pg_resetwal --force), so that a server starts on them that
    /// did not: what only the WAL had is lost, and what is there may not fit together.
    ///
    /// # Errors
    /// [`Error::State`] if it runs; [`Error::Start`] with what pg_resetwal said.
    pub fn reset_wal(&mut self) -> Result<(), Error> {
        match &mut self.0 {
            Place::Here(node) => node.reset_wal(),
            Place::There(node) => node.ask(NodeVerb::ResetWal),
        }
    }

    /// Takes a base backup of the running node (pg_basebackup), in the place of an earlier one.
    ///
    /// # Errors
    /// [`Error::State`] if it does not run; [`Error::Backup`] with what pg_basebackup said.
    pub fn take_backup(&mut self) -> Result<(), Error> {
        match &mut self.0 {
            Place::Here(node) => node.take_backup(),
            Place::There(node) => node.ask(NodeVerb::TakeBackup),
        }
    }

    /// Replaces the data of the stopped node by its base backup, starts it, and returns when it has
    /// replayed its archive to the end and takes writes.
    ///
    /// # Errors
    /// [`Error::State`] if it runs or has no backup; [`Error::Start`]; [`Error::Timeout`].
    pub fn restore(&mut self) -> Result<(), Error> {
        match &mut self.0 {
            Place::Here(node) => node.restore(),
            Place::There(node) => node.ask(NodeVerb::Restore),
        }
    }

    /// Cuts the power of its disk and kills all its processes, then gives the power back: its file
    /// system is mounted again, and the server stands until it is started. `seed` decides what a
    /// block disk loses.
    ///
    /// # Errors
    /// [`Error::State`] if it has no disk of its own; [`Error::Disk`].
    pub fn power_cut(&mut self, seed: u64) -> Result<Cut, Error> {
        match &mut self.0 {
            Place::Here(node) => node.power_cut(seed),
            Place::There(node) => node.ask(NodeVerb::PowerCut(seed)),
        }
    }

    /// Makes sure that what it has written so far survives a cut; on the lab's own disk there is
    /// nothing to do.
    ///
    /// # Errors
    /// [`Error::Disk`].
    pub fn sync(&mut self) -> Result<(), Error> {
        match &mut self.0 {
            Place::Here(node) => node.sync(),
            Place::There(node) => node.ask(NodeVerb::Sync),
        }
    }

    /// Whether its data lie on a disk of its own, whose power can be cut.
    pub fn has_disk(&self) -> bool {
        match &self.0 {
            Place::Here(node) => node.disk().is_some(),
            Place::There(node) => node.config.disk.is_some(),
        }
    }

    /// Its disk, if it has one of its own and is on this machine: to have requests fail, say.
    pub fn disk(&self) -> Option<&Disk> {
        match &self.0 {
            Place::Here(node) => node.disk(),
            Place::There(_) => None,
        }
    }

    /// Bytes in the files of its data directory, without the WAL.
    ///
    /// # Errors
    /// [`Error::File`] where the directory cannot be read.
    pub fn data_bytes(&self) -> Result<u64, Error> {
        match &self.0 {
            Place::Here(node) => node.data_bytes(),
            Place::There(node) => node.ask(NodeVerb::DataBytes),
        }
    }
}
