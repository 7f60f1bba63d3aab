//! Data from which a page about a run is made.

use std::time::SystemTime;

use load::LoadOutcome;

use crate::search::curve::Curve;

/// A finished run, for the maker of a page.
#[derive(Debug)]
pub struct Page<'a> {
    /// The command line, without secrets.
    pub command: String,
    /// Text that was printed.
    pub words: &'a str,
    /// Name of the load, as pgbench calls it.
    pub what: &'a str,
    /// The server's version, as it tells it.
    pub server: &'a str,
    /// pgbench's scale.
    pub scale: i64,
    /// Moment 0 on the wall clock.
    pub began: SystemTime,
    /// Results of the measurement.
    pub outcome: &'a LoadOutcome,
    /// Slow transactions by cause, where that was asked for.
    pub tail: Option<&'a tail::SlowTransactions>,
    /// The windows of a search, where it was one.
    pub curve: Option<&'a Curve>,
    /// Result of the search, in words; empty if it was none.
    pub found: &'a str,
    /// Lines beside it, each with its name.
    pub details: &'a [(String, String)],
}

/// Makes pages of runs. Pages are another room's work.
pub trait Pages {
    /// A finished run, as one HTML file.
    fn make(&self, page: &Page<'_>) -> String;

    /// Opens a page that shows the run while it lasts, and prints its address.
    fn open(&self, what: &str) -> Result<String, String>;

    /// The load goes on.
    fn observe(&self, event: &load::LoadEvent<'_>);

    /// Shows the finished run.
    fn end(&self, page: String);
}
