//! A node's disk of its own, whose power can be cut.

use std::path::{Path, PathBuf};
use std::{fs, io};

use fault::disk::{self, Cut, Disk};
use os::init::Init;
use terms::{DiskFault, DiskRequest};

use crate::error::Error;
use crate::files::failed;
use crate::inner::node::Node;
use crate::inner::program::Program;
use crate::node_config::NodeConfig;

/// The disk that a node is to have. It is the rig's own, apart from the node's directory: what a
/// server wrote there is never formatted or mounted.
pub(super) fn of(config: &NodeConfig, program: &Program, port: u16) -> Option<Disk> {
    let config = config.disk.clone()?;
    let disks = program.shared.disks();
    let socket = disks.join(format!(".{port}"));
    Some(Disk::new(config, &disks.join(&program.name), &socket, program.owner))
}

impl Node {
    pub(crate) fn power_cut(&mut self, seed: u64, at: Option<DiskRequest>) -> Result<Cut, Error> {
        let doing = "cutting the power of";
        let cut = self.with_disk(doing, |disk, init| disk.cut(init, seed, at))?;
        let cut = cut.ok_or_else(|| self.program.state(doing, "has no disk of its own"))?;
        self.program.kill9()?;
        self.is_cut = true;
        self.with_disk(doing, Disk::power_off)?;
        match self.give_power(doing) {
            // The next start says so.
            Err(Error::DataLost { .. }) | Ok(()) => Ok(cut),
            Err(error) => Err(error),
        }
    }

    pub(crate) fn fail_disk(&mut self, at: DiskRequest, fault: DiskFault) -> Result<(), Error> {
        self.with_disk("failing requests of", |disk, _| disk.fail_from(at, fault)).map(drop)
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
        match self.with_disk(doing, Disk::power_on) {
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

    pub(crate) fn sync(&mut self) -> Result<(), Error> {
        self.with_disk("syncing", |disk, init| disk.sync(init)).map(drop)
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

    /// Gives its disk an empty file system.
    pub(super) fn format_disk(&mut self) -> Result<(), Error> {
        self.is_cut = false;
        self.with_disk("formatting", Disk::format).map(drop)
    }

    /// Does something with its disk, if it has one.
    pub(super) fn with_disk<T>(
        &mut self,
        doing: &'static str,
        act: impl FnOnce(&mut Disk, &Init) -> Result<T, disk::Error>,
    ) -> Result<Option<T>, Error> {
        let Some(disk) = &mut self.disk else { return Ok(None) };
        let init = self.program.init(doing)?;
        act(disk, init).map(Some).map_err(|source| of_node(&self.program.name, source))
    }
}

fn of_node(node: &str, source: disk::Error) -> Error {
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
