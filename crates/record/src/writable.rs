//! Seeing that an output can be written, before anything is measured for it.

use std::fs::{self, OpenOptions};
use std::io;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use rustix::fs::OFlags;

use crate::error::{Error, io as io_error};

/// Makes a directory if it is missing, and sees that something can be written into it.
pub fn check_directory(directory: &Path) -> Result<(), Error> {
    fs::create_dir_all(directory).map_err(io_error("creating", directory))?;
    probe(directory).map_err(io_error("writing into", directory))
}

/// Sees that a file can be written. One that exists stays as it is, one that does not is not made.
pub fn check_file(path: &Path) -> Result<(), Error> {
    // A FIFO that nobody reads would be waited for.
    let flags = OFlags::NONBLOCK.bits().cast_signed();
    let check = || match OpenOptions::new().append(true).custom_flags(flags).open(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            let parent = path.parent().filter(|parent| !parent.as_os_str().is_empty());
            probe(parent.unwrap_or(Path::new(".")))
        }
        opened => opened.map(drop),
    };
    check().map_err(io_error("writing", path))
}

fn probe(directory: &Path) -> io::Result<()> {
    let name = directory.join(format!(".pgrig-{}", std::process::id()));
    fs::create_dir(&name)?;
    fs::remove_dir(&name)
}
