//! `pgrig compare`: is B faster than A?
//!
//! Two servers with the same data stand at once, all clients connected to both, and are loaded in
//! turn in short blocks. What the machine does to one block it also does to its neighbours, so
//! pairs of blocks say more in minutes than whole runs in hours. Every quarter of a minute both
//! servers are restarted: which memory and which files a server got is a matter of chance, and
//! the interval is to contain it.
//!
//! Reading order: [`compare`] does what a [`Request`] asks for and returns a
//! [`record::Comparison`]. Inside, `build` makes two servers and `outside` connects to two of the
//! user's, and `same` checks their data. [`measure`] makes a comparison of any two sides that stand:
//! `contest` says what two sides are and `arena` restarts servers that pgrig makes, `pilot` finds the length of a block, `design` the order of
//! blocks, `course` loads them and `schedule` divides its time; `tidy` does what would otherwise happen inside a block; `meter`, `waits` and `profile` look at the servers meanwhile,
//! `plans` at their plans afterwards and `presets` at how they were built; `figure` makes figures of what was observed, `answer` the
//! verdict, `doubts` what stands against it. Neither [`measure`] nor a [`Contest`] has servers of
//! its own: studies compare their variants and measure their pairs with them.
//!
//! Limits: nothing is printed here, and no record is written.

mod answer;
mod arena;
mod build;
mod common;
mod contest;
mod course;
mod crash;
mod design;
mod doubts;
mod error;
mod event;
mod figure;
mod instances;
mod measure;
mod meter;
mod observation;
mod outside;
mod pilot;
mod plans;
mod presets;
mod profile;
mod reach;
mod request;
mod room;
mod run;
mod same;
mod schedule;
mod settings;
mod side;
mod tails;
mod tidy;
mod turns;
mod waits;

/// Reads what a server says of a plan, for fuzz targets.
#[cfg(fuzzing)]
pub fn fuzz_plan(json: &str) {
    let _ = plans::read(json);
}

pub use answer::{Claimed, Rule, Until};
pub use common::Common;
pub use contest::{Arena, CONFIDENCE, Contest, Contested, Ground, Progress, Told};
pub use crash::Watched;
pub use design::SIDES;
pub use error::Error;
pub use event::Event;
pub use figure::Figure;
pub use measure::{Subject, machine_facts, measure};
pub use observation::{Half, Octet, Segment};
pub use pilot::Shape;
pub use request::Request;
pub use run::{check, compare};
pub use same::check as check_same;
pub use schedule::interval_s;
pub use side::{Data, SideOptions, read};
pub use tidy::{Tidied, tidy};
