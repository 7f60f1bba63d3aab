//! A folder that somebody else may have made. Only regular files inside it are read: no name leads
//! out of it, nothing that waits for a writer is opened, and nothing is read that no memory holds.

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::{self, BufReader, Read};
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt;
use std::path::{Component, Path, PathBuf};

use rustix::fs::{self, AtFlags, FileType, Mode, OFlags};

use crate::error::{Error, io as io_error};

/// A directory, opened: its content is reached through the descriptor, whatever becomes of its name.
#[derive(Debug)]
pub(crate) struct Inside {
    directory: OwnedFd,
    path: PathBuf,
}

/// Something in a directory.
#[derive(Debug)]
pub(crate) struct Entry {
    /// The name, which is UTF-8 or is not read.
    pub(crate) name: OsString,
    pub(crate) kind: FileType,
    /// Permissions, as `stat` gives them.
    pub(crate) mode: u32,
    pub(crate) bytes: u64,
}

impl Inside {
    /// Opens the directory that the user named. Links in this name are the user's and are followed.
    pub(crate) fn open(path: &Path) -> Result<Inside, Error> {
        let directory = fs::open(path, DIRECTORY, Mode::empty())
            .map_err(|error| io_error("reading", path)(error.into()))?;
        Ok(Inside { directory, path: path.to_owned() })
    }

    /// Opens a directory in this one.
    pub(crate) fn directory(&self, name: impl AsRef<OsStr>) -> Result<Inside, Error> {
        let name = name.as_ref();
        let path = self.expect(name, FileType::Directory)?.0;
        let flags = DIRECTORY | OFlags::NOFOLLOW;
        let directory = fs::openat(&self.directory, name, flags, Mode::empty())
            .map_err(|error| io_error("reading", &path)(error.into()))?;
        Ok(Inside { directory, path })
    }

    /// Opens a regular file in this directory, of at most so many bytes.
    pub(crate) fn file(&self, name: impl AsRef<OsStr>, bytes_max: u64) -> Result<Source, Error> {
        let name = name.as_ref();
        let (path, entry) = self.expect(name, FileType::RegularFile)?;
        if entry.bytes > bytes_max {
            return Err(Error::TooLarge { path, what: "bytes", max: bytes_max });
        }
        // Another file may have taken its name since: such a one is not waited for, and is refused.
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
        let opened = fs::openat(&self.directory, name, flags, Mode::empty());
        let file = opened.map_err(|error| io_error("reading", &path)(error.into()))?;
        let stat = fs::fstat(&file).map_err(|error| io_error("reading", &path)(error.into()))?;
        refuse_unless(FileType::RegularFile, FileType::from_raw_mode(stat.st_mode), &path)?;
        Ok(Source { file: File::from(file).take(bytes_max), path })
    }

    /// Reads a file as text.
    pub(crate) fn text(&self, name: impl AsRef<OsStr>, bytes_max: u64) -> Result<String, Error> {
        let mut source = self.file(name, bytes_max)?;
        let mut text = String::new();
        let read = source.file.read_to_string(&mut text);
        read.map_err(io_error("reading", &source.path))?;
        Ok(text)
    }

    /// Reads a file's bytes.
    pub(crate) fn bytes(&self, name: impl AsRef<OsStr>, bytes_max: u64) -> Result<Vec<u8>, Error> {
        let mut source = self.file(name, bytes_max)?;
        let mut bytes = Vec::new();
        source.file.read_to_end(&mut bytes).map_err(io_error("reading", &source.path))?;
        Ok(bytes)
    }

    /// True if the folder has an entry of this name, of any kind.
    pub(crate) fn has(&self, name: &str) -> bool {
        fs::statat(&self.directory, name, AtFlags::SYMLINK_NOFOLLOW).is_ok()
    }

    /// Everything in the directory, in the order of names.
    pub(crate) fn entries(&self) -> Result<Vec<Entry>, Error> {
        let failed = |error: rustix::io::Errno| io_error("reading", &self.path)(error.into());
        let mut entries = Vec::new();
        for entry in fs::Dir::read_from(&self.directory).map_err(failed)? {
            let name = OsStr::from_bytes(entry.map_err(failed)?.file_name().to_bytes()).to_owned();
            if name == "." || name == ".." {
                continue;
            }
            if entries.len() == ENTRIES_MAX {
                let (path, max) = (self.path.clone(), ENTRIES_MAX as u64);
                return Err(Error::TooLarge { path, what: "files", max });
            }
            entries.extend(self.look(&name).map_err(failed)?);
        }
        entries.sort_by(|one: &Entry, other| one.name.cmp(&other.name));
        Ok(entries)
    }

