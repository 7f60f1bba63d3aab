//! Errors of a comparison.

use server::LimitReached;
use server::message::with_detail;

/// Error of a comparison of two servers.
#[derive(Debug, thiserror::Error)]
#[allow(missing_docs)]
pub enum Error {
    #[error("{doing}: {}", with_detail(.source))]
    Query { doing: String, source: postgres::Error },
    #[error(
        "comparing rows: {servers} has no table {table}; name a table with its schema, unless that is public"
    )]
    NoTable { table: String, servers: String },
    #[error("comparing rows: {servers} has no table in schema {schema}")]
    NoSchema { schema: String, servers: String },
    #[error("comparing rows: {server} does not let the role {role} read all of {what}")]
    Unreadable { server: String, role: String, what: String },
    #[error("comparing rows: {} and {} are one database of one server", servers[0], servers[1])]
    OneDatabase { servers: [String; 2] },
    #[error(
        "comparing rows: the databases have different encodings, {} on {} and {} on {}, and digests of rows depend on it",
        encodings[0], servers[0], encodings[1], servers[1]
    )]
    Encodings { servers: [String; 2], encodings: [String; 2] },
    #[error(
        "comparing rows: {} and {} compute different digests of one text: their machines have another order of bytes",
        servers[0], servers[1]
    )]
    Digests { servers: [String; 2] },
}

impl Error {
    pub(crate) fn query(doing: impl Into<String>) -> impl FnOnce(postgres::Error) -> Error {
        |source| Error::Query { doing: doing.into(), source }
    }

    /// True if the comparison had begun and was not finished.
    pub fn is_halfway(&self) -> bool {
        matches!(self, Error::Query { .. })
    }

    /// True if the caller asked for what is not there.
    pub fn is_of_caller(&self) -> bool {
        matches!(self, Error::NoTable { .. } | Error::NoSchema { .. })
    }

    /// The next step for the user.
    pub fn hint(&self) -> Option<String> {
        let state = match self {
            Error::Query { source, .. } if LimitReached::below(source).is_some() => return None,
            Error::Query { source, .. } => source.code()?.code(),
            Error::NoTable { .. }
            | Error::NoSchema { .. }
            | Error::OneDatabase { .. }
            | Error::Digests { .. } => return None,
            Error::Unreadable { role, .. } => {
                return Some(format!(
                    "GRANT pg_read_all_data TO {role} (version 14 and later; with row security the role needs \
                     BYPASSRLS), or name what is to be compared by --table and --schema"
                ));
            }
            Error::Encodings { .. } => {
                return Some(
                    "compare a copy that was made with the encoding of the other database"
                        .to_owned(),
                );
            }
        };
        let next = match state {
            "55P03" => {
                "something holds or waits for a stronger lock on that table: see pg_locks, and repeat it then"
            }
            "40001" | "25006" | "55000" => {
                "on a standby: raise max_standby_streaming_delay, or compare the primary; unlogged tables are on the \
                 primary only"
            }
            _ => return None,
        };
        Some(next.to_owned())
    }
}
