//! Schedules of faults: drawn from a seed, counted by what they have tried, and shrunk to the smallest one
//! that still breaks a promise.
//!
//! Reading order: [`FaultSpace`] says what may be drawn, and draws a [`FaultSchedule`] of it; [`FaultCoverage`] counts which
//! faults have met which victims; [`ScheduleSearch`] asks for one [`ScheduleTrial`] after another, takes each [`TrialOutcome`],
//! and ends with a [`PromiseViolation`], whose [`ViolationRate`]s say how often the schedule breaks the promise.
//!
//! Limits: no clock, file or environment. Nothing here knows a server: whoever runs an experiment says what came
//! of it. The same seed and the same outcomes lead to the same experiments, so that a search goes on by being
//! told again what it has seen.

mod coverage;
mod draw;
mod rate;
mod schedule;
mod search;
mod shrink;
mod space;

pub use coverage::{FaultCoverage, FaultOnVictim};
pub use rate::ViolationRate;
pub use schedule::{FaultSchedule, ScheduledFault};
pub use search::{
    PromiseViolation, ScheduleSearch, ScheduleTrial, SearchLimits, TrialOutcome, TrialPurpose,
};
pub use shrink::ScheduleReduction;
pub use space::{DrawableFault, FaultSpace, FaultVictim};
