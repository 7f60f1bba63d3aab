//! A server's error as libpq tells it, since that is what pgbench shows.

use std::fmt::Write;

use postgres::error::{DbError, ErrorPosition};

/// Severity and message, the place in the statement, detail, hint and context; for anything that
/// no server said, the cause in the operating system's words.
pub(crate) fn text(error: &postgres::Error, sql: Option<&str>) -> String {
    match error.as_db_error() {
        Some(error) => server(error, sql),
        None => ::server::message::chain(error),
    }
}

/// The same for what is known to come from a server.
pub(super) fn server(error: &DbError, sql: Option<&str>) -> String {
    let mut text = format!("{}:  {}", error.severity(), error.message());
    match (error.position(), sql) {
        (Some(ErrorPosition::Original(position)), Some(sql)) => {
            let _ = write!(text, "\n{}", wire::excerpt(sql, *position));
        }
        (Some(ErrorPosition::Internal { position, query }), _) => {
            let _ = write!(text, "\n{}\nQUERY:  {query}", wire::excerpt(query, *position));
        }
        _ => {}
    }
    for (name, value) in
        [("DETAIL", error.detail()), ("HINT", error.hint()), ("CONTEXT", error.where_())]
    {
        if let Some(value) = value {
            let _ = write!(text, "\n{name}:  {value}");
        }
    }
    text
}
