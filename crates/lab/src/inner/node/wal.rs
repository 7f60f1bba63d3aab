//! A node's WAL on a disk of its own. Its data are one directory while they are copied; when it is started,
//! the WAL goes to its disk and leaves a link.

use std::os::unix::fs::symlink;
use std::path::PathBuf;
use std::{fs, io};

use fault::disk;

use crate::copy::copy_tree;
use crate::error::Error;
use crate::files::failed;
use crate::inner::node::Node;
use crate::inner::node::disk::of_node;

impl Node {
    /// Puts the WAL on its disk, if it has one and the WAL is with the data.
    pub(super) fn split_wal(&self) -> Result<(), Error> {
        let Some((with_data, apart)) = self.places_of_wal()? else { return Ok(()) };
        let owner = self.program.owner;
        if is_link(&with_data) {
            return Ok(());
        }
        owner.access(|| there(fs::remove_dir_all(&apart))).map_err(failed("removing", &apart))?;
        copy_tree(&with_data, &apart, owner)?;
        let link = || {
            fs::remove_dir_all(&with_data)?;
            symlink(LINK, &with_data)
        };
        owner.access(link).map_err(failed("linking", &with_data))
    }

    /// Puts the WAL back with the data of the stopped node, so that these can be copied as one.
    pub(super) fn gather_wal(&self) -> Result<(), Error> {
        let Some((with_data, apart)) = self.places_of_wal()? else { return Ok(()) };
        let owner = self.program.owner;
        if !is_link(&with_data) {
            return Ok(());
        }
        let remove = || fs::remove_file(&with_data);
        owner.access(remove).map_err(failed("removing", &with_data))?;
        copy_tree(&apart, &with_data, owner).map(drop)
    }

    /// The WAL's place with the data, and that on its own disk, as this process can open them.
    fn places_of_wal(&self) -> Result<Option<(PathBuf, PathBuf)>, Error> {
        let Some(disk) = &self.wal_disk else { return Ok(None) };
        let init = self.program.init("placing the WAL")?;
        let apart = disk.mount_point().join(DIRECTORY);
        let no_namespace = || of_node(self.name(), disk::Error::NoNamespace);
        let apart = init.path_inside(&apart).ok_or_else(no_namespace)?;
        Ok(Some((self.data_here()?.join("pg_wal"), apart)))
    }
}

fn is_link(path: &std::path::Path) -> bool {
    path.symlink_metadata().is_ok_and(|about| about.is_symlink())
}

fn there(result: io::Result<()>) -> io::Result<()> {
    match result {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        result => result,
    }
}

/// The directory of the disk, below that of the data's disk.
pub(super) const DISK: &str = "wal";

/// The directory of the WAL on its disk.
pub(super) const DIRECTORY: &str = "wal";

/// From `data/pg_wal` on the disk of the data to the WAL. It names no node: a state of one node's disks is
/// another node's.
const LINK: &str = "../../wal/mount/wal";
