//! Entry of a server's log, whatever format it was written in.

use super::SourceMoment;

/// What a line of a log says.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct LogEntry {
    /// Time of writing, which is the end of what is told.
    pub at: Option<SourceMoment>,
    /// Session, by its ID or the number of its process.
    pub session: String,
    /// Virtual transaction; without one the number behind the slash is 0.
    pub transaction: String,
    /// Role.
    pub role: String,
    /// Database.
    pub database: String,
    /// application_name
    pub application: String,
    /// LOG, ERROR, …
    pub severity: String,
    /// Text.
    pub message: String,
    /// DETAIL: parameters, or the text of a prepared statement.
    pub detail: String,
}
