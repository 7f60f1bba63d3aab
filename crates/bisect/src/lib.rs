//! `pgrig bisect`: which commit made it slower?
//!
//! `repository` asks git for the commits between a good and a bad one and has each built by a command
//! in a work tree of its own. `search` decides which commit is measured next and when the answer is
//! there; `rule` judges a commit by its comparison with the good one. [`bisect`] puts them together. It
//! writes every step to a file, and continues from that file after an interruption.
//!
//! Limits: it prints nothing, and it makes no page.

mod error;
mod repository;
mod rule;
mod run;
mod search;
mod state;

pub use error::Error;
pub use repository::{BuildCommand, BuildSource, BuiltCommit, Commit, CommitChanges, Repository};
pub use rule::{IntervalPosition, RatioThreshold, error_per_step};
pub use run::{
    Bisection, BisectionEvent, BisectionRequest, CommitComparison, Comparer, bisect,
    compare_servers,
};
pub use search::{CommitSearch, CommitVerdict, SearchAnswer};
pub use state::{BisectionState, ComparisonStep, StepKind};
