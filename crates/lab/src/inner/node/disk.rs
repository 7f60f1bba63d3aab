//! A node's disk of its own, whose power can be cut.

use std::path::{Path, PathBuf};
use std::time::Duration;
use std::{fs, io};

use fault::disk::{self, FaultyDisk, PowerCutReport};
use os::init::Init;
use terms::{DiskFault, DiskRequest, FailingRequests};

use crate::error::Error;
use crate::files::failed;
use crate::inner::node::Node;
use crate::inner::powered::PoweredObject;
use crate::inner::program::Program;
use crate::node_config::NodeConfig;

/// The disk that a node is to have. It is the rig's own, apart from the node's directory: what a
/// server wrote there is never formatted or mounted.
pub(super) fn of(config: &NodeConfig, program: &Program, port: u16) -> Option<FaultyDisk> {
    let config = config.disk.clone()?;
    let disks = program.shared.disks();
    let socket = disks.join(format!(".{port}"));
    Some(FaultyDisk::new(config, &disks.join(&program.name), &socket, program.owner))
}

impl PoweredObject for Node {
    fn power_cut(&mut self, seed: u64, at: Option<DiskRequest>) -> Result<PowerCutReport, Error> {
        let doing = "cutting the power of";
        // All lose it in one moment: that of the first one's request, where there is one.
        let mut cuttings = self.with_disks(doing, |disk, init| disk.begin_cut(init))?.into_iter();
        let mut begun = Vec::new();
        let (mut at, mut seed) = (at, seed);
        self.with_disks(doing, |disk, _| {
            if let Some(mut cutting) = cuttings.next() {
                disk.cut_device(&mut cutting, seed, at.take())?;
                begun.push(cutting);
                seed = seed.rotate_left(17);
            }
            Ok(())
        })?;
        let mut begun = begun.into_iter();
        let cuts = self.with_disks(doing, |disk, init| match begun.next() {
            Some(cutting) => disk.end_cut(init, cutting),
            None => Ok(PowerCutReport::default()),
        })?;
        if cuts.is_empty() {
            return Err(self.program.state(doing, "has no disk of its own"));
        }
        let cut = cuts.into_iter().fold(PowerCutReport::default(), PowerCutReport::and);
        self.program.kill9()?;
        self.is_cut = true;
        self.with_disks(doing, FaultyDisk::power_off)?;
        match self.give_power(doing) {
            // The next start says so.
            Err(Error::DataLost { .. }) | Ok(()) => Ok(cut),
            Err(error) => Err(error),
        }
    }

    /// The first disk is that of the data.
    fn fail_disk(&mut self, at: DiskRequest, fault: DiskFault) -> Result<(), Error> {
        let doing = "failing requests of";
        let mut is_first = true;
        self.with_disks(doing, |disk, _| match std::mem::take(&mut is_first) {
            true => disk.fail_from(at, fault),
            false => Ok(()),
        })
        .map(drop)
    }

    /// Slows the disk of its data down, or heals it.
    fn slow_disk(&mut self, slow: Option<(DiskRequest, Duration)>) -> Result<(), Error> {
        let mut is_first = true;
        let slowed =
            self.with_disks("slowing", |disk, _| match (slow, std::mem::take(&mut is_first)) {
                (Some((at, by)), true) => disk.slow_from(at, by),
                (None, true) => disk.heal().map(drop),
                (_, false) => Ok(()),
            })?;
        match slowed.is_empty() {
            true => Err(self.program.state("slowing", "has no disk of its own")),
            false => Ok(()),
        }
    }

    fn sync(&mut self) -> Result<(), Error> {
        self.with_disks("syncing", |disk, init| disk.sync(init)).map(drop)
    }
}

impl Node {
    /// Has some requests of its disks fail; the number of blocks that they are about.
    pub(crate) fn fail_requests(&mut self, failing: &FailingRequests) -> Result<u64, Error> {
        let doing = "failing requests of";
        let blocks: u64 = self
            .with_disks(doing, |disk, init| disk.fail_requests(init, failing))?
            .into_iter()
            .sum();
        match blocks {
            0 => Err(self.program.state(doing, "has none of these files on a disk of its own")),
            some => Ok(some),
        }
    }

    /// Ends that; the number of requests that failed.
    pub(crate) fn heal_disk(&mut self) -> Result<u64, Error> {
        let healed = self.with_disks("healing", |disk, _| disk.heal())?;
        Ok(healed.iter().map(|status| status.failed).sum())
    }

    /// Switches its disk on, if it is off since a cut.
    ///
    /// # Errors
    /// [`Error::DataLost`] where the cut has left no file system, or no data directory in it;
    /// [`Error::Disk`].
    pub(super) fn give_power(&mut self, doing: &'static str) -> Result<(), Error> {
        if !self.is_cut {
            return Ok(());
        }
        match self.with_disks(doing, FaultyDisk::power_on) {
            Err(Error::Disk { source: source @ disk::Error::FileSystemLost { .. }, .. }) => {
                self.lost(source.to_string())
            }
            Err(error) => Err(error),
            Ok(_) if self.has_data()? => Ok(()),
            Ok(_) => self.lost("its file system has no data directory".to_owned()),
        }
    }

    fn lost(&self, why: String) -> Result<(), Error> {
        Err(Error::DataLost { node: self.name().to_owned(), why })
    }

    /// Its data directory as this process can open it.
    pub(super) fn data_here(&self) -> Result<PathBuf, Error> {
        let data = self.data();
        match &self.disk {
            None => Ok(data),
            Some(_) => {
                let init = self.program.init("finding the data")?;
                let no_namespace = || of_node(self.name(), disk::Error::NoNamespace);
                init.path_inside(&data).ok_or_else(no_namespace)
            }
        }
    }

    pub(crate) fn data_bytes(&self) -> Result<u64, Error> {
        let data = self.data_here()?;
        self.program.owner.access(|| bytes_below(&data)).map_err(failed("measuring", &data))
    }

    /// Gives its disks empty file systems.
    pub(super) fn format_disk(&mut self) -> Result<(), Error> {
        self.is_cut = false;
        self.with_disks("formatting", FaultyDisk::format).map(drop)
    }

    /// Does something with each of its disks, if it has any: that of its data first, then those of its parts.
    pub(super) fn with_disks<T>(
        &mut self,
        doing: &'static str,
        mut act: impl FnMut(&mut FaultyDisk, &Init) -> Result<T, disk::Error>,
    ) -> Result<Vec<T>, Error> {
        let parts = self.parts.iter_mut().map(|part| &mut part.disk);
        let disks: Vec<&mut FaultyDisk> = self.disk.iter_mut().chain(parts).collect();
        if disks.is_empty() {
            return Ok(Vec::new());
        }
        let init = self.program.init(doing)?;
        let done = disks.into_iter().map(|disk| act(disk, init));
        done.collect::<Result<_, _>>().map_err(|source| of_node(&self.program.name, source))
    }
}

pub(super) fn of_node(node: &str, source: disk::Error) -> Error {
    Error::Disk { node: node.to_owned(), source }
}

/// Bytes in files, without the WAL. A file that a running server removes meanwhile has none.
fn bytes_below(directory: &Path) -> io::Result<u64> {
    let mut bytes = 0;
    for entry in fs::read_dir(directory)? {
        let entry = entry?;
        let Ok(about) = entry.metadata() else { continue };
        if !about.is_dir() {
            bytes += about.len();
        } else if entry.file_name() != "pg_wal" {
            bytes += bytes_below(&entry.path())?;
        }
    }
    Ok(bytes)
}
