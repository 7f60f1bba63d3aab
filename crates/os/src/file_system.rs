//! Functions of the kernel's file systems that a power cut needs.

use std::io;
use std::os::fd::{AsFd, AsRawFd};
use std::path::Path;

use crate::namespaces;

/// Stops the file system that `file` is on, as a machine stops whose power fails: nothing that
/// waits in memory is written any more, the journal's last transaction included, and every access
/// from now on fails with EIO until the file system is mounted anew.
///
/// # Errors
/// `PermissionDenied` without root's rights; ENOTTY on file systems other than ext4, xfs and f2fs.
pub fn shut_down(file: impl AsFd) -> io::Result<()> {
    // SAFETY: the request reads one u32.
    let done = unsafe { libc::ioctl(file.as_fd().as_raw_fd(), SHUTDOWN, &raw const NO_LOG_FLUSH) };
    match done {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

/// Gives this process, which has one thread, mounts of its own, without those that are below
/// `directory`.
///
/// # Errors
/// `PermissionDenied` without root's rights; the system's.
pub fn leave_mounts_below(directory: &Path) -> io::Result<()> {
    namespaces::copy_mounts()?;
    namespaces::unmount_below(directory)
}

/// Number of bytes of a file that lie in memory only: its pages that are dirty, or being written.
///
/// # Errors
/// `Unsupported` before Linux 6.5 (cachestat).
pub fn unwritten_bytes(file: impl AsFd) -> io::Result<u64> {
    let range = CacheStatRange { offset: 0, length: 0 };
    let mut pages = CacheStat::default();
    // SAFETY: cachestat reads the range and writes the statistics, which are laid out as the
    // kernel's; both live until it returns.
    let done = unsafe {
        libc::syscall(CACHESTAT, file.as_fd().as_raw_fd(), &raw const range, &raw mut pages, 0)
    };
    if done != 0 {
        let error = io::Error::last_os_error();
        return Err(match error.raw_os_error() {
            Some(libc::ENOSYS) => io::ErrorKind::Unsupported.into(),
            _ => error,
        });
    }
    let page_bytes = rustix::param::page_size() as u64;
    Ok((pages.dirty + pages.written_back) * page_bytes)
}

/// `struct cachestat_range` of linux/mman.h; a length of zero is the file's end.
#[repr(C)]
struct CacheStatRange {
    offset: u64,
    length: u64,
}

/// `struct cachestat` of linux/mman.h, in pages.
#[repr(C)]
#[derive(Default)]
struct CacheStat {
    cached: u64,
    dirty: u64,
    written_back: u64,
    evicted: u64,
    recently_evicted: u64,
}

/// `EXT4_IOC_SHUTDOWN`, `XFS_IOC_GOINGDOWN` and `F2FS_IOC_SHUTDOWN` are one number.
const SHUTDOWN: libc::Ioctl = libc::_IOR::<u32>(b'X' as u32, 125);

/// `EXT4_GOING_FLAGS_NOLOGFLUSH`
static NO_LOG_FLUSH: u32 = 2;

/// `cachestat`'s number, the same on every architecture that Rust supports.
const CACHESTAT: libc::c_long = 451;
