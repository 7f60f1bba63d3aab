//! ErrorResponse and NoticeResponse: fields, each named by one letter.

use std::borrow::Cow;
use std::fmt;

use crate::cursor::Cursor;
use crate::excerpt::excerpt;
use crate::{ProtocolError, SqlState};

/// The fields of an error or a notice.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ErrorResponse<'a> {
    fields: &'a [u8],
}

impl<'a> ErrorResponse<'a> {
    pub(super) fn parse(body: &mut Cursor<'a>) -> Result<Self, ProtocolError> {
        let fields = body.rest();
        while body.byte()? != 0 {
            body.text()?;
        }
        Ok(Self { fields })
    }

    /// All fields, in the order sent.
    pub fn fields(&self) -> ErrorFields<'a> {
        ErrorFields { rest: self.fields }
    }

    /// The field with this letter, as sent.
    pub fn field(&self, code: u8) -> Option<&'a [u8]> {
        self.fields().find(|(letter, _)| *letter == code).map(|(_, value)| value)
    }

    /// `ERROR`, `FATAL`, `PANIC`, `WARNING`, `NOTICE` …, never translated where the server sends it
    /// (9.6 and later).
    pub fn severity(&self) -> Cow<'a, str> {
        // A server that breaks the protocol may leave it out; the message is shown all the same.
        self.text(b'V').or_else(|| self.text(b'S')).unwrap_or_default()
    }

    /// The SQLSTATE; [`SqlState::UNKNOWN`] where there is none.
    pub fn sql_state(&self) -> SqlState {
        self.field(b'C').map_or(SqlState::UNKNOWN, SqlState::from_bytes)
    }

    /// The message: one line.
    pub fn message(&self) -> Cow<'a, str> {
        // A server that breaks the protocol may leave it out; the SQLSTATE is shown all the same.
        self.text(b'M').unwrap_or_default()
    }

    /// The detail, which may have several lines.
    pub fn detail(&self) -> Option<Cow<'a, str>> {
        self.text(b'D')
    }

    /// The server's advice.
    pub fn hint(&self) -> Option<Cow<'a, str>> {
        self.text(b'H')
    }

    /// Position of the error in the query: characters from its start, beginning with 1.
    pub fn position(&self) -> Option<u32> {
        self.text(b'P')?.parse().ok()
    }

    /// The call stack of functions and internal queries.
    pub fn context(&self) -> Option<Cow<'a, str>> {
        self.text(b'W')
    }

    /// The name of the violated constraint.
    pub fn constraint(&self) -> Option<Cow<'a, str>> {
        self.text(b'n')
    }

    /// An owned copy of what a person wants to read.
    pub fn to_owned(&self) -> ServerError {
        ServerError {
            severity: self.severity().into_owned(),
            sql_state: self.sql_state(),
            message: self.message().into_owned(),
            detail: self.detail().map(Cow::into_owned),
            hint: self.hint().map(Cow::into_owned),
            context: self.context().map(Cow::into_owned),
            position: self.position(),
            routine: self.text(b'R').map(Cow::into_owned),
            internal: self.text(b'q').map(|query| {
                (query.into_owned(), self.text(b'p').and_then(|position| position.parse().ok()))
            }),
        }
    }

    fn text(&self, code: u8) -> Option<Cow<'a, str>> {
        self.field(code).map(String::from_utf8_lossy)
    }
}

/// The fields of an error or a notice: the letter and the value.
#[derive(Debug, Clone)]
pub struct ErrorFields<'a> {
    rest: &'a [u8],
}

impl<'a> Iterator for ErrorFields<'a> {
    type Item = (u8, &'a [u8]);

    fn next(&mut self) -> Option<Self::Item> {
        let (&code, rest) = self.rest.split_first()?;
        if code == 0 {
            return None;
        }
        let end = rest.iter().position(|byte| *byte == 0)?;
        self.rest = &rest[end + 1..];
        Some((code, &rest[..end]))
    }
}

/// An error that a server reported, kept beyond the buffer it came in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ServerError {
    /// `ERROR`, `FATAL` or `PANIC`.
    pub severity: String,
    /// The SQLSTATE; [`SqlState::UNKNOWN`] where the server sent none.
    pub sql_state: SqlState,
    /// The message: one line.
    pub message: String,
    /// The detail, which may have several lines.
    pub detail: Option<String>,
    /// The server's advice.
    pub hint: Option<String>,
    /// The call stack of functions and internal queries.
    pub context: Option<String>,
    /// Position of the error in the query: characters from its start, beginning with 1.
    pub position: Option<u32>,
    /// The function of the server that reported it, which has no translation.
    pub routine: Option<String>,
    /// The query that a function sent, where the error is in such a one, and where in it.
    pub internal: Option<(String, Option<u32>)>,
}

impl ServerError {
    /// As [`fmt::Display`], with the line of `query`, the statement that failed, which the error
    /// points into.
    pub fn about<'e>(&'e self, query: Option<&'e str>) -> impl fmt::Display + 'e {
        About { error: self, query }
    }
}

/// As psql and pgbench show it: `FATAL:  …`, then DETAIL and HINT on lines of their own.
impl fmt::Display for ServerError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.about(None).fmt(f)
    }
}

/// An error and the statement that it is about.
struct About<'e> {
    error: &'e ServerError,
    query: Option<&'e str>,
}

impl fmt::Display for About<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ServerError { severity, message, position, internal, .. } = self.error;
        write!(f, "{severity}:  {message}")?;
        match (position, self.query, internal) {
            (Some(position), Some(query), _) => write!(f, "\n{}", excerpt(query, *position))?,
            (None, _, Some((query, Some(position)))) => {
                write!(f, "\n{}", excerpt(query, *position))?;
            }
            _ => {}
        }
        for (label, value) in [("DETAIL", &self.error.detail), ("HINT", &self.error.hint)] {
            if let Some(value) = value {
                write!(f, "\n{label}:  {value}")?;
            }
        }
        if let Some((query, _)) = internal {
            write!(f, "\nQUERY:  {query}")?;
        }
        if let Some(context) = &self.error.context {
            write!(f, "\nCONTEXT:  {context}")?;
        }
        Ok(())
    }
}

impl std::error::Error for ServerError {}
