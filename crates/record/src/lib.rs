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
//! Reading order: [`Moment`] is the one clock; [`Counts`] and [`Interval`] come from the load
//! engine, [`Sample`] and [`Mark`] from the probes, [`Trial`] is what the runner makes of them;
//! [`ledger`] is what clients know of their writes; [`Header`] is the first page; [`Writer`] and
//! [`Reader`] keep all of it in a directory.
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
mod weight;

pub use comparison::Comparison;
pub use conditions::{Conditions, Doubt, FailedMore, Sort};
pub use counts::{Counts, SqlStateCounts};
pub use ending::{Ending, Fault, Interruption, Note, NoteKind, Reason, SkipKind, VoidKind};
pub use error::Error;
pub use finished::Finished;
pub use folder::read_folder;
pub use format::FORMAT;
pub use header::{Fact, Header, RunState, SearchTerms};
pub use history::{Link, Seen, Witness, read_histories};
pub use host::{HostLoad, HostUse};
pub use host_gap::{HostGap, HostGapKind, HostTimeLost, retransmission_ns};
pub use interval::{Cycles, Interval, summaries};
pub use kept_exploration::KeptExploration;
pub use layout::KEPT_STATES;
pub use lock::is_held;
pub use mark::{Mark, MarkKind};
pub use moment::Moment;
pub use paired::{Paired, Series, WorkingSeries};
pub use past::{PastFigure, PastMark, PastResult, Subject};
pub use planned_trial::PlannedTrial;
pub use reader::{Reader, is_record};
pub use sample::Sample;
pub use timeline::TimedAction;
pub use trial::{
    Figure, Generator, Phase, PublishedWay, SocketIo, StatementResult, Trial, Window,
    WorkloadResult,
};
pub use writable::{check_directory, check_file};
pub use writer::{Writer, attach, make_directory};
