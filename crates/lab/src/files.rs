//! Files that the rig makes, reads and removes in a lab's directory.
//!
//! A server can run any SQL, so its user may put a link, a FIFO or another file in the place of
//! anything below a directory of its own at any time. The rig, which may be root, touches files
//! there with that user's rights only (`owner`), replaces a file as a whole, and opens nothing but
//! regular files. What root itself reads, runs or mounts lies in directories of root's.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt, PermissionsExt, lchown};
use std::path::{Path, PathBuf};

use os::regular_file;
use os::user::SystemUser;
use rustix::fs::OFlags;

use crate::error::Error;

/// Makes a directory that only `owner` can enter, in a directory of the owner's.
pub(crate) fn make_directory(path: &Path, owner: SystemUser) -> Result<(), Error> {
    let make = || fs::DirBuilder::new().mode(0o700).create(path);
    owner.access(make).map_err(failed(MAKING, path))
}

/// Makes a directory that only `owner` can enter, in a directory of the rig's own user.
pub(crate) fn make_directory_for(path: &Path, owner: SystemUser) -> Result<(), Error> {
    make_directory(path, SystemUser::current())?;
    match owner == SystemUser::current() {
        true => Ok(()),
        false => lchown(path, Some(owner.uid), Some(owner.gid)).map_err(failed(MAKING, path)),
    }
}

/// Makes a directory of the rig's own user that others can pass, to what is theirs in it, and
/// cannot list.
pub(crate) fn make_passage(path: &Path) -> Result<(), Error> {
    make_directory(path, SystemUser::current())?;
    let open = || {
        let mut options = OpenOptions::new();
        let flags = OFlags::DIRECTORY | OFlags::NOFOLLOW;
        let directory = options.read(true).custom_flags(flags.bits().cast_signed()).open(path)?;
        directory.set_permissions(fs::Permissions::from_mode(PASSAGE))
    };
    open().map_err(failed(MAKING, path))
}

/// Writes a file that only `owner` can read, in the place of what was there.
pub(crate) fn write_file(path: &Path, text: &str, owner: SystemUser) -> Result<(), Error> {
    let name = path.file_name().expect("a file that is written has a name").to_string_lossy();
    let new = path.with_file_name(format!(".{name}.new"));
    let write = || {
        there(fs::remove_file(&new))?;
        let mut options = OpenOptions::new();
        let mut file = options.write(true).create_new(true).mode(0o600).open(&new)?;
        file.write_all(text.as_bytes())?;
        fs::rename(&new, path)
    };
    owner.access(write).map_err(failed("writing", path))
}

/// Opens a regular file of `owner`'s for reading.
pub(crate) fn open_file(path: &Path, owner: SystemUser) -> io::Result<File> {
    owner.access(|| regular_file::open(OpenOptions::new().read(true), path))
}

/// All of a file of `owner`'s. Texts that a server writes may be torn where it was killed.
pub(crate) fn read_file(path: &Path, owner: SystemUser) -> io::Result<String> {
    let mut bytes = Vec::new();
    open_file(path, owner)?.read_to_end(&mut bytes)?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

/// Removes a file of `owner`'s; one that is not there is no error.
pub(crate) fn remove_file(path: &Path, owner: SystemUser) -> Result<(), Error> {
    owner.access(|| there(fs::remove_file(path)).map(drop)).map_err(failed("removing", path))
}

/// Exchanges two directories of `owner`'s.
pub(crate) fn exchange(one: &Path, other: &Path, owner: SystemUser) -> Result<(), Error> {
    let aside = one.with_extension("exchanged");
    let moves = [(one, aside.as_path()), (other, one), (aside.as_path(), other)];
    owner
        .access(|| moves.iter().try_for_each(|(from, to)| fs::rename(from, to)))
        .map_err(failed("exchanging", one))
}

/// Removes a directory with all that is in it; one that is not there is no error. Links are removed
/// and never followed, the directory itself among them; its parent cannot be replaced by another
/// user.
pub(crate) fn remove_tree(path: &Path) -> Result<(), Error> {
    there(fs::remove_dir_all(path)).map(drop).map_err(failed("removing", path))
}

/// The first part of `path` that `user` may not enter or execute, judged by owner and mode.
pub(crate) fn closed_to(path: &Path, user: SystemUser) -> Option<PathBuf> {
    let mut parts: Vec<&Path> = path.ancestors().collect();
    parts.reverse();
    let is_closed = |part: &&Path| {
        part.metadata().is_ok_and(|file| {
            let bit = match () {
                () if file.uid() == user.uid => 0o100,
                () if file.gid() == user.gid => 0o010,
                () => 0o001,
            };
            file.mode() & bit == 0
        })
    };
    parts.into_iter().find(is_closed).map(Path::to_owned)
}

/// Names the step for an error of the file system.
pub(crate) fn failed(doing: &'static str, path: &Path) -> impl Fn(io::Error) -> Error {
    move |source| Error::File { doing, path: path.to_owned(), source }
}

/// Returns none for a file that does not exist.
fn there<T>(result: io::Result<T>) -> io::Result<Option<T>> {
    match result {
        Ok(value) => Ok(Some(value)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}

/// Mode of a directory on the way to a lab, regardless of the umask.
const PASSAGE: u32 = 0o711;

const MAKING: &str = "making the directory";
