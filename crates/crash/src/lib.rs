//! The states that a disk can be in after a power cut, from the log of its writes and flushes.
//!
//! Reading order: [`Encoder`] writes the log while a disk runs, [`Log`] is its content,
//! [`State`] is one state that a cut could have left, [`Cursor`] assembles its content as an
//! [`Overlay`] of the image from before the log, [`plan()`] chooses states that differ, so that every
//! [`Kind`] of write is lost, kept and torn, and [`reduce()`] finds the smallest loss that still fails.
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

pub use decode::Damaged;
pub use encode::Encoder;
pub use log::{
    BLOCK_BYTES, Content, DISK_BLOCKS, DISKS_MAX, Entry, Log, Piece, SECTOR_BYTES, What,
};
pub use map::{Extent, FileKind, Kind, Map, MappedFile};
pub use plan::{Plan, Planned, Request, Way, plan};
pub use reach::Reach;
pub use reduce::reduce;
pub use state::{Cursor, Flushes, Lost, Malformed, Overlay, State};
