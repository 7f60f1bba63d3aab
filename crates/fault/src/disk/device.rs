//! The disk itself: a FUSE file system of one file, which a loop device makes a block device of.
//! It sees every write and every flush, and keeps what was not flushed in a [`Cache`].
//!
//! It runs in a process of its own, so that its CPU time is accounted apart and its death is the
//! disk's: a process that waits for it then gets an error and is not stuck. Its orders come over a
//! Unix socket, see [`super::orders`].

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, UNIX_EPOCH};

use fuser::{
    Errno, FileAttr, FileHandle, FileType, Filesystem, FopenFlags, Generation, INodeNo, LockOwner,
    OpenFlags, ReplyAttr, ReplyData, ReplyEmpty, ReplyEntry, ReplyOpen, ReplyWrite, Request,
    WriteFlags,
};

use crash::BLOCK_BYTES;

use crate::disk::cache::{Cache, CacheLoss};
use crate::disk::medium::DurableMedium;
use terms::RequestKind;

use crate::disk::orders::{DiskError, DiskStatus, Order, RequestFailure};
use crate::disk::recorder::RequestRecorder;
use crate::disk::serve::{BASE, FAILING};

/// The name of the one file.
pub(crate) const FILE: &str = "disk";

/// A disk with a volatile cache over an image, which is its medium.
#[derive(Debug, Clone)]
pub(crate) struct Device(Arc<Mutex<DeviceState>>);

#[derive(Debug)]
struct DeviceState {
    medium: DurableMedium,
    size_bytes: u64,
    sector_bytes: usize,
    /// True if it reports a flush without having done it.
    is_lying: bool,
    cache: Cache,
    power: Power,
    failing: Option<RequestFailure>,
    failing_some: Option<FailingSome>,
    /// The first request of a kind that takes longer, and by how much.
    slow: Option<(RequestKind, u64, Duration)>,
    /// The request at which its power is to be cut, and the seed.
    cut_at: Option<(RequestKind, u64, u64)>,
    counts: DiskStatus,
    /// Path of its log, and what keeps the log.
    log: PathBuf,
    recorder: Option<RequestRecorder>,
    /// The kernel's counts of requests that it has handed to the block device on this disk and that have not
    /// ended.
    queue: Option<File>,
}

/// Requests that fail while others are done.
#[derive(Debug)]
struct FailingSome {
    what: RequestKind,
    error: DiskError,
    /// How many more of them; none for all.
    left: Option<u64>,
    /// The last block of each run of blocks, by its first one; none for every block.
    blocks: Option<BTreeMap<u64, u64>>,
}

impl FailingSome {
    /// True if it is about a request of this kind and of any of these blocks, given as the first and the last
    /// of each run. A flush is about the blocks that it makes durable.
    fn hits(&self, what: RequestKind, mut about: impl Iterator<Item = (u64, u64)>) -> bool {
        let is_among = |blocks: &BTreeMap<u64, u64>| {
            about.any(|(first, last)| {
                blocks.range(..=last).next_back().is_some_and(|(_, end)| *end >= first)
            })
        };
        self.what == what && self.left != Some(0) && self.blocks.as_ref().is_none_or(is_among)
    }
}

