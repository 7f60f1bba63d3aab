//! The state directory. It belongs to the guard's user, and nobody else writes there: the files of a
//! guard that runs as root must not become a way to other files.
//!
//! The directory is opened and checked once. Every file is opened below that descriptor, never
//! through a link, and only a regular file is read or written.

use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::{Path, PathBuf};

use rustix::fs::{AtFlags, Mode, OFlags};
use rustix::io::Errno;

use crate::error::{Error, file};

/// A directory with the files of a guard.
#[derive(Debug)]
pub(crate) struct Directory {
    pub(crate) path: PathBuf,
    opened: File,
    /// Held until the process ends; not of a directory that is only looked at.
    _lock: Option<File>,
}

impl Directory {
    /// Makes it if need be, for this user only, and locks it until the process ends.
    pub(crate) fn open(path: &Path) -> Result<Self, Error> {
        fs::DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(path)
            .map_err(file("making the state directory", path))?;
        let mut directory = Self::look(path)?;
        check(path, &directory.opened)?;
        let lock = directory
            .file(LOCK, OFlags::RDWR | OFlags::CREATE)
            .map_err(file("opening", &path.join(LOCK)))?;
        match lock.try_lock() {
            Ok(()) => directory._lock = Some(lock),
            Err(fs::TryLockError::WouldBlock) => {
                return Err(Error::StateInUse { path: path.to_owned() });
            }
            Err(fs::TryLockError::Error(error)) => return Err(file("locking", path)(error)),
        }
        Ok(directory)
    }

    /// The name of its guards, made by the first one.
    pub(crate) fn id(&self) -> Result<String, Error> {
        let known = self.read(ID)?.map(|text| text.trim().to_owned());
        if let Some(id) = known.filter(|id| is_id(id)) {
            return Ok(id);
        }
        let make = || {
            let mut bytes = [0; 8];
            rustix::rand::getrandom(&mut bytes, rustix::rand::GetRandomFlags::empty())?;
            let id = format!("{:016x}", u64::from_le_bytes(bytes));
            self.replace(ID, format!("{id}\n").as_bytes())?;
            Ok(id)
        };
        make().map_err(file("writing", &self.path.join(ID)))
    }

    /// Opens it to read what is there.
    pub(crate) fn look(path: &Path) -> Result<Self, Error> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let opened = rustix::fs::open(path, flags, Mode::empty());
        let opened = opened.map_err(|errno| file("opening", path)(errno.into()))?;
        Ok(Self { path: path.to_owned(), opened: opened.into(), _lock: None })
    }

    /// Opens it to read what is there, if it is there itself.
    pub(crate) fn there(path: &Path) -> Result<Option<Self>, Error> {
        match Self::look(path) {
            Err(Error::File { source, .. }) if source.kind() == io::ErrorKind::NotFound => Ok(None),
            looked => looked.map(Some),
        }
    }

    /// The text of a file; none where there is no such file. A line may be torn inside a character.
    pub(crate) fn read(&self, name: &str) -> Result<Option<String>, Error> {
        let read = || -> io::Result<String> {
            let mut text = Vec::new();
            self.file(name, OFlags::RDONLY)?.read_to_end(&mut text)?;
            Ok(String::from_utf8_lossy(&text).into_owned())
        };
        match read() {
            Ok(text) => Ok(Some(text)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(file("reading", &self.path.join(name))(error)),
        }
    }

    /// A file to be read and appended to. Its name is on the disk.
    pub(crate) fn append(&self, name: &str) -> io::Result<File> {
        let file = self.file(name, OFlags::RDWR | OFlags::CREATE | OFlags::APPEND)?;
        self.opened.sync_all()?;
        Ok(file)
    }

    /// Replaces a file whole: a reader sees the old text or the new one.
    pub(crate) fn replace(&self, name: &str, text: &[u8]) -> io::Result<()> {
        let new = format!("{name}.new");
        match rustix::fs::unlinkat(&self.opened, &new, AtFlags::empty()) {
            Ok(()) | Err(Errno::NOENT) => {}
            Err(errno) => return Err(errno.into()),
        }
        let mut file = self.file(&new, OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL)?;
        file.write_all(text)?;
        file.sync_all()?;
        rustix::fs::renameat(&self.opened, &new, &self.opened, name)?;
        Ok(())
    }

    /// Opens a regular file of the directory's own. A pipe would otherwise be waited for.
    fn file(&self, name: &str, flags: OFlags) -> io::Result<File> {
        let flags = flags | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
        let opened = rustix::fs::openat(&self.opened, name, flags, Mode::RUSR | Mode::WUSR);
        let file: File = match opened {
            Ok(file) => file.into(),
            Err(Errno::LOOP) => return Err(io::Error::other("it is a symbolic link")),
            Err(errno) => return Err(errno.into()),
        };
        let metadata = file.metadata()?;
        match metadata.is_file() && metadata.nlink() <= 1 {
            true => Ok(file),
            false => Err(io::Error::other("it is not a regular file with one name")),
        }
    }
}

