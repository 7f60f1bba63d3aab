//! The requests to a disk since its log began.

use std::ops::Range;

/// Smallest unit that a disk writes whole or not at all, in bytes.
pub const SECTOR_BYTES: u64 = 512;

/// Smallest unit that a file system usually writes, in bytes.
pub const BLOCK_BYTES: u64 = 4096;

/// Sectors of a block.
pub(crate) const SECTORS: usize = (BLOCK_BYTES / SECTOR_BYTES) as usize;

/// The requests of a disk, in the order in which it took them.
#[derive(Debug, Default, PartialEq)]
pub struct Log {
    /// The requests.
    pub entries: Vec<Entry>,
    /// Each different content of a piece, once.
    pub contents: Vec<Content>,
}

/// One request.
#[derive(Debug, Clone, PartialEq)]
pub struct Entry {
    /// Time of its arrival, in nanoseconds of the machine's monotonic clock.
    pub at_ns: u64,
    /// The operation.
    pub what: What,
}

/// The operation that a request asks for.
#[derive(Debug, Clone, PartialEq)]
pub enum What {
    /// A write, by pieces of one block each.
    Write(Vec<Piece>),
    /// A flush of all that was written before.
    Flush,
}

/// The part of a write that lies in one block.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Piece {
    /// The number of the block.
    pub block: u64,
    /// Its first sector in the block.
    pub first: u8,
    /// Its sectors.
    pub sectors: u8,
    /// The number of its content in the log.
    pub content: u32,
}

/// Written content, kept once however often it was written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Content {
    /// Position of its beginning in the file of contents.
    pub position: u64,
    /// Its first bytes, by which pages are recognised.
    pub head: [u8; 16],
    /// A hash of each of its sectors.
    pub sums: [u64; SECTORS],
}

impl Entry {
    /// The pieces of a write; none of a flush.
    #[must_use]
    pub fn pieces(&self) -> &[Piece] {
        match &self.what {
            What::Write(pieces) => pieces,
            What::Flush => &[],
        }
    }

    /// True if it is a flush.
    #[must_use]
    pub fn is_flush(&self) -> bool {
        self.what == What::Flush
    }

    /// The sectors that it writes.
    #[must_use]
    pub fn sectors(&self) -> u32 {
        self.pieces().iter().map(|piece| u32::from(piece.sectors)).sum()
    }
}

impl Log {
    /// Its writes.
    #[must_use]
    pub fn writes(&self) -> usize {
        self.entries.iter().filter(|entry| !entry.is_flush()).count()
    }

    /// Its flushes.
    #[must_use]
    pub fn flushes(&self) -> usize {
        self.entries.len() - self.writes()
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