/// The blocks of a request for some bytes, as a run.
fn blocks_of(offset: u64, length: u64) -> impl Iterator<Item = (u64, u64)> {
    std::iter::once((offset / BLOCK_BYTES, (offset + length.max(1) - 1) / BLOCK_BYTES))
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Power {
    On,
    Off,
}

impl Device {
    /// `log` is where its requests are kept when it is told to.
    pub(crate) fn new(
        medium: DurableMedium,
        sector_bytes: usize,
        is_lying: bool,
        log: PathBuf,
    ) -> io::Result<Self> {
        let state = DeviceState {
            size_bytes: medium.size_bytes()?,
            medium,
            sector_bytes,
            is_lying,
            cache: Cache::default(),
            power: Power::On,
            failing: None,
            failing_some: None,
            slow: None,
            cut_at: None,
            counts: DiskStatus::default(),
            log,
            recorder: None,
            queue: None,
        };
        Ok(Self(Arc::new(Mutex::new(state))))
    }

    pub(crate) fn open(path: &OsStr) -> io::Result<File> {
        OpenOptions::new().read(true).write(true).open(path)
    }

    /// Does what the rig says.
    pub(crate) fn obey(&self, order: Order) -> io::Result<DiskStatus> {
        let mut state = self.state();
        match order {
            Order::Status => {}
            Order::Sync => state.make_durable()?,
            Order::Cut { seed } => state.cut(seed)?,
            Order::CutAt { what, from, seed } => state.cut_at = Some((what, from, seed)),
            Order::Fail(failing) => state.failing = Some(failing),
            Order::Slow { what, from, delay_us } => {
                state.slow = Some((what, from, Duration::from_micros(delay_us)));
            }
            Order::FailSome { what, error, times, has_blocks } => {
                state.fail_some(what, error, times, has_blocks)?;
            }
            Order::Heal => state.heal(),
            Order::Record { max_bytes, copies_image } => state.record(max_bytes, copies_image)?,
            Order::Close => state.close(),
            Order::Load => state.load()?,
            Order::Attached { loop_device } => {
                let path = format!("/sys/block/loop{loop_device}/inflight");
                state.queue = File::open(path).ok();
            }
        }
        if let Some(recorder) = &state.recorder {
            state.counts.logged = recorder.bytes();
        }
        Ok(DiskStatus { pending: state.cache.bytes(), ..state.counts })
    }

    fn state(&self) -> MutexGuard<'_, DeviceState> {
        // The maps and counts are whole between any two statements.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn attributes(&self, inode: INodeNo) -> Option<FileAttr> {
        let (kind, perm, size) = match inode {
            INodeNo::ROOT => (FileType::Directory, 0o700, 0),
            INODE => (FileType::RegularFile, 0o600, self.state().size_bytes),
            _ => return None,
        };
        Some(FileAttr {
            ino: inode,
            size,
            blocks: size / 512,
            atime: UNIX_EPOCH,
            mtime: UNIX_EPOCH,
            ctime: UNIX_EPOCH,
            crtime: UNIX_EPOCH,
            kind,
            perm,
            nlink: 1,
            uid: rustix::process::geteuid().as_raw(),
            gid: rustix::process::getegid().as_raw(),
            rdev: 0,
            blksize: 4096,
            flags: 0,
        })
    }
}

impl DeviceState {
    fn read(&mut self, offset: u64, size: u32) -> io::Result<Vec<u8>> {
        self.expect_power()?;
        self.refuse(RequestKind::Read, blocks_of(offset, u64::from(size)))?;
        let left = self.size_bytes.saturating_sub(offset);
        let mut data = vec![0; u64::from(size).min(left) as usize];
        self.medium.read(&mut data, offset)?;
        self.cache.read_over(offset, &mut data);
        Ok(data)
    }

    fn write(&mut self, offset: u64, data: &[u8]) -> io::Result<()> {
        self.expect_power()?;
        self.counts.writes += 1;
        self.fail(RequestKind::Write, self.counts.writes)?;
        self.refuse(RequestKind::Write, blocks_of(offset, data.len() as u64))?;
        if offset + data.len() as u64 > self.size_bytes || !self.cache.write(offset, data) {
            return Err(io::ErrorKind::InvalidInput.into());
        }
        if let Some(recorder) = &mut self.recorder {
            recorder.write(offset, data);
        }
        Ok(())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.expect_power()?;
        self.counts.flushes += 1;
        self.fail(RequestKind::Flush, self.counts.flushes)?;
        let about: Vec<(u64, u64)> = match &self.failing_some {
            Some(FailingSome { what: RequestKind::Flush, blocks: Some(_), .. }) => {
                self.cache.blocks().map(|block| (block, block)).collect()
            }
            _ => Vec::new(),
        };
        self.refuse(RequestKind::Flush, about.into_iter())?;
        if let Some(recorder) = &mut self.recorder {
            recorder.flush_begins();
        }
        if !self.is_lying {
            self.make_durable()?;
        }
        if let Some(recorder) = &mut self.recorder {
            // A disk without a queue in the kernel has no writes under way there.
            recorder.flush_ends(self.queue.as_ref().map_or(0, writes_under_way));
        }
        Ok(())
    }