/// Refuses a directory that another user owns or can write to, and a link of another user's to one.
fn check(path: &Path, opened: &File) -> Result<(), Error> {
    let failed = || file("looking at the state directory", path);
    let own = rustix::process::geteuid().as_raw();
    let refused = |why: String| Err(Error::NotPrivate { path: path.to_owned(), why });
    let named = path.symlink_metadata().map_err(failed())?;
    if named.is_symlink() && ![own, 0].contains(&named.uid()) {
        return refused(format!("is a link of user {}", named.uid()));
    }
    let metadata = opened.metadata().map_err(failed())?;
    if metadata.uid() != own {
        return refused(format!("belongs to user {}, and the guard runs as {own}", metadata.uid()));
    }
    match metadata.mode() & 0o022 {
        0 => Ok(()),
        _ => refused(format!("has mode {:o}", metadata.mode() & 0o7777)),
    }
}

fn is_id(text: &str) -> bool {
    text.len() == 16 && text.bytes().all(|byte| byte.is_ascii_hexdigit())
}

const LOCK: &str = "lock";
const ID: &str = "id";

#[cfg(test)]
mod tests {
    use std::os::unix::fs::{PermissionsExt, symlink};

    use super::*;

    fn private() -> tempfile::TempDir {
        let directory = tempfile::tempdir().unwrap();
        fs::set_permissions(directory.path(), fs::Permissions::from_mode(0o700)).unwrap();
        directory
    }

    #[test]
    fn no_file_is_opened_through_a_link() {
        let make: [fn(&Path, &Path) -> io::Result<()>; 2] =
            [|victim, link| symlink(victim, link), |victim, link| fs::hard_link(victim, link)];
        for (name, make) in [LOCK, "books", "state", "state.new"]
            .iter()
            .flat_map(|name| make.map(|one| (*name, one)))
        {
            let place = private();
            let (victim, path) = (place.path().join("victim"), place.path().join("state"));
            fs::write(&victim, "precious").unwrap();
            fs::create_dir(&path).unwrap();
            fs::set_permissions(&path, fs::Permissions::from_mode(0o700)).unwrap();
            make(&victim, &path.join(name)).unwrap();
            if let Ok(directory) = Directory::open(&path) {
                assert!(name != LOCK, "the lock is a link");
                let _ = directory.append("books").map(|mut file| file.write_all(b"x"));
                assert_eq!(directory.read("books").is_err(), name == "books");
                directory.replace("state", b"new").unwrap();
                assert_eq!(directory.read("state").unwrap().as_deref(), Some("new"));
            }
            assert_eq!(fs::read_to_string(&victim).unwrap(), "precious", "{name}");
        }
    }

    #[test]
    fn a_directory_that_is_not_there_is_empty() {
        let place = private();
        assert!(Directory::there(&place.path().join("none")).unwrap().is_none());
        assert!(Directory::there(place.path()).unwrap().is_some());
    }

    #[test]
    fn a_pipe_is_not_waited_for() {
        let place = private();
        let path = place.path().join("books");
        rustix::fs::mknodat(
            rustix::fs::CWD,
            &path,
            rustix::fs::FileType::Fifo,
            Mode::RUSR | Mode::WUSR,
            0,
        )
        .unwrap();
        let directory = Directory::open(place.path()).unwrap();
        let error = directory.read("books").unwrap_err();
        assert!(error.to_string().contains("not a regular file"), "{error}");
    }

    #[test]
    fn only_a_directory_of_ones_own_is_taken() {
        let check = |mode: u32, expected: Option<&str>| {
            let place = private();
            fs::set_permissions(place.path(), fs::Permissions::from_mode(mode)).unwrap();
            let opened = Directory::open(place.path());
            let text = opened.err().map(|error| error.to_string());
            assert_eq!(text.is_some(), expected.is_some(), "{mode:o}: {text:?}");
            if let (Some(text), Some(expected)) = (text, expected) {
                assert!(text.contains(expected), "{text}");
            }
            assert_eq!(place.path().join(LOCK).exists(), expected.is_none());
        };
        check(0o700, None);
        check(0o755, None);
        check(0o770, Some("has mode 770"));
        check(0o1777, Some("has mode 1777"));
    }

    #[test]
    fn a_directory_keeps_the_name_of_its_guards() {
        let place = private();
        let id = || Directory::open(place.path()).unwrap().id().unwrap();
        let first = id();
        assert!(is_id(&first) && id() == first);
        fs::write(place.path().join(ID), "torn").unwrap();
        assert_ne!(id(), first);
    }

    #[test]
    fn two_guards_do_not_share_one() {
        let place = private();
        let _first = Directory::open(place.path()).unwrap();
        assert!(matches!(Directory::open(place.path()), Err(Error::StateInUse { .. })));
    }
}
