//! The parts that a disk is made of: what has to be there, the image, its file system, and what a
//! cut finds in the kernel's memory.

use std::fs::{self, File};
use std::io;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use os::command::{ProcessCommand, ProcessOutput};
use os::init::Init;
use os::loop_device;
use os::proc_files;
use os::regular_file;
use os::user::SystemUser;
use rustix::fs::{OFlags, SeekFrom};
use rustix::io::Errno;
use terms::FileSystem;

use crate::disk::PowerCutMethod;
use crate::disk::error::{Error, FUSE, step};

/// Checks that this machine can have such a disk.
///
/// # Errors
/// What it lacks: [`Error::NotRoot`], [`Error::NoDevice`], [`Error::NoLoopDevice`],
/// [`Error::UnknownFileSystem`], [`Error::NoProgram`].
pub fn check(method: &PowerCutMethod) -> Result<(), Error> {
    if !SystemUser::current().is_root() {
        return Err(Error::NotRoot);
    }
    let mut devices = vec![loop_device::CONTROL];
    if method.is_block() {
        devices.push(FUSE);
    }
    for device in devices {
        let opened = File::options().read(true).write(true).open(device);
        opened.map_err(|source| Error::NoDevice { device, source })?;
    }
    loop_device::check_free().map_err(no_loop_device)?;
    check_file_system(FileSystem::Ext4)
}

/// Checks that this machine can make and mount such a file system.
pub fn check_file_system(kind: FileSystem) -> Result<(), Error> {
    // Without the list, only a module shows that the kernel knows it.
    let known = proc_files::read("filesystems").unwrap_or_default();
    // A module is loaded when it is mounted for the first time.
    let is_module = || {
        let release = rustix::system::uname().release().to_string_lossy().into_owned();
        Path::new("/lib/modules").join(release).join("kernel/fs").join(kind.name()).is_dir()
    };
    if !known.split_whitespace().any(|word| word == kind.name()) && !is_module() {
        return Err(Error::UnknownFileSystem { kind: kind.name() });
    }
    mkfs(kind).map(drop)
}

pub(crate) fn make_image(image: &Path, size_bytes: u64) -> Result<(), Error> {
    let directory = image.parent().unwrap_or(image);
    let _ = fs::remove_file(image);
    let space = rustix::fs::statvfs(directory);
    let space = space.map_err(|errno| step("looking at", directory)(errno.into()))?;
    let free_bytes = space.f_bavail * space.f_frsize;
    if free_bytes < size_bytes {
        let (directory, needs_bytes) = (directory.to_owned(), size_bytes);
        return Err(Error::NoSpace { directory, needs_bytes, free_bytes });
    }
    let make = || {
        let mut options = File::options();
        options.write(true).create_new(true).mode(0o600).open(image)?.set_len(size_bytes)
    };
    make().map_err(step("making", image))
}

