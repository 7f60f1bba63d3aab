//! The record of a run: trials, intervals, samples, marks, and the directory that holds them.
//!
//! ```text
//! runs/DATE-STUDY-N/
//!   record.json              what was run, on what, how it ended
//!   study/STUDY/             the study's folder as it was run
//!   trials/0001-VARIANT-SCENARIO/
//!     trial.json             what came out
//!     intervals.jsonl        what the clients did, second by second
//!     samples.csv            what the probes read
//!     marks.jsonl            what happened
//!     NODE.log               the end of a server's log, where something broke
//!     ledger/LANE.ledger     what clients knew of their writes, where it does not fit the rows
//!   trials/0001-VARIANT-SCENARIO-attempt-2/   the same for each further attempt
//!   trials/NAME.begun/       an attempt whose load has begun, until the whole of it is there
//!   pairs/01-ABOVE-BELOW-SCENARIO.json        what was measured in pairs
//! ```
//!
//! Reading order: [`Moment`] is the one clock; [`TransactionCounts`] and [`LoadInterval`] come from the load
//! engine, [`Sample`] and [`TimelineMark`] from the probes, [`Trial`] is what the runner makes of them;
//! [`ledger`] is what clients know of their writes; [`RecordHeader`] is the first page; [`RecordWriter`] and
//! [`RecordReader`] keep all of it in a directory.
//!
//! Limits: nothing here measures, judges, draws or prints.

mod moment;

mod history;
pub mod ledger;

mod counts;
mod interval;

mod mark;
mod sample;
mod timeline;

mod ending;
mod trial;

mod header;
mod layout;
mod lock;
mod planned_trial;

mod finished;
mod kept_exploration;
mod reader;
mod writable;
mod writer;

pub mod comparison;
mod conditions;
mod paired;
mod past;

mod allowance;
mod error;
mod files;
mod folder;
mod format;
pub mod histogram_text;
mod host;
mod host_gap;
mod inside;
mod unprepared;
mod weight;

pub use comparison::Comparison;
pub use conditions::{FailedMore, FigureClass, FigureDoubt, MeasuringConditions};
pub use counts::{SqlStateCounts, TransactionCounts};
pub use ending::{
    AttemptEnding, EndingReason, FaultyParty, InterruptedState, Note, NoteKind, SkipKind, VoidKind,
};
pub use error::Error;
pub use finished::FinishedTrial;
pub use folder::read_folder;
pub use format::FORMAT;
pub use header::{MachineFact, RecordHeader, RunState, SearchTerms};
pub use history::{PicturedTransaction, TransactionOrder, WitnessPicture, read_histories};
pub use host::{HostLoad, HostUse};
pub use host_gap::{HostGap, HostGapKind, HostTimeLost, retransmission_ns};
pub use interval::{BlockCycles, LoadInterval, summaries};
pub use kept_exploration::KeptExploration;
pub use layout::{HEADER, KEPT_STATES};
pub use lock::is_held;
pub use mark::{MarkKind, TimelineMark};
pub use moment::Moment;
pub use paired::{PairingAttempt, RatioSeries, WorkingSeries};
pub use past::{PastFigure, PastMark, PastResult, ResultSubject};
pub use planned_trial::PlannedTrial;
pub use reader::{RecordReader, ended_trials, is_record};
pub use sample::Sample;
pub use timeline::TimedAction;
pub use trial::{
    ConnectionPhase, GeneratorCost, MeasuredWindow, MetricFigure, PublishedWay, SocketIo,
    StatementResult, Trial, WorkloadResult,
};
pub use unprepared::UnpreparedPooler;
pub use writable::{check_directory, check_file};
pub use writer::{RecordWriter, attach, make_directory};
