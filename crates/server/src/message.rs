//! Texts of a server's errors. By themselves the client libraries print only "db error"; the reason
//! is in the sources of the error.

use std::error::Error;
use std::fmt::Write as _;

/// The server's message and SQLSTATE, or the cause why there is none: `no such table (42P01)`.
pub fn reason(error: &postgres::Error) -> String {
    match error.as_db_error() {
        Some(server) => format!("{} ({})", server.message(), server.code().code()),
        None => with_source(error),
    }
}

/// The server's message and its detail, or the cause why there is none.
pub fn with_detail(error: &postgres::Error) -> String {
    match error.as_db_error() {
        Some(server) => {
            // Most messages have no detail.
            let detail = server.detail().map(|detail| format!(" ({detail})")).unwrap_or_default();
            format!("{}{detail}", server.message())
        }
        None => with_source(error),
    }
}

fn with_source(error: &postgres::Error) -> String {
    match error.source() {
        Some(source) => format!("{error}: {source}"),
        None => error.to_string(),
    }
}

/// An error with all its sources, except those whose text is in it already.
pub fn chain(error: &dyn Error) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(cause) = source {
        let cause_text = cause.to_string();
        if !text.contains(&cause_text) {
            // Writing to a String cannot fail.
            let _ = write!(text, ": {cause_text}");
        }
        source = cause.source();
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, thiserror::Error)]
    #[error("{text}")]
    struct Link {
        text: &'static str,
        source: Option<Box<Link>>,
    }

    #[test]
    fn a_chain_tells_each_cause_once() {
        let link = |text, source: Option<Link>| Link { text, source: source.map(Box::new) };
        let check = |error: Link, expected: &str| assert_eq!(chain(&error), expected);
        check(link("a", None), "a");
        check(link("a", Some(link("b", Some(link("c", None))))), "a: b: c");
        check(link("over: b", Some(link("b", Some(link("c", None))))), "over: b: c");
    }
}
