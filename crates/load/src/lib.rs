//! The load engine: lanes, sessions, pacing, connecting, recording.
//!
//! Reading order: [`LoadPlan`] describes a load, [`drive`] runs it, [`LoadOutcome`] is its result. Inside,
//! `conductor` controls the lanes, a `lane` is one thread with its sessions, a `session` is one client
//! and does no I/O: its `transaction` sends statements, its `reply` reads the answers.
//!
//! Limits: Linux. Nothing is printed and nothing is read but the sockets, the clock, the
//! certificate files that a conninfo names, and /etc/passwd for `requirepeer`.

mod blocks;
mod cancel;
mod carried;
mod clock;
mod conductor;
mod drive;
mod error;
mod foreign;
#[cfg(fuzzing)]
pub mod fuzzing;
pub mod generators;
mod grid;
mod hosts;
mod lane;
mod lane_history;
mod lanes;
mod ledger;
mod ledger_slots;
mod ledger_statements;
mod log;
mod notebook;
mod notes;
mod outcome;
mod partition;
mod plan;
mod program;
mod rate_course;
mod report;
mod retry;
mod rows;
mod schedule;
mod session;
mod shell;
mod standstill;
mod summary;
mod tally;
mod threads;
mod warm_up;
mod work;

pub use blocks::{BlockSchedule, ScheduledBlock};
pub use drive::{LaneFleet, drive, run};
pub use error::LoadError;
pub use hosts::OnHostLoss;
pub use ledger::ledger_session;
pub use ledger_statements::LedgerTables;
pub use outcome::{
    CommandPlace, GeneratorOutcome, HostClock, HostOutcome, HostStall, LoadEnd, LoadEvent,
    LoadOutcome, MessageLevel, ScriptOutcome, UserMessage,
};
pub use plan::{
    ClientGroup, ConnectionMode, HistoryGroup, HistoryPlan, LedgerPlan, LoadLimit, LoadPlan,
    LoadScript, LogPlan, OnError, ShellUser,
};
pub use rate_course::{RateCourse, RateStep};
pub use rows::{
    RowTables, RowsContent, RowsError, RowsFailure, ScriptRows, fetch_rows, fetch_rows_each,
};
pub use script::{Protocol, ScriptSyntax};
pub use server::{LoadControl, StopUrgency};
pub use standstill::Standstill;
pub use terms::{GiveUp, OnLoss, Pace, RetryPause, RetryPolicy, WarmUp};
pub use work::{StatementAnswer, StatementPlace, StatementWork, WorkRecord, WorkloadWork};
