//! The requests to a disk since its log began.

use std::ops::Range;

/// Smallest unit that a disk writes whole or not at all, in bytes.
pub const SECTOR_BYTES: u64 = 512;

/// Smallest unit that a file system usually writes, in bytes.
pub const BLOCK_BYTES: u64 = 4096;

/// Sectors of a block.
pub(crate) const SECTORS: usize = (BLOCK_BYTES / SECTOR_BYTES) as usize;

/// Blocks from the first one of a disk to the first one of the next, where a log has the requests of
/// several.
pub const DISK_BLOCKS: u64 = 1 << 36;

/// Disks that a log can have the requests of: that of the data, that of the WAL and that of the tablespaces.
pub const DISKS_MAX: usize = 3;

/// The requests of one disk, or of several that lose their power in one moment, in the order in which
/// they were taken.
#[derive(Debug, Default, PartialEq)]
pub struct DiskLog {
    /// The requests.
    pub entries: Vec<LoggedRequest>,
    /// Each different content of a piece, once.
    pub contents: Vec<WrittenContent>,
    /// The first request before which a cut can come: the log of every disk had begun.
    pub first_cut: usize,
    /// The number of disks.
    pub disks: usize,
    /// Bytes of the file of contents.
    pub(crate) contents_bytes: u64,
}

/// One request.
#[derive(Debug, Clone, PartialEq)]
pub struct LoggedRequest {
    /// Time of its arrival, in nanoseconds of the machine's monotonic clock.
    pub at_ns: u64,
    /// The number of the disk. Its blocks are counted from [`DISK_BLOCKS`] times that.
    pub disk: u8,
    /// The operation.
    pub what: RequestOperation,
}

/// The operation that a request asks for.
#[derive(Debug, Clone, PartialEq)]
pub enum RequestOperation {
    /// A write, by pieces of one block each.
    Write(Vec<BlockPiece>),
    /// A flush of all that was written before, of a log that does not tell its two ends apart.
    Flush,
    /// A flush begins: what the disk has taken before is durable when it ends.
    FlushBegins,
    /// The flush that began last on that disk ends. What was taken meanwhile may be durable or not.
    FlushEnds,
}

/// The part of a write that lies in one block.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BlockPiece {
    /// The number of the block.
    pub block: u64,
    /// The first sector in the block.
    pub first: u8,
    /// The sectors.
    pub sectors: u8,
    /// The number of its content in the log.
    pub content: u32,
}

/// Written content, kept once however often it was written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WrittenContent {
    /// Position of its beginning in the file of contents.
    pub position: u64,
    /// The first bytes, by which pages are recognised.
    pub head: [u8; 16],
    /// A hash of each of its sectors.
    pub sums: [u64; SECTORS],
}

impl LoggedRequest {
    /// The pieces of a write; none of a flush.
    pub fn pieces(&self) -> &[BlockPiece] {
        match &self.what {
            RequestOperation::Write(pieces) => pieces,
            RequestOperation::Flush
            | RequestOperation::FlushBegins
            | RequestOperation::FlushEnds => &[],
        }
    }

    /// True if the disk has made something durable with it.
    pub fn is_flush_end(&self) -> bool {
        matches!(self.what, RequestOperation::Flush | RequestOperation::FlushEnds)
    }

    /// True if it is a flush, or one end of it.
    pub fn is_flush(&self) -> bool {
        !matches!(self.what, RequestOperation::Write(_))
    }

    /// The sectors that it writes.
    pub fn sectors(&self) -> u32 {
        self.pieces().iter().map(|piece| u32::from(piece.sectors)).sum()
    }
}

impl DiskLog {
    /// Adds the requests of another disk of the same machine, which came in between.
    pub(crate) fn merge(&mut self, other: DiskLog) {
        let (disk, contents) = (self.disks as u8, self.contents.len() as u32);
        let moved = other.contents.into_iter();
        self.contents.extend(moved.map(|content| WrittenContent {
            position: content.position + self.contents_bytes,
            ..content
        }));
        self.contents_bytes += other.contents_bytes;
        self.entries.extend(other.entries.into_iter().map(|mut entry| {
            if let RequestOperation::Write(pieces) = &mut entry.what {
                for piece in pieces {
                    piece.block += u64::from(disk) * DISK_BLOCKS;
                    piece.content += contents;
                }
            }
            LoggedRequest { disk, ..entry }
        }));
        // Requests of one disk at one moment keep their order.
        self.entries.sort_by_key(|entry| entry.at_ns);
        self.disks += 1;
    }

    /// The moment by which the disks had answered every request before a cut, and the one by which they had
    /// taken them: what was known to others, and what they can have written. None where the log ends before.
    ///
    /// A write that was taken while a flush was under way stands before the flush's end, though its content may
    /// be of a moment after that.
    pub fn moments(&self, cut: usize) -> (Option<u64>, Option<u64>) {
        let at = |number: usize| self.entries.get(number).map(|entry| entry.at_ns);
        let mut taken_by = at(cut);
        for disk in 0..self.disks {
            let of_it = |number: &usize| usize::from(self.entries[*number].disk) == disk;
            let before = (0..cut).rev().filter(of_it).map(|number| &self.entries[number].what);
            let since: Vec<&RequestOperation> = before
                .take_while(|what| {
                    !matches!(what, RequestOperation::FlushEnds | RequestOperation::Flush)
                })
                .collect();
            let began = since.iter().position(|what| matches!(what, RequestOperation::FlushBegins));
            // No write was taken since, or no flush is under way.
            if began.is_none_or(|writes| writes == 0) {
                continue;
            }
            let mut after = (cut..self.entries.len()).filter(of_it);
            let ends =
                after.find(|number| self.entries[*number].what == RequestOperation::FlushEnds);
            let next = ends.and_then(|_| after.next()).and_then(at);
            taken_by = taken_by.zip(next).map(|(one, other)| one.max(other));
        }
        (at(cut), taken_by)
    }

    /// Leaves out cuts before that moment: the log of a disk had not begun then.
    pub fn begin_at(&mut self, ns: u64) {
        self.first_cut = self.entries.partition_point(|entry| entry.at_ns < ns);
    }

    /// The writes.
    pub fn writes(&self) -> usize {
        self.entries.iter().filter(|entry| !entry.is_flush()).count()
    }

    /// The flushes.
    pub fn flushes(&self) -> usize {
        self.entries.iter().filter(|entry| entry.is_flush_end()).count()
    }
}

/// The pieces of a write at `offset`: block, first sector in it, and the range of the data.
pub(crate) fn split(offset: u64, length: usize) -> impl Iterator<Item = (u64, u8, Range<usize>)> {
    let mut done = 0;
    std::iter::from_fn(move || {
        if done >= length {
            return None;
        }
        let at = offset + done as u64;
        let (block, inside) = (at / BLOCK_BYTES, at % BLOCK_BYTES);
        let end = (done + (BLOCK_BYTES - inside) as usize).min(length);
        let piece = (block, (inside / SECTOR_BYTES) as u8, done..end);
        done = end;
        Some(piece)
    })
}
