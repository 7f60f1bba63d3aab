//! Quoting for SQL and for connection strings.

use postgres_protocol::escape;

/// A quoted identifier.
pub fn identifier(name: &str) -> String {
    escape::escape_identifier(name)
}

/// A string constant, which means the same whatever `standard_conforming_strings` is.
pub fn literal(text: &str) -> String {
    // libpq sets a blank before an escape string, in case a keyword stands before it.
    escape::escape_literal(text).trim_start().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quoting() {
        assert_eq!(literal("it's"), "'it''s'");
        assert_eq!(literal(r"a\b"), r"E'a\\b'");
        assert_eq!(identifier("a\"b"), "\"a\"\"b\"");
    }
}
