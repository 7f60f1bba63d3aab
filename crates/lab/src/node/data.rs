//! A node's data: copied, checked, restored, and on a disk whose power is cut. A verb that the node's state
//! does not allow is an [`Error::State`].

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use fault::disk::{DiskConfig, Method, PowerCutReport, RequestLog};
use os::user::User;
use terms::{DiskFault, DiskRequest, FailingRequests};

use crate::answer::DataCopied;
use crate::checksums::Checksums;
use crate::copy::copy_tree;
use crate::error::Error;
use crate::format::Format;
use crate::lab::Lab;
use crate::node::Node;
use crate::open_lab::OpenLab;
use crate::snapshot::Snapshot;
use crate::verb::Verb;

impl Node {
    /// Copies the data of the stopped node.
    pub fn snapshot(&self) -> Result<Snapshot, Error> {
        let (lab, number) = (Arc::clone(&self.object.lab), self.object.lab.new_number());
        let DataCopied { directory, bytes } = self.ask(Verb::Snapshot(number))?;
        Ok(Snapshot { lab, number, directory, bytes })
    }

    /// Makes its data directory from a snapshot on the same host, replacing one that is there. What it
    /// wrote is on the disk only after [`crate::Lab::sync`].
    pub fn init_from_snapshot(&mut self, snapshot: &Snapshot) -> Result<(), Error> {
        self.expect_same_host(&snapshot.lab, "restoring")?;
        self.ask(Verb::InitFromCopy(snapshot.directory.clone()))
    }

    /// Makes its data directory from that of another node, which is stopped and on the same host.
    pub fn clone_data(&mut self, from: &Node) -> Result<(), Error> {
        self.expect_same_host(&from.object.lab, "cloning into")?;
        self.expect_stopped("cloning into")?;
        let data: PathBuf = from.ask(Verb::StoppedData)?;
        self.ask(Verb::InitFromCopy(data))
    }

    /// Makes its data directory from one that [`Node::copy_data`] has written on this machine, replacing
    /// one that is there.
    pub fn init_from_directory(&mut self, directory: &Path) -> Result<(), Error> {
        self.ask(Verb::InitFromCopy(directory.to_owned()))
    }

    /// Copies the data directory of the stopped node to a new directory on this machine, which outlives
    /// the lab. The servers' user must be able to make it.
    pub fn copy_data(&self, to: &Path) -> Result<(), Error> {
        let data: PathBuf = self.ask(Verb::StoppedData)?;
        let user = User::unprivileged().unwrap_or_else(User::current);
        copy_tree(&data, to, user).map(drop)
    }

    /// Exchanges its data directory with that of another node, which is stopped and on the same host.
    ///
    /// # Errors
    /// [`Error::State`] if either runs or has a disk of its own; the file system's.
    pub fn exchange_data(&mut self, other: &mut Node) -> Result<(), Error> {
        self.expect_same_host(&other.object.lab, "exchanging the data of")?;
        let data: PathBuf = other.ask(Verb::StoppedData)?;
        self.ask(Verb::ExchangeData(data))
    }

    /// The format of the stopped node's data, as its own pg_controldata tells it: programs whose data
    /// have the same can read them.
    ///
    /// # Errors
    /// [`Error::State`] if it runs; [`Error::MissingPart`] without pg_controldata; [`Error::File`] with
    /// what pg_controldata said.
    pub fn format(&self) -> Result<Format, Error> {
        self.ask(Verb::Format)
    }

    /// Compares every block's checksum with its content (pg_checksums --check). The node must have
    /// been shut down, and its data made with `--data-checksums`.
    ///
    /// # Errors
    /// [`Error::State`] if it runs; [`Error::Checksums`] with what pg_checksums said.
    pub fn check_checksums(&mut self) -> Result<Checksums, Error> {
        self.ask(Verb::CheckChecksums)
    }

    /// Gives its data a new, empty WAL (pg_resetwal --force), so that a server starts on them that
    /// did not: what only the WAL had is lost, and what is there may not fit together.
    ///
    /// # Errors
    /// [`Error::State`] if it runs; [`Error::Start`] with what pg_resetwal said.
    pub fn reset_wal(&mut self) -> Result<(), Error> {
        self.ask(Verb::ResetWal)
    }

    /// Takes a base backup of the running node (pg_basebackup), in the place of an earlier one.
    ///
    /// # Errors
    /// [`Error::State`] if it does not run; [`Error::Backup`] with what pg_basebackup said.
    pub fn take_backup(&mut self) -> Result<(), Error> {
        self.ask(Verb::TakeBackup)
    }

    /// Replaces the data of the stopped node by its base backup, starts it, and returns when it has
    /// replayed its archive to the end and takes writes.
    ///
    /// # Errors
    /// [`Error::State`] if it runs or has no backup; [`Error::Start`]; [`Error::Timeout`].
    pub fn restore(&mut self) -> Result<(), Error> {
        self.ask(Verb::Restore)
    }

    /// Cuts the power of its disk and kills all its processes, then gives the power back: its file
    /// system is mounted again, and the server stands until it is started. `seed` decides what a
    /// block disk loses. With `at` the power of a block disk is cut when that request comes.
    pub fn power_cut(
        &mut self,
        seed: u64,
        at: Option<DiskRequest>,
    ) -> Result<PowerCutReport, Error> {
        self.ask(Verb::PowerCut { seed, at })
    }

