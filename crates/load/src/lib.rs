//! The load engine: lanes, sessions, pacing, connecting, recording.
//!
//! Reading order: [`Plan`] says what to load, [`Outcome`] what it came to.

mod outcome;
mod plan;

pub use outcome::{End, Event, Level, Message, Outcome};
pub use plan::{
    Connecting, Limit, LogPlan, OnError, OnLoss, Pace, Plan, Protocol, ScriptText, Syntax, WarmUp,
    Workload,
};
