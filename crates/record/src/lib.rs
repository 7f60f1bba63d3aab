//! What a run leaves behind: trials, intervals, samples, marks, and the directory that holds them.
//!
//! Reading order: [`Moment`] is the one clock; [`Counts`] and [`Interval`] come from the load
//! engine, [`Sample`] and [`Mark`] from the probes, [`Trial`] is what the runner makes of them.
//!
//! Limits: nothing here measures, draws or prints.

mod counts;
pub mod histogram_text;
mod interval;
mod mark;
mod moment;
mod sample;
mod trial;

pub use counts::{Counts, SqlStateCounts};
pub use interval::Interval;
pub use mark::{Mark, MarkKind};
pub use moment::Moment;
pub use sample::Sample;
pub use trial::{
    Generator, Phase, PublishedWay, Status, StatementResult, Trial, Window, WorkloadResult,
};
