//! The server's log as marks on the timeline.
//!
//! [`Follower`] reads what the logging collector appends, [`json`] and [`csv`] turn its records
//! into entries, [`Chronicle`] turns entries into marks. Only the follower touches files.

mod chronicle;
mod crash;
pub(crate) mod csv;
mod entry;
mod follower;
pub(crate) mod json;

pub(crate) use chronicle::Chronicle;
pub use chronicle::StandbyTakeover;
pub use crash::{CrashKind, CrashSign, crash_lines};
pub(crate) use entry::{Entry, WallClock};
pub(crate) use follower::Follower;
