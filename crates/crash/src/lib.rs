//! The states that a disk can be in after a power cut, from the log of its writes and flushes.
//!
//! Reading order: [`Encoder`] writes the log while a disk runs, [`Log`] is its content,
//! [`DiskState`] is one state that a cut could have left, [`Cursor`] assembles its content as an
//! [`Overlay`] of the image from before the log, [`plan()`] chooses states that differ, so that every
//! [`WriteKind`] of write is lost, kept and torn, and [`reduce()`] finds the smallest loss that still fails.
//!
//! Limits: no clock, file or environment. A sector of 512 bytes is written whole or not at all.

mod decode;
mod encode;
mod epochs;
mod log;
mod map;
mod plan;
mod reach;
mod reduce;
mod state;

pub use decode::LogDamage;
pub use encode::Encoder;
pub use log::{
    BLOCK_BYTES, BlockPiece, DISK_BLOCKS, DISKS_MAX, Entry, Log, RequestOperation, SECTOR_BYTES,
    WrittenContent,
};
pub use map::{FileExtent, FileKind, Map, MappedFile, WriteKind};
pub use plan::{LossPattern, PlannedState, Request, StatePlan, plan};
pub use reach::LogCoverage;
pub use reduce::reduce;
pub use state::{Cursor, DiskState, Flushes, LostSectors, MalformedState, Overlay};
