//! `pgrig bisect`: which commit made it slower?
//!
//! `repository` asks git for the commits between a good and a bad one and has each built by a command
//! in a work tree of its own. `search` decides which commit is measured next and when the answer is
//! there; `rule` says what a comparison of a commit with the good one says of it. [`bisect`] puts them
//! together, and keeps every step in a file, from which it goes on after an end.
//!
//! Limits: it prints nothing, and it makes no page.

mod error;
mod repository;
mod rule;
mod run;
mod search;
mod state;

pub use error::Error;
pub use repository::{Build, Commit, Repository};
pub use rule::{Said, Threshold, error_per_step};
pub use run::{Bisection, Compared, Comparer, Event, Request, bisect, compare_servers};
pub use search::{Answer, Search, Verdict};
pub use state::{Kind, State, Step};
