//! `pgrig bench`: pgbench's options, initialisation, logs and words over the load engine.

mod builtin;
mod complaint;
mod console;
mod getopt;
mod number;
pub mod options;
pub mod words;

pub use complaint::Complaint;
pub use console::Console;