    /// The cut that the servers feel comes first: whatever they send from now on is refused.
    fn cut(&mut self, seed: u64) -> io::Result<()> {
        self.expect_power()?;
        self.power = Power::Off;
        let CacheLoss { pending, dropped, torn_blocks } = self.cache.cut(seed, self.sector_bytes);
        self.counts = DiskStatus { cached: pending, dropped, torn_blocks, off: 1, ..self.counts };
        self.make_durable()
    }

    fn make_durable(&mut self) -> io::Result<()> {
        for piece in self.cache.pieces() {
            self.medium.write(piece.data, piece.offset)?;
        }
        self.cache.clear();
        Ok(())
    }

    /// Keeps what is asked of it from now on, when all that was asked before is durable, and copied beside the
    /// log if that is wanted.
    fn record(&mut self, max_bytes: u64, copies_image: bool) -> io::Result<()> {
        self.expect_power()?;
        self.make_durable()?;
        if copies_image {
            self.medium.copy_to(&self.log.with_file_name(BASE))?;
        }
        let _ = std::fs::remove_file(&self.log);
        let file = File::options().write(true).create_new(true).mode(0o600).open(&self.log)?;
        self.recorder = Some(RequestRecorder::new(file, max_bytes));
        Ok(())
    }

    fn close(&mut self) {
        if let Some(recorder) = self.recorder.take() {
            let bytes = Arc::clone(&recorder.bytes);
            drop(recorder);
            self.counts.logged = bytes.load(std::sync::atomic::Ordering::Relaxed);
        }
    }

    /// Is switched on anew with another state.
    fn load(&mut self) -> io::Result<()> {
        self.close();
        (self.cache, self.counts) = (Cache::default(), DiskStatus::default());
        (self.power, self.cut_at) = (Power::On, None);
        self.heal();
        self.medium.load()
    }

    fn heal(&mut self) {
        (self.failing, self.failing_some, self.slow) = (None, None, None);
    }

    fn fail_some(
        &mut self,
        what: RequestKind,
        error: DiskError,
        times: u64,
        has_blocks: bool,
    ) -> io::Result<()> {
        let left = (times > 0).then_some(times);
        let read = || {
            let text = std::fs::read_to_string(self.log.with_file_name(FAILING))?;
            let malformed = || io::Error::from(io::ErrorKind::InvalidData);
            let runs = text.lines().map(|line| {
                let (first, last) = line.split_once(' ').ok_or_else(malformed)?;
                let number = |word: &str| word.parse().map_err(|_| malformed());
                Ok((number(first)?, number(last)?))
            });
            runs.collect::<io::Result<BTreeMap<u64, u64>>>()
        };
        let blocks = if has_blocks { Some(read()?) } else { None };
        self.failing_some = Some(FailingSome { what, error, left, blocks });
        Ok(())
    }

    fn refuse(
        &mut self,
        what: RequestKind,
        about: impl Iterator<Item = (u64, u64)>,
    ) -> io::Result<()> {
        match &mut self.failing_some {
            Some(failing) if failing.hits(what, about) => {
                failing.left = failing.left.map(|left| left - 1);
                self.counts.failed += 1;
                Err(failing.error.errno().into())
            }
            _ => Ok(()),
        }
    }

    fn expect_power(&self) -> io::Result<()> {
        match self.power {
            Power::On => Ok(()),
            Power::Off => Err(rustix::io::Errno::IO.into()),
        }
    }

    fn fail(&mut self, what: RequestKind, number: u64) -> io::Result<()> {
        if let Some((at, from, seed)) = self.cut_at
            && (at, true) == (what, number >= from)
        {
            self.cut(seed)?;
            return self.expect_power();
        }
        match self.failing {
            Some(failing) if failing.what == what && number >= failing.from => {
                Err(failing.error.errno().into())
            }
            _ => Ok(()),
        }
    }
}

