//! Errors of making a workload.

use std::io;
use std::path::PathBuf;

/// Why no workload was made.
#[derive(Debug, thiserror::Error)]
#[allow(missing_docs)]
pub enum WorkloadError {
    #[error("{doing} {}: {source}", .path.display())]
    File { doing: &'static str, path: PathBuf, source: io::Error },
    #[error("reading {place}: it is no {wanted}: {why}")]
    WrongKind { place: String, wanted: &'static str, why: &'static str, hint: &'static str },
    #[error("reading {place}: it has no column \"{column}\"")]
    NoColumn { place: String, column: String, hint: &'static str },
    #[error("reading {place}, line {line}: {why}")]
    Line { place: String, line: u64, why: String },
    #[error("reading {place}: none of its {rows} statements has a text")]
    NoTexts { place: String, rows: usize },
    #[error("reading {place}: no statement in it")]
    NoStatements { place: String, hint: &'static str },
    #[error("writing the workload into {}: the directory is not empty", .path.display())]
    NotEmpty { path: PathBuf },
    #[error("reading the workload in {}: {why}", .path.display())]
    NoFolder { path: PathBuf, why: String },
    #[error(transparent)]
    Connect(#[from] server::ConnectError),
    #[error("{doing}: {why}")]
    Server { doing: &'static str, why: String, hint: Option<&'static str> },
    #[error("reading the moment \"{text}\" of {option}: {why}")]
    Moment { option: &'static str, text: String, why: String },
    #[error("reading the prefix \"{prefix}\": {why}")]
    Prefix { prefix: String, why: &'static str },
}

impl WorkloadError {
    /// The next step for the user.
    pub fn hint(&self) -> Option<String> {
        Some(match self {
            WorkloadError::File { .. } => "name a path that you may read or write".to_owned(),
            WorkloadError::WrongKind { hint, .. } | WorkloadError::NoColumn { hint, .. } => {
                (*hint).to_owned()
            }
            WorkloadError::Line { .. } => {
                "export it again, or remove the line if it is not the server's".to_owned()
            }
            WorkloadError::NoTexts { .. } => {
                "the exporting role may not see the texts of other roles: GRANT pg_read_all_stats TO it, or \
                 export as a superuser"
                    .to_owned()
            }
            WorkloadError::NoStatements { hint, .. } => (*hint).to_owned(),
            WorkloadError::NotEmpty { .. } => "name one that is empty or does not exist".to_owned(),
            WorkloadError::NoFolder { .. } => {
                "name a folder that pgrig workload make has written".to_owned()
            }
            WorkloadError::Connect(error) => return error.hint(),
            WorkloadError::Server { hint, .. } => return hint.map(str::to_owned),
            WorkloadError::Moment { .. } => "write it as \"YYYY-MM-DD HH:MM\", in the log's time zone".to_owned(),
            WorkloadError::Prefix { .. } => {
                "give the server's log_line_prefix, as `SHOW log_line_prefix` prints it".to_owned()
            }
        })
    }
}
