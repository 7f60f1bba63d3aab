//! What a page about a run is made from.

use std::time::SystemTime;

use load::Outcome;

use crate::search::curve::Curve;

/// A finished run, for the maker of a page.
#[derive(Debug)]
pub struct Page<'a> {
    /// The command line, without secrets.
    pub command: String,
    /// What was printed.
    pub words: &'a str,
    /// What ran, as pgbench calls it.
    pub what: &'a str,
    /// The server's version, as it tells it.
    pub server: &'a str,
    /// pgbench's scale.
    pub scale: i64,
    /// Moment 0 on the wall clock.
    pub began: SystemTime,
    /// What was measured.
    pub outcome: &'a Outcome,
    /// The windows of a search, where it was one.
    pub curve: Option<&'a Curve>,
    /// What it found, in words; empty where it was none.
    pub found: &'a str,
}

/// Makes a page, as one HTML file. Pages are another room's work.
pub type MakePage<'a> = &'a dyn Fn(&Page<'_>) -> String;
