//! A workload from what production knows: statements of pg_stat_statements and of server logs, with their calls and
//! times, by the fingerprint of their normalised text.
//!
//! Reading order: `sql` reads texts, `snapshot` and `log` read sources, `tally` groups what they say.
//!
//! Limits: no text of a utility statement, no literal and no comment leaves this crate but the values of calls, which
//! are kept on request only.

mod catalogue;
mod draft;
mod error;
mod folder;
#[cfg(fuzzing)]
pub mod fuzzing;
mod log;
mod make;
mod mask;
mod reading;
mod reservoir;
mod resolve;
mod snapshot;
mod sql;
mod tally;
mod treatment;

pub use catalogue::{CatalogueColumn, CatalogueTable, TableCatalogue};
pub use error::WorkloadError;
pub use folder::{PrepareCheck, WorkloadFolder, folder};
pub use log::{
    LinePrefix, LogEntry, ServerLogFormat, SessionReader, SourceMoment, format_of, moment,
};
pub use make::{WorkloadRequest, WorkloadSource, make};
pub use reading::{CoveredScript, covered_scripts};
pub use reservoir::{CALLS_MAX, CallSample, ValueRow};
pub use snapshot::{CallFilter, StatementsSnapshot};
pub use sql::{
    QueryText, ReadStatement, StatementFingerprint, TEXT_MAX, TextLiteral, TransactionWord,
    UnreadableSql, read,
};
pub use tally::{
    CallOrigin, CallTotals, GroupedStatement, StatementProtocol, StatementTally, TextVariant,
    TransactionShape,
};
pub use treatment::{LeftOut, UtilityCommand};