    /// Has its block disk fail from that request on, until its power is cut.
    pub fn fail_disk(&mut self, at: DiskRequest, fault: DiskFault) -> Result<(), Error> {
        self.ask(Verb::FailDisk { at, fault })
    }

    /// Has some requests of its block disks fail, while others are done; the number of blocks that they are about.
    ///
    /// # Errors
    /// [`Error::State`] if none of the files is on a disk of its own; [`Error::Disk`].
    pub fn fail_requests(&mut self, failing: FailingRequests) -> Result<u64, Error> {
        self.ask(Verb::FailRequests(failing))
    }

    /// Ends that; the number of requests that failed.
    pub fn heal_disk(&mut self) -> Result<u64, Error> {
        self.ask(Verb::HealDisk)
    }

    /// Has its block disk take so much longer for each request of a kind from that one on; with nothing, it
    /// is as fast as before.
    pub fn slow_disk(&mut self, slow: Option<(DiskRequest, Duration)>) -> Result<(), Error> {
        self.ask(Verb::SlowDisk(slow))
    }

    /// Makes sure that what it has written so far survives a cut; on the lab's own disk there is
    /// nothing to do.
    pub fn sync(&mut self) -> Result<(), Error> {
        self.ask(Verb::Sync)
    }

    /// Keeps a log of what its disk is asked for: from now on, if the disk was made to keep one; with a
    /// number from when its disk is switched on next, of at most so many bytes.
    pub fn record_writes(&mut self, bytes: Option<u64>) -> Result<(), Error> {
        match self.config.disk {
            Some(_) => self.ask(Verb::RecordWrites(bytes)),
            None => Ok(()),
        }
    }

    /// Ends that log: of its data's disk, and of its WAL's if that has one of its own.
    ///
    /// # Errors
    /// [`Error::Disk`], as where the log was too small.
    pub fn end_record(&mut self) -> Result<Vec<RequestLog>, Error> {
        self.ask(Verb::EndRecord)
    }

    /// A node of the same lab whose disk holds states that a power cut could have left of this one's,
    /// by the images of these. It has the same settings and no flush of it is swallowed.
    ///
    /// # Errors
    /// [`Error::State`] where this one has no block disk; a name that is taken.
    pub fn replica(&self, name: &str, bases: &[PathBuf]) -> Result<Node, Error> {
        let mut config = self.config.clone();
        let disks = config.disk.iter_mut().chain(&mut config.wal_disk);
        for (DiskConfig { method, .. }, base) in disks.zip(bases) {
            let Method::Block { program, .. } = method else {
                return Err(self.state("exploring", "has no block disk"));
            };
            *method = Method::State { base: base.clone(), program: program.clone() };
        }
        (config.swallow_fsync, config.is_archived) = (None, false);
        Lab(Arc::clone(&self.object.lab)).node(name, config)
    }

    /// A node of the same lab that has the data in these images of this one's disks, but no disk of its own.
    /// The images are somebody else's: programs of the servers' user read them, and the kernel mounts
    /// none. Their journals are replayed in place.
    ///
    /// # Errors
    /// [`Error::State`] where this one has no block disk; [`Error::Disk`], as for a file system that no
    /// program reads; [`Error::DataLost`] where an image has no file system or no data.
    pub fn replica_of_images(&self, name: &str, images: &[PathBuf]) -> Result<Node, Error> {
        let mut config = self.config.clone();
        let Some(disk) = config.disk.take() else {
            return Err(self.state("exploring", "has no block disk"));
        };
        config.wal_disk = None;
        (config.swallow_fsync, config.is_archived) = (None, false);
        let node = Lab(Arc::clone(&self.object.lab)).node(name, config)?;
        let (images, kind) = (images.to_vec(), disk.file_system);
        node.ask::<()>(Verb::InitFromImages { images, kind })?;
        Ok(node)
    }

    /// Kills it and has it start from the state in the files of [`Node::state_paths`] next.
    pub fn load_state(&mut self) -> Result<(), Error> {
        self.ask(Verb::LoadState)
    }

    /// Kills it and switches its disk off.
    pub fn power_off(&mut self) -> Result<(), Error> {
        self.ask(Verb::PowerOff)
    }

    /// Path of the state that each of its disks is switched on with, as [`Node::end_record`] orders them.
    pub fn state_paths(&self) -> Result<Vec<PathBuf>, Error> {
        self.ask(Verb::StatePaths)
    }

    /// The directory of its disk's files, which is root's.
    pub fn disk_directory(&self) -> Result<PathBuf, Error> {
        self.ask(Verb::DiskDirectory)
    }

    /// True if its data lie on a disk of its own, whose power can be cut.
    pub fn has_disk(&self) -> bool {
        self.config.disk.is_some()
    }

    /// Bytes in the files of its data directory, without the WAL.
    ///
    /// # Errors
    /// [`Error::File`] where the directory cannot be read.
    pub fn data_bytes(&self) -> Result<u64, Error> {
        self.ask(Verb::DataBytes)
    }

    fn expect_same_host(&self, other: &OpenLab, doing: &'static str) -> Result<(), Error> {
        match self.object.lab.host == other.host {
            true => Ok(()),
            false => Err(self.state(doing, "is on another host than those data")),
        }
    }
}
