//! Writing so that a reader sees all of a file or none of it.

use std::fs::{self, File};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

use crate::error::{Error, io};

/// Makes a directory `DATE-NAME-N` below `runs`, N being the first number that is free. The date is
/// the beginning of `started_at`.
pub(crate) fn make_numbered(runs: &Path, started_at: &str, name: &str) -> Result<PathBuf, Error> {
    fs::create_dir_all(runs).map_err(io("creating", runs))?;
    let date = started_at.get(..10).unwrap_or("undated");
    for number in 1.. {
        let directory = runs.join(format!("{date}-{name}-{number}"));
        match fs::create_dir(&directory) {
            Ok(()) => return Ok(directory),
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            Err(error) => return Err(io("creating", &directory)(error)),
        }
    }
    unreachable!("a directory holds fewer names than there are numbers")
}

/// Makes a directory of the user's choice, which must be new or empty.
pub(crate) fn make_empty(directory: &Path) -> Result<PathBuf, Error> {
    fs::create_dir_all(directory).map_err(io("creating", directory))?;
    let mut entries = fs::read_dir(directory).map_err(io("reading", directory))?;
    if entries.next().is_some() {
        let why = io::Error::new(io::ErrorKind::AlreadyExists, "the directory is not empty");
        return Err(io("creating", directory)(why));
    }
    Ok(directory.to_owned())
}

/// Lets nobody but this user into a directory.
pub(crate) fn close(directory: &Path) -> Result<(), Error> {
    use std::os::unix::fs::PermissionsExt;
    let mode = fs::Permissions::from_mode(0o700);
    fs::set_permissions(directory, mode).map_err(io("closing", directory))
}

/// Writes a new file to the end and onto the disk. What has its name already is not written to: it may
/// be a link that somebody has put there.
pub(crate) fn write(
    path: &Path,
    content: impl FnOnce(&mut BufWriter<File>) -> io::Result<()>,
) -> Result<(), Error> {
    let file = File::create_new(path).map_err(io("writing", path))?;
    let mut out = BufWriter::new(file);
    content(&mut out).and_then(|()| out.flush()).map_err(io("writing", path))?;
    out.get_ref().sync_all().map_err(io("writing", path))
}

/// Replaces a file in one step: a reader sees the old one or the new one.
pub(crate) fn replace(
    path: &Path,
    content: impl FnOnce(&mut BufWriter<File>) -> io::Result<()>,
) -> Result<(), Error> {
    let mut temporary = path.as_os_str().to_owned();
    temporary.push(".tmp");
    let temporary = Path::new(&temporary);
    // Of a run that was killed while it wrote.
    match fs::remove_file(temporary) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => {
            return Err(io("replacing", temporary)(error));
        }
        _ => {}
    }
    let written = write(temporary, content);
    if written.is_err() {
        // Half a file is no help, and its blocks may be what the disk lacks. The first error is
        // the one to report.
        let _ = fs::remove_file(temporary);
    }
    written?;
    rename(temporary, path)
}

/// Renames, and makes the new name survive a crash.
pub(crate) fn rename(from: &Path, to: &Path) -> Result<(), Error> {
    fs::rename(from, to).map_err(io("writing", to))?;
    match to.parent() {
        Some(parent) => sync_directory(parent),
        None => Ok(()),
    }
}

/// Makes the names in a directory survive a crash.
pub(crate) fn sync_directory(path: &Path) -> Result<(), Error> {
    let directory = File::open(path).map_err(io("writing", path))?;
    directory.sync_all().map_err(io("writing", path))
}

/// Writes a value as JSON that a person can read.
pub(crate) fn json(out: &mut impl Write, value: &impl serde::Serialize) -> io::Result<()> {
    out.write_all(terms::escaped(&serde_json::to_string_pretty(value)?).as_bytes())?;
    out.write_all(b"\n")
}