impl Device {
    /// Waits as long as a slow disk does before the next request of that kind. It serves one request at a
    /// time, so that what comes meanwhile waits as well; orders do not.
    fn take_time(&self, what: RequestKind) {
        let delay = {
            let state = self.state();
            let next = 1 + match what {
                RequestKind::Write => state.counts.writes,
                RequestKind::Flush => state.counts.flushes,
                RequestKind::Read => return,
            };
            let is_slow = |slow: &(RequestKind, u64, Duration)| slow.0 == what && next >= slow.1;
            state.slow.filter(is_slow).map(|(.., delay)| delay)
        };
        delay.into_iter().for_each(std::thread::sleep);
    }
}

impl Filesystem for Device {
    fn lookup(&self, _: &Request, parent: INodeNo, name: &OsStr, reply: ReplyEntry) {
        match self.attributes(INODE) {
            Some(attributes) if parent == INodeNo::ROOT && name == FILE => {
                reply.entry(&FOREVER, &attributes, Generation(0));
            }
            _ => reply.error(Errno::ENOENT),
        }
    }

    fn getattr(&self, _: &Request, inode: INodeNo, _: Option<FileHandle>, reply: ReplyAttr) {
        match self.attributes(inode) {
            Some(attributes) => reply.attr(&FOREVER, &attributes),
            None => reply.error(Errno::ENOENT),
        }
    }

    fn open(&self, _: &Request, _: INodeNo, _: OpenFlags, reply: ReplyOpen) {
        // The file system on the disk has a page cache of its own; one below it would hide writes.
        reply.opened(FileHandle(0), FopenFlags::FOPEN_DIRECT_IO);
    }

    fn read(
        &self,
        _: &Request,
        _: INodeNo,
        _: FileHandle,
        offset: u64,
        size: u32,
        _: OpenFlags,
        _: Option<LockOwner>,
        reply: ReplyData,
    ) {
        match self.state().read(offset, size) {
            Ok(data) => reply.data(&data),
            Err(error) => reply.error(Errno::from(error)),
        }
    }

    fn write(
        &self,
        _: &Request,
        _: INodeNo,
        _: FileHandle,
        offset: u64,
        data: &[u8],
        _: WriteFlags,
        _: OpenFlags,
        _: Option<LockOwner>,
        reply: ReplyWrite,
    ) {
        self.take_time(RequestKind::Write);
        match self.state().write(offset, data) {
            Ok(()) => reply.written(data.len() as u32),
            Err(error) => reply.error(Errno::from(error)),
        }
    }

    /// Handles a flush by the loop device.
    fn fsync(&self, _: &Request, _: INodeNo, _: FileHandle, _: bool, reply: ReplyEmpty) {
        self.take_time(RequestKind::Flush);
        match self.state().flush() {
            Ok(()) => reply.ok(),
            Err(error) => reply.error(Errno::from(error)),
        }
    }

    /// A close, which makes nothing durable.
    fn flush(&self, _: &Request, _: INodeNo, _: FileHandle, _: LockOwner, reply: ReplyEmpty) {
        reply.ok();
    }
}

/// The writes that the kernel has handed to a block device and that have not ended: reads and writes are two
/// numbers in the file. Flushes are not numbered.
fn writes_under_way(queue: &File) -> u64 {
    let mut text = [0; 64];
    let length = queue.read_at(&mut text, 0).ok();
    let words = length.and_then(|length| std::str::from_utf8(&text[..length]).ok());
    let writes = words.and_then(|words| words.split_whitespace().nth(1)?.parse().ok());
    // A kernel that does not say it leaves the log without writes during a flush.
    writes.unwrap_or(0)
}

const INODE: INodeNo = INodeNo(2);

/// Neither the name nor the size ever changes.
const FOREVER: Duration = Duration::from_secs(1 << 30);

#[cfg(test)]
mod tests;
