//! `pgrig bench`: pgbench's options, initialisation, logs and words over the load engine.
//!
//! A program that calls pgbench and reads its output can call [`bench`] instead: options, messages, the
//! final block and exit codes are those of pgbench 19, or of 18 with `--as 18`. Additions are options
//! that pgbench does not have and lines that begin with `pgrig: `.
//!
//! Reading order: [`bench`] runs a command line, [`options`] parses it, [`words`] is
//! the final block. Nothing here prints: all output goes through a [`Console`].

mod bench;
mod colours;
mod complaint;
mod console;
mod getopt;
mod initialise;
mod major;
pub mod null_server;
mod number;
pub mod options;
mod page;
mod run;
mod search;
mod server;
mod session_state;
mod tpcc;
pub mod words;

pub use bench::{bench, bench_with_pages, initialisation, initialise};
pub use colours::Colours;
pub use complaint::Complaint;
pub use console::Console;
pub use initialise::table_bytes;
pub use major::{Major, SpokenBy};
pub use page::{Page, Pages};
pub use run::workload;
pub use search::curve::{Curve, POOL_SIZE, Tried};
pub use search::steps::End;
