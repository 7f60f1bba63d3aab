//! Parts of a node's data that are on disks of their own: its WAL, its tablespaces. Its data are one directory
//! while they are copied; when it is started, each such part goes to its disk and leaves a link.

use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::{fs, io};

use fault::disk::{self, FaultyDisk};
use terms::DataPart;

use crate::copy::copy_tree;
use crate::error::Error;
use crate::files::failed;
use crate::inner::node::Node;
use crate::inner::node::disk::of_node;
use crate::inner::program::Program;
use crate::node_config::NodeConfig;

/// A disk that has a part of a node's data.
#[derive(Debug)]
pub(super) struct PartDisk {
    part: DataPart,
    pub(super) disk: FaultyDisk,
}

impl PartDisk {
    /// The disks that a node is to have beside that of its data, in the directory of that one.
    pub(super) fn all(config: &NodeConfig, program: &Program, port: u16) -> Vec<PartDisk> {
        let disks = program.shared.disks();
        let make = |(part, config): (&DataPart, &disk::DiskConfig)| {
            let directory = disks.join(&program.name).join(part.name());
            let socket = disks.join(format!(".{port}.{part}"));
            let disk = FaultyDisk::new(config.clone(), &directory, &socket, program.owner);
            PartDisk { part: *part, disk }
        };
        config.apart.iter().map(make).collect()
    }
}

/// The places of a part, as this process can open them.
struct PartPlaces {
    part: DataPart,
    /// In the data directory.
    with_data: PathBuf,
    /// On its own disk.
    apart: PathBuf,
}

impl Node {
    /// Puts each part that has a disk there, if it is with the data.
    pub(super) fn split_parts(&self) -> Result<(), Error> {
        let owner = self.program.owner;
        for PartPlaces { part, with_data, apart } in self.places()? {
            if is_link(&with_data)? {
                continue;
            }
            owner
                .access(|| there(fs::remove_dir_all(&apart)))
                .map_err(failed("removing", &apart))?;
            copy_tree(&with_data, &apart, owner)?;
            let replace = || {
                fs::remove_dir_all(&with_data)?;
                symlink(link(part), &with_data)
            };
            owner.access(replace).map_err(failed("linking", &with_data))?;
        }
        Ok(())
    }

    /// Puts each part back with the data of the stopped node, so that these can be copied as one.
    pub(super) fn gather_parts(&self) -> Result<(), Error> {
        let owner = self.program.owner;
        for PartPlaces { with_data, apart, .. } in self.places()? {
            if is_link(&with_data)? {
                let remove = || fs::remove_file(&with_data);
                owner.access(remove).map_err(failed("removing", &with_data))?;
                copy_tree(&apart, &with_data, owner)?;
            }
        }
        Ok(())
    }

    fn places(&self) -> Result<Vec<PartPlaces>, Error> {
        let places = self.parts.iter().map(|PartDisk { part, disk }| {
            let init = self.program.init("placing a part of the data")?;
            let apart = disk.mount_point().join(directory(*part));
            let no_namespace = || of_node(self.name(), disk::Error::NoNamespace);
            let apart = init.path_inside(&apart).ok_or_else(no_namespace)?;
            let with_data = self.data_here()?.join(part.directory());
            Ok(PartPlaces { part: *part, with_data, apart })
        });
        places.collect()
    }
}

fn is_link(path: &Path) -> Result<bool, Error> {
    let about = path.symlink_metadata().map_err(failed("looking at", path))?;
    Ok(about.is_symlink())
}

fn there(result: io::Result<()>) -> io::Result<()> {
    match result {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        result => result,
    }
}

/// The directory of a part on its disk.
pub(super) fn directory(part: DataPart) -> &'static str {
    match part {
        // Logs and images that were kept earlier have that name.
        DataPart::Wal => "wal",
        DataPart::Main | DataPart::Tablespaces => part.directory(),
    }
}

/// From the data directory on the disk of the data to a part. It names no node: a state of one node's disks is
/// another node's.
fn link(part: DataPart) -> PathBuf {
    Path::new("../..").join(part.name()).join("mount").join(directory(part))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_link_of_a_part_names_its_disk_and_no_node() {
        let check = |part, expected: &str| assert_eq!(link(part), Path::new(expected));
        check(DataPart::Wal, "../../wal/mount/wal");
        check(DataPart::Tablespaces, "../../tablespaces/mount/pg_tblspc");
    }
}
