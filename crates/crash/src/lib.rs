//! The states that a disk can be in after a power cut, from the log of its writes and flushes.
//!
//! Reading order: [`DiskLogEncoder`] writes the log while a disk runs, [`DiskLog`] is its content,
//! [`DiskState`] is one state that a cut could have left, [`StateCursor`] assembles its content as an
//! [`StateOverlay`] of the image from before the log, [`plan()`] chooses states that differ, so that every
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
pub use encode::DiskLogEncoder;
pub use log::{
    BLOCK_BYTES, BlockPiece, DISK_BLOCKS, DISKS_MAX, DiskLog, LoggedRequest, RequestOperation,
    SECTOR_BYTES, WrittenContent,
};
pub use map::{DiskFileKind, FileExtent, FileMap, MappedFile, WriteKind};
pub use plan::{LossPattern, PlannedState, StatePlan, StatePlanRequest, plan};
pub use reach::LogCoverage;
pub use reduce::reduce;
pub use state::{DiskState, FlushEffect, LostSectors, MalformedState, StateCursor, StateOverlay};