    /// Its own path, for messages.
    pub(crate) fn own_path(&self) -> PathBuf {
        self.path.clone()
    }

    /// The path of something in it, for messages.
    pub(crate) fn path(&self, name: impl AsRef<Path>) -> PathBuf {
        self.path.join(name)
    }

    /// Permissions of the directory itself.
    pub(crate) fn mode(&self) -> Result<u32, Error> {
        let stat = fs::fstat(&self.directory);
        Ok(stat.map_err(|error| io_error("reading", &self.path)(error.into()))?.st_mode)
    }

    /// The entry of this name; none if it was removed.
    fn look(&self, name: &OsStr) -> rustix::io::Result<Option<Entry>> {
        match fs::statat(&self.directory, name, AtFlags::SYMLINK_NOFOLLOW) {
            Ok(stat) => Ok(Some(Entry {
                name: name.to_owned(),
                kind: FileType::from_raw_mode(stat.st_mode),
                mode: stat.st_mode,
                bytes: stat.st_size.cast_unsigned(),
            })),
            Err(rustix::io::Errno::NOENT) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// The path of what has this name, which must be of this kind and in this directory.
    fn expect(&self, name: &OsStr, kind: FileType) -> Result<(PathBuf, Entry), Error> {
        let path = self.path.join(name);
        if !is_plain(name) {
            return Err(Error::Outside { path });
        }
        let found = self.look(name);
        let found = found.map_err(|error| io_error("reading", &path)(error.into()))?;
        let Some(entry) = found else {
            return Err(io_error("reading", &path)(io::ErrorKind::NotFound.into()));
        };
        refuse_unless(kind, entry.kind, &path)?;
        Ok((path, entry))
    }
}

/// An open file, which ends where its limit does.
#[derive(Debug)]
pub(crate) struct Source {
    file: io::Take<File>,
    pub(crate) path: PathBuf,
}

impl Source {
    /// The bytes.
    pub(crate) fn bytes(self) -> impl Read + use<> {
        self.file
    }

    /// The content, read in pieces and by lines.
    pub(crate) fn lines(self) -> BufReader<impl Read> {
        BufReader::new(Lines { file: self.file, length: 0 })
    }
}

/// A file of lines, none of which fills the memory.
struct Lines {
    file: io::Take<File>,
    /// Bytes since the last line ended.
    length: usize,
}

impl Read for Lines {
    fn read(&mut self, to: &mut [u8]) -> io::Result<usize> {
        let count = self.file.read(to)?;
        self.length = match to[..count].iter().rposition(|byte| *byte == b'\n') {
            Some(end) => count - end - 1,
            None => self.length + count,
        };
        match self.length > LINE_BYTES_MAX {
            true => Err(io::Error::other(format!("a line has more than {LINE_BYTES_MAX} bytes"))),
            false => Ok(count),
        }
    }
}

/// Three full histograms have a tenth of this.
const LINE_BYTES_MAX: usize = 4 << 20;

/// Refuses what is not of the kind that is read here.
pub(crate) fn refuse_unless(wanted: FileType, found: FileType, path: &Path) -> Result<(), Error> {
    if wanted == found {
        return Ok(());
    }
    let found = match found {
        FileType::Symlink => "a symbolic link",
        FileType::Fifo => "a FIFO",
        FileType::Socket => "a socket",
        FileType::CharacterDevice | FileType::BlockDevice => "a device",
        FileType::Directory => "a directory",
        FileType::RegularFile => "a file",
        FileType::Unknown => "something unknown",
    };
    let wanted = if wanted == FileType::Directory { "a directory" } else { "a regular file" };
    Err(Error::NotInside { path: path.to_owned(), found, wanted })
}

/// True if a name is one of an entry in a directory: not `..`, not a path.
pub(crate) fn is_plain(name: &OsStr) -> bool {
    let mut parts = Path::new(name).components();
    matches!((parts.next(), parts.next()), (Some(Component::Normal(part)), None) if part == name)
}

const DIRECTORY: OFlags = OFlags::RDONLY.union(OFlags::DIRECTORY).union(OFlags::CLOEXEC);

/// A directory that holds more was made by no run.
const ENTRIES_MAX: usize = 100_000;
