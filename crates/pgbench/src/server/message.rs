//! A server's error as libpq tells it, since that is what pgbench shows.

use std::error::Error as _;
use std::fmt::Write;

use postgres::error::{DbError, ErrorPosition};

/// Severity and message, the place in the statement, detail, hint and context; for anything that
/// no server said, the cause in the operating system's words.
pub(crate) fn text(error: &postgres::Error, sql: Option<&str>) -> String {
    match error.as_db_error() {
        Some(error) => server(error, sql),
        None => {
            let mut text = error.to_string();
            let mut source = error.source();
            while let Some(cause) = source {
                let cause_text = cause.to_string();
                if !text.contains(&cause_text) {
                    let _ = write!(text, ": {cause_text}");
                }
                source = cause.source();
            }
            text
        }
    }
}

/// The same for what is known to come from a server.
pub(super) fn server(error: &DbError, sql: Option<&str>) -> String {
    let mut text = format!("{}:  {}", error.severity(), error.message());
    match (error.position(), sql) {
        (Some(ErrorPosition::Original(position)), Some(sql)) => place(&mut text, sql, *position),
        (Some(ErrorPosition::Internal { position, query }), _) => {
            let _ = write!(text, "\nQUERY:  {query}");
            place(&mut text, query, *position);
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

/// The line of the statement with a caret under the character at `position`, counted from 1.
fn place(text: &mut String, sql: &str, position: u32) {
    let before: String = sql.chars().take(position.saturating_sub(1) as usize).collect();
    let number = before.matches('\n').count() + 1;
    let begin = before.rfind('\n').map_or(0, |at| at + 1);
    let line = sql[begin..].lines().next().unwrap_or_default();
    let prefix = format!("LINE {number}: ");
    let columns = prefix.len() + before[begin..].chars().count();
    let _ = write!(text, "\n{prefix}{line}\n{:columns$}^", "");
}
