//! Two sides in turn: is B faster than A?
//!
//! Two servers with the same data stand at once, all clients connected to both, and are loaded in
//! turn in short blocks. What the machine does to one block it also does to its neighbours, so
//! pairs of blocks say more in minutes than whole runs in hours. Every quarter of a minute both
//! servers are restarted: which memory and which files a server got is a matter of chance, and
//! the interval is to contain it.
//!
//! Reading order: [`measure_pair`] finds what any two sides that stand show, [`PairMeasurement`]:
//! `contest` says what two sides are, `pilot` finds the length of a block, `design` the order of
//! blocks, `course` loads them and `schedule` divides its time; `tidy` does what would otherwise happen inside a block; `meter`, `waits` and `profile` look at the servers meanwhile,
//! `plans` at their plans afterwards and `presets` at how they were built; `statements` runs each script of a
//! mixed load by itself; `figure` makes figures of what was observed, `answer` their
//! verdicts, `doubts` what stands against them. `same` checks that both sides hold the same data,
//! `script_check`, `rehearsal` and `work` that they do the same with it.

mod answer;
mod common;
mod contest;
mod course;
mod crash;
mod design;
mod doubts;
mod error;
mod event;
mod figure;
mod ground;
mod instances;
mod measurement;
mod meter;
mod observation;
mod pilot;
mod plans;
mod presets;
mod profile;
#[cfg(test)]
mod rare_simulation;
mod reach;
mod reasons;
mod rehearsal;
mod rows;
mod same;
mod schedule;
mod script_check;
mod statements;
mod tidy;
mod turns;
mod waits;
mod work;

/// Reads what a server says of a plan, for fuzz targets.
#[cfg(fuzzing)]
pub fn fuzz_plan(json: &str) {
    let _ = plans::read(json);
}

pub use answer::{RatioClaim, StopCondition, StoppingRule};
pub use common::ComparisonOptions;
pub use contest::{CONFIDENCE, ComparedPair, ComparedSide, PairProgress};
pub use design::SIDES;
pub use error::PairError;
pub use event::PairEvent;
pub use figure::ComparedFigure;
pub use ground::{NamedDifferences, unnamed as unnamed_differences};
pub use measurement::{PairJudge, PairMeasurement, PairPlan, asked_rate, measure_pair};
pub use observation::{BlockOctet, RestartSegment, SideObservation};
pub use same::check as check_same;
pub use schedule::interval_s;
pub use tidy::{MaintenanceResult, tidy};