/// Copies a file with its holes, by sharing its blocks where the file system can.
pub(crate) fn copy_sparse(source: &File, to: &Path) -> io::Result<()> {
    let _ = fs::remove_file(to);
    let target = File::options().write(true).create_new(true).mode(0o600).open(to)?;
    if rustix::fs::ioctl_ficlone(&target, source).is_ok() {
        return Ok(());
    }
    let size = source.metadata()?.len();
    target.set_len(size)?;
    let mut at = 0;
    while at < size {
        let start = match rustix::fs::seek(source, SeekFrom::Data(at)) {
            Ok(start) => start,
            // Nothing but a hole is left.
            Err(Errno::NXIO) => break,
            Err(error) => return Err(error.into()),
        };
        let end = rustix::fs::seek(source, SeekFrom::Hole(start))?;
        let (mut read_at, mut write_at) = (start, start);
        while read_at < end {
            let length = (end - read_at) as usize;
            let (from, to) = (Some(&mut read_at), Some(&mut write_at));
            if rustix::fs::copy_file_range(source, from, &target, to, length)? == 0 {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
        }
        at = end;
    }
    Ok(())
}

/// A file that nobody else can open, and that is gone with its descriptor.
pub(crate) fn nameless_file(directory: &Path) -> io::Result<File> {
    let flags = OFlags::TMPFILE.bits() as i32;
    File::options().read(true).write(true).custom_flags(flags).mode(0o600).open(directory)
}

/// Makes an empty file system whose root belongs to `owner`.
pub(crate) fn make_file_system(
    init: &Init,
    kind: FileSystem,
    image: &Path,
    directory: &Path,
    owner: SystemUser,
) -> Result<(), Error> {
    let (program, log) = (mkfs(kind)?, directory.join("mkfs.log"));
    let _ = fs::remove_file(&log);
    let SystemUser { uid, gid, .. } = owner;
    let options = match kind {
        // Nothing is written later in the background, in the middle of a window.
        FileSystem::Ext4 | FileSystem::Ext4Writeback => format!(
            "-q -F -b 4096 -m 0 -E lazy_itable_init=0,lazy_journal_init=0,root_owner={uid}:{gid}"
        ),
        FileSystem::Xfs | FileSystem::Btrfs => "-q -f".to_owned(),
    };
    let command = ProcessCommand::new(&program)
        .args(options.split(' '))
        .arg(image)
        .directory("/")
        .stdout(ProcessOutput::File(log.clone()))
        .stderr(ProcessOutput::File(log.clone()));
    let ended = init.spawn(&command).and_then(|pid| init.wait(pid, MKFS_TIMEOUT));
    let exit = ended.map_err(step("running", &program))?;
    if exit.is_success() {
        return Ok(());
    }
    // Without a log, the error names how the program ended alone.
    let said = fs::read_to_string(&log).unwrap_or_default();
    let said = format!("it {exit}: {}", said.trim());
    let program = program.display().to_string();
    Err(Error::Program { program, purpose: "make the file system", said })
}

/// The files below a directory that lie in the kernel's memory, in part at least, and not on the
/// disk. They may come and go meanwhile.
pub(crate) fn unwritten_files(root: &Path) -> io::Result<Vec<File>> {
    let mut found = Vec::new();
    walk(root, &mut |_, file| {
        if os::file_system::unwritten_bytes(&file)? > 0 {
            found.push(file);
        }
        Ok(())
    })?;
    Ok(found)
}

/// Opens every file below a directory. They may come and go meanwhile.
pub(crate) fn walk(
    root: &Path,
    see: &mut dyn FnMut(&Path, File) -> io::Result<()>,
) -> io::Result<()> {
    let mut pending = vec![root.to_owned()];
    while let Some(directory) = pending.pop() {
        let Some(entries) = there(fs::read_dir(&directory))? else { continue };
        for entry in entries {
            let Some(entry) = there(entry)? else { continue };
            let Some(kind) = there(entry.file_type())? else { continue };
            if kind.is_dir() {
                // That of mkfs is root's, and nothing is in it.
                if entry.file_name() != "lost+found" {
                    pending.push(entry.path());
                }
            } else if kind.is_file() {
                let Some(file) = there(open_file(&entry.path()))? else { continue };
                see(&entry.path(), file)?;
            }
        }
    }
    Ok(())
}

pub(crate) fn unwritten_bytes(files: &[File]) -> io::Result<u64> {
    files.iter().map(os::file_system::unwritten_bytes).sum()
}

pub(crate) fn no_loop_device(source: io::Error) -> Error {
    match source.kind() {
        io::ErrorKind::NotFound => Error::NoDevice { device: loop_device::CONTROL, source },
        _ => Error::NoLoopDevice { source },
    }
}

/// Why the file system of a disk with this image is not mounted. The kernel reports a damaged
/// superblock as EINVAL, a failed check as EUCLEAN or EBADMSG, and a damaged journal as EIO.
pub(crate) fn not_mounted(
    kind: FileSystem,
    device: &Path,
    image: &Path,
    source: io::Error,
) -> Error {
    match Errno::from_io_error(&source) {
        Some(Errno::NODEV) => Error::UnknownFileSystem { kind: kind.name() },
        Some(Errno::INVAL | Errno::UCLEAN | Errno::BADMSG | Errno::IO) => {
            Error::FileSystemLost { image: image.to_owned(), source }
        }
        _ => step("mounting", device)(source),
    }
}

fn open_file(path: &Path) -> io::Result<File> {
    regular_file::open(File::options().read(true), path)
}

/// Turns the error that a file is missing into `None`.
fn there<T>(result: io::Result<T>) -> io::Result<Option<T>> {
    match result {
        Ok(value) => Ok(Some(value)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}

fn mkfs(kind: FileSystem) -> Result<PathBuf, Error> {
    file_system_program(match kind {
        FileSystem::Ext4 | FileSystem::Ext4Writeback => "mkfs.ext4",
        FileSystem::Xfs => "mkfs.xfs",
        FileSystem::Btrfs => "mkfs.btrfs",
    })
}

/// A program of e2fsprogs or xfsprogs.
pub(crate) fn file_system_program(program: &'static str) -> Result<PathBuf, Error> {
    // Not in everybody's PATH.
    let folders = ["/usr/sbin", "/sbin", "/usr/bin", "/bin", "/usr/local/sbin"];
    let found = folders.iter().map(|folder| Path::new(folder).join(program));
    found.into_iter().find(|path| path.is_file()).ok_or(Error::NoProgram { program })
}

/// It takes a fraction of a second; a machine that is thrashing may need many times that.
const MKFS_TIMEOUT: Duration = Duration::from_secs(120);
