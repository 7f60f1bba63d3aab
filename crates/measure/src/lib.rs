//! The acts of a measurement that trials, comparisons and benchmarks have in common: what is watched while
//! servers are loaded, and what is made of it.
//!
//! Limits: nothing here builds a server, prints, or writes a record.

mod tail;

pub use tail::{TailLoad, TailSample, TailSampler};
