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
pub fn leave_mounts_below(directory: &Path) -> io::Result<()> {
    namespaces::copy_mounts()?;
    namespaces::unmount_below(directory)
}

/// Number of bytes of a file that lie in memory only: its pages that are dirty, or being written.
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

/// A run of bytes of a file, and where it lies on the device of its file system.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MappedExtent {
    /// The first byte in the file.
    pub logical: u64,
    /// The first byte on the device.
    pub physical: u64,
    /// The length in bytes.
    pub length: u64,
}

/// The places of a file's bytes on the device of its file system. Bytes that wait in memory are written
/// before.
///
/// # Errors
/// ENOTTY on file systems that do not tell.
pub fn extents(file: impl AsFd) -> io::Result<Vec<MappedExtent>> {
    let mut all = Vec::new();
    let mut start = 0;
    loop {
        // `struct fiemap` of linux/fiemap.h with its extents, in words of 64 bits.
        let mut map = [0_u64; FIEMAP_WORDS + EXTENTS_MAX * EXTENT_WORDS];
        map[0] = start;
        map[1] = u64::MAX - start;
        map[2] = u64::from(FIEMAP_FLAG_SYNC);
        map[3] = EXTENTS_MAX as u64;
        // SAFETY: the request reads the header and writes the header and at most EXTENTS_MAX extents
        // behind it, for which `map` has room.
        let done = unsafe {
            libc::ioctl(file.as_fd().as_raw_fd(), FIEMAP, map.as_mut_ptr().cast::<libc::c_void>())
        };
        if done != 0 {
            return Err(io::Error::last_os_error());
        }
        let found = (map[2] >> 32) as usize;
        let extents = map[FIEMAP_WORDS..].chunks_exact(EXTENT_WORDS).take(found);
        let mut is_last = found == 0;
        for extent in extents {
            let [logical, physical, length, _, _, flags, _] = *extent else { continue };
            is_last |= flags & EXTENT_LAST != 0;
            start = logical + length;
            if flags & EXTENT_NOWHERE == 0 {
                all.push(MappedExtent { logical, physical, length });
            }
        }
        if is_last {
            return Ok(all);
        }
    }
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

/// `FS_IOC_FIEMAP`: the header of `struct fiemap` is 32 bytes long.
const FIEMAP: libc::Ioctl = libc::_IOWR::<[u64; FIEMAP_WORDS]>(b'f' as u32, 11);
const FIEMAP_WORDS: usize = 4;
/// `struct fiemap_extent`: its sixth word holds the flags in its lower half.
const EXTENT_WORDS: usize = 7;
const EXTENTS_MAX: usize = 128;
const FIEMAP_FLAG_SYNC: u32 = 1;
const EXTENT_LAST: u64 = 1;
/// `FIEMAP_EXTENT_UNKNOWN`, `_DELALLOC` and `_DATA_INLINE`: it has no place of its own.
const EXTENT_NOWHERE: u64 = 0x2 | 0x4 | 0x200;

/// `EXT4_GOING_FLAGS_NOLOGFLUSH`
static NO_LOG_FLUSH: u32 = 2;

/// `cachestat`'s number, the same on every architecture that Rust supports.
const CACHESTAT: libc::c_long = 451;
