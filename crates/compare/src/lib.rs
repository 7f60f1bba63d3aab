//! `pgrig compare`: is B faster than A?
//!
//! Two servers with the same data stand at once, all clients connected to both, and are loaded in
//! turn in short blocks. What the machine does to one block it also does to its neighbours, so
//! pairs of blocks say more in minutes than whole runs in hours.
//!
//! Reading order: [`compare`] does what a [`Request`] asks for and returns a [`Comparison`].
//! Inside, `side` builds the servers, `pilot` finds the length of a block, `design` the order of
//! blocks, `run` loads them; `figure` makes figures of what was observed, `answer` the verdict.
//!
//! Limits: closed loop; both servers on this machine. Nothing is printed here.

mod answer;
mod design;
mod error;
mod figure;
mod meter;
mod observation;
mod pilot;
mod result;
mod run;
mod side;

pub use answer::{Stop, Verdict};
pub use error::Error;
pub use figure::{Figure, Metric};
pub use result::{Comparison, SideFacts, times};
pub use run::{Event, Request, compare};
pub use side::{Data, SideOptions};
