//! A node's data: copied, checked, restored, and on a disk whose power is cut. A verb that the node's state
//! does not allow is an [`Error::State`].

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use fault::disk::{DiskConfig, PowerCutMethod, PowerCutReport, RequestLog};
use os::user::SystemUser;
use terms::{DataPart, DiskFault, DiskRequest, FailingRequests};

use crate::answer::DataCopied;
use crate::archive::{ArchiveTool, ArchivedFile, BackupVerdict, RestoreOrder};
use crate::checksums::Checksums;
use crate::copy::copy_tree;
use crate::error::Error;
use crate::format::Format;
use crate::lab::Lab;
use crate::node::Node;
use crate::open_lab::OpenLab;
use crate::snapshot::Snapshot;
use crate::upgrade::{UpgradeMode, UpgradeReport};
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

    /// Makes its data by pg_upgrade from those of another node, which is stopped and on the same host, and of an earlier
    /// major version. Both are stopped afterwards.
    ///
    /// # Errors
    /// [`Error::Upgrade`] with what pg_upgrade said; [`Error::MissingPart`] without it.
    pub fn upgrade_data(&mut self, from: &Node, mode: UpgradeMode) -> Result<UpgradeReport, Error> {
        self.expect_same_host(&from.object.lab, "upgrading into")?;
        let data: PathBuf = from.ask(Verb::StoppedData)?;
        let old = Box::new(from.installation().clone());
        self.ask(Verb::UpgradeData { from: data, old, mode })
    }

    /// Removes its data, and tells where on this machine those of another server are to be put, as
    /// [`crate::copy_foreign_tree`] does.
    pub fn place_for_data(&mut self) -> Result<PathBuf, Error> {
        self.ask(Verb::PlaceForData)
    }

    /// Gives data that were put there the lab's configuration, recovers them, and makes the superuser and the database
    /// that the lab connects with where they are missing. The server is stopped afterwards.
    ///
    /// # Errors
    /// [`Error::State`] if it runs; [`Error::Start`] with what the server said that could not recover them.
    pub fn adopt_data(&mut self) -> Result<(), Error> {
        self.ask(Verb::AdoptData)
    }

    /// Copies the data directory of the stopped node to a new directory on this machine, which outlives
    /// the lab. The servers' user must be able to make it.
    pub fn copy_data(&self, to: &Path) -> Result<(), Error> {
        let data: PathBuf = self.ask(Verb::StoppedData)?;
        let user = SystemUser::unprivileged().unwrap_or_else(SystemUser::current);
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

    /// Takes a base backup of the running node (pg_basebackup), in the place of an earlier one of that name; the
    /// directory in which it lies.
    ///
    /// # Errors
    /// [`Error::State`] if it does not run; [`Error::Backup`] with what pg_basebackup said.
    pub fn take_backup(&mut self, name: &str) -> Result<PathBuf, Error> {
        self.ask(Verb::TakeBackup(name.to_owned()))
    }

    /// [`Node::take_backup`], for another thread to do.
    pub fn take_backup_later(
        &self,
        name: &str,
    ) -> impl FnOnce() -> Result<PathBuf, Error> + Send + use<> {
        self.object.later(Verb::TakeBackup(name.to_owned()))
    }

    /// Compares a base backup in a directory of the lab with its manifest (pg_verifybackup).
    ///
    /// # Errors
    /// [`Error::MissingPart`] without pg_verifybackup.
    pub fn verify_backup(&mut self, backup: &Path) -> Result<BackupVerdict, Error> {
        self.ask(Verb::VerifyBackup(backup.to_owned()))
    }

    /// Replaces the data of the stopped node by a base backup, of it or of another node of the lab, starts it, and
    /// returns when it has replayed the archive to its target and takes writes. It archives nothing from then on.
    ///
    /// # Errors
    /// [`Error::State`] if it runs or there is no backup; [`Error::Start`] with the server's reason, as where the
    /// target was not reached; [`Error::Timeout`].
    pub fn restore(&mut self, order: RestoreOrder) -> Result<(), Error> {
        self.ask(Verb::Restore(Box::new(order)))
    }

    /// The files of the archive that it writes to.
    ///
    /// # Errors
    /// [`Error::State`] if it has none; [`Error::File`].
    pub fn read_archive(&self) -> Result<Vec<ArchivedFile>, Error> {
        self.ask(Verb::ReadArchive)
    }

    /// The directory of the archive that it writes to.
    ///
    /// # Errors
    /// [`Error::State`] if it has none.
    pub fn archive_directory(&self) -> Result<PathBuf, Error> {
        self.ask(Verb::ArchiveDirectory)
    }

    /// Moves the clock that its processes see by so many microseconds; that of the machine, and of all others, stays.
    ///
    /// # Errors
    /// [`Error::State`] if it does not run, or has the clock of the machine.
    pub fn step_clock(&self, by_us: i64) -> Result<(), Error> {
        self.ask(Verb::StepClock(by_us))
    }

    /// What keeps the archive that it writes to; none where it has none.
    pub fn archive_tool(&self) -> Option<&ArchiveTool> {
        self.config.archive.as_ref().map(|archive| &archive.tool)
    }

    /// A node of the same lab and the same settings, on the lab's own disk and without an archive: a server to restore
    /// to.
    ///
    /// # Errors
    /// A name that is taken.
    pub fn spare(&self, name: &str) -> Result<Node, Error> {
        let mut config = self.config.clone();
        config.apart.clear();
        (config.disk, config.swallow_fsync) = (None, None);
        (config.archive, config.own_network, config.has_own_clock) = (None, false, false);
        Lab(Arc::clone(&self.object.lab)).node(name, config)
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

    /// Ends that log: of its data's disk, and of those that parts of its data have.
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
        for (DiskConfig { method, .. }, base) in config.disks_mut().zip(bases) {
            let PowerCutMethod::Block { program, .. } = method else {
                return Err(self.state("exploring", "has no block disk"));
            };
            *method = PowerCutMethod::State { base: base.clone(), program: program.clone() };
        }
        (config.swallow_fsync, config.archive) = (None, None);
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
        let parts: Vec<DataPart> = config.apart.keys().copied().collect();
        config.apart.clear();
        (config.swallow_fsync, config.archive) = (None, None);
        let node = Lab(Arc::clone(&self.object.lab)).node(name, config)?;
        let parts = [DataPart::Main].into_iter().chain(parts);
        let (images, kind) = (parts.zip(images.to_vec()).collect(), disk.file_system);
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
