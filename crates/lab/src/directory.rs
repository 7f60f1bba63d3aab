//! The one directory that everything of a lab is in. It is the rig's own, and the user that its
//! servers run as can pass it to what is that user's (0700): `s/` holds the Unix sockets (short,
//! because the kernel limits their paths), `nodes/NAME/` each node's data and logs, `templates/` what
//! initdb made, `snapshots/` copies of data. `nodes/` and `disks/`, which holds the nodes' own disks,
//! are the rig's: no server can replace what is directly in them.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use os::user::SystemUser;

use crate::clean::Marker;
use crate::error::{Error, SOCKET_PATH_BYTES_MAX};
use crate::files::{closed_to, failed, make_directory_for, make_passage, remove_tree};
use crate::lab_config::{AtEnd, LabConfig};
use crate::random::random_hex;

/// The lab's directory, removed when it is dropped if it shall be.
#[derive(Debug)]
pub(crate) struct Directory {
    pub(crate) path: PathBuf,
    pub(crate) at_end: AtEnd,
    pub(crate) marker: Option<Marker>,
}

impl Directory {
    /// Makes and marks it.
    pub(crate) fn make(config: &LabConfig, user: SystemUser) -> Result<Self, Error> {
        let path = match &config.directory {
            Some(given) => make_given(given)?,
            None => make_temporary()?,
        };
        // From here on it is removed on every way out.
        let mut directory = Self { path, at_end: AtEnd::Remove, marker: None };
        directory.path =
            directory.path.canonicalize().map_err(failed("resolving", &directory.path))?;
        check_socket_path(&directory.path)?;
        if directory.path.starts_with(SHARED_MEMORY) {
            return Err(Error::SharedMemoryDirectory { directory: directory.path.clone() });
        }
        directory.marker = Some(Marker::make(&directory.path)?);
        for part in [NODES, DISKS] {
            make_passage(&directory.path.join(part))?;
        }
        for part in [SOCKETS, TEMPLATES, SNAPSHOTS] {
            make_directory_for(&directory.path.join(part), user)?;
        }
        let reach = || fs::metadata(directory.path.join(SOCKETS).join("."));
        if let Err(error) = user.access(reach) {
            return Err(match closed_to(&directory.path, user) {
                Some(closed) => {
                    Error::Closed { directory: directory.path.clone(), uid: user.uid, closed }
                }
                None => failed("entering", &directory.path)(error),
            });
        }
        directory.at_end = config.at_end;
        Ok(directory)
    }
}

impl Drop for Directory {
    fn drop(&mut self) {
        if self.at_end == AtEnd::Remove {
            // The lab's init has removed it, unless it never ran or was killed. What cannot be
            // removed now (a failing disk) is found by clean() later.
            let _ = remove_tree(&self.path);
        }
    }
}

fn make_given(given: &Path) -> Result<PathBuf, Error> {
    let refused =
        |why: &str| Err(Error::Directory { directory: given.to_owned(), why: why.to_owned() });
    // An empty one is made anew, with the owner and the mode that it has to have.
    match fs::remove_dir(given) {
        Ok(()) => {}
        Err(error) => match error.kind() {
            io::ErrorKind::NotFound => {}
            io::ErrorKind::DirectoryNotEmpty => return refused("it is not empty"),
            io::ErrorKind::NotADirectory => return refused("it is not a directory"),
            _ => return Err(failed("replacing the directory", given)(error)),
        },
    }
    make_passage(given)?;
    Ok(given.to_owned())
}

pub(crate) fn make_temporary() -> Result<PathBuf, Error> {
    let parent = std::env::temp_dir();
    loop {
        let path = parent.join(format!("pgrig-{}", random_hex(3)?));
        match make_passage(&path) {
            Err(Error::File { source, .. }) if source.kind() == io::ErrorKind::AlreadyExists => {}
            Err(error) => return Err(error),
            Ok(()) => return Ok(path),
        }
    }
}

fn check_socket_path(directory: &Path) -> Result<(), Error> {
    // The longest that any node's socket can have.
    let socket = directory.join(SOCKETS).join(".s.PGSQL.65535");
    let length = socket.as_os_str().len();
    match length <= SOCKET_PATH_BYTES_MAX {
        true => Ok(()),
        false => Err(Error::SocketPath { socket, length }),
    }
}

/// Each lab's servers have one of their own.
const SHARED_MEMORY: &str = "/dev/shm";

pub(crate) const SOCKETS: &str = "s";
pub(crate) const NODES: &str = "nodes";
pub(crate) const DISKS: &str = "disks";
pub(crate) const TEMPLATES: &str = "templates";
pub(crate) const SNAPSHOTS: &str = "snapshots";
