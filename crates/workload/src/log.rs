//! Server logs: lines of csvlog, jsonlog and stderr become entries, entries become executions of statements.
//!
//! Limits: messages are recognised in English (`lc_messages = C`).

mod csvlog;
mod entry;
mod jsonlog;
mod message;
mod moment;
mod prefix;
mod sessions;

pub(crate) use csvlog::{csv_entry, csv_record_is_open};
pub use entry::LogEntry;
pub(crate) use jsonlog::json_entry;
pub use moment::{SourceMoment, moment};
pub use prefix::LinePrefix;
pub(crate) use prefix::StderrLine;
pub use sessions::SessionReader;

/// The format of a server's log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ServerLogFormat {
    /// `log_destination = csvlog`
    Csv,
    /// `log_destination = jsonlog`
    Json,
    /// `log_destination = stderr`, with log_line_prefix
    Stderr,
}

/// The format of a log, by its first line.
pub fn format_of(first_line: &str) -> ServerLogFormat {
    let is_csv = || {
        let fields = first_line.split(',').count();
        fields >= 20 && moment(first_line).is_some()
    };
    match () {
        () if first_line.starts_with('{') => ServerLogFormat::Json,
        () if is_csv() => ServerLogFormat::Csv,
        () => ServerLogFormat::Stderr,
    }
}
