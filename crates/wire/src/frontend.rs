//! Messages of a client: each function appends one message to the caller's buffer.
//!
//! Nothing is allocated but by growth of that buffer. Text that is made on the spot, such as a
//! script's variables, is written in place through [`QueryMessage`] and [`BindMessage`]; the message's length is
//! filled in at the end. A message that cannot be sent (a NUL in a string, beyond the size a
//! server takes) is an [`EncodeError`] and leaves the buffer as it was.

mod bind;
mod message;
mod query;
mod start;

pub use bind::BindMessage;
pub use query::QueryMessage;
pub use start::{cancel_request, ssl_request, startup};

use message::Builder;
use thiserror::Error;

/// The type bytes of frontend messages.
mod tag {
    pub(super) const BIND: u8 = b'B';
    pub(super) const DESCRIBE: u8 = b'D';
    pub(super) const EXECUTE: u8 = b'E';
    pub(super) const PARSE: u8 = b'P';
    /// A SASL message, too.
    pub(super) const PASSWORD: u8 = b'p';
    pub(super) const QUERY: u8 = b'Q';
}

/// Reason why a message cannot be sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
#[allow(missing_docs)]
pub enum EncodeError {
    #[error("a {0} with a NUL character in it cannot be sent to a server")]
    Nul(&'static str),
    #[error("a {0} message above 1 GiB cannot be sent to a server")]
    TooLong(&'static str),
    #[error("a statement cannot have more than 65535 parameters")]
    TooManyParameters,
}

/// A simple query; its text may hold several statements.
pub fn query(out: &mut Vec<u8>, sql: &[u8]) -> Result<(), EncodeError> {
    let mut query = QueryMessage::begin(out);
    query.text().extend_from_slice(sql);
    query.finish()
}

/// Prepares `sql` under the name `statement` (empty: the unnamed statement), with the types of the
/// first parameters given by OID (0: let the server find out).
pub fn parse(
    out: &mut Vec<u8>,
    statement: &[u8],
    sql: &[u8],
    type_oids: &[u32],
) -> Result<(), EncodeError> {
    let count = u16::try_from(type_oids.len()).map_err(|_| EncodeError::TooManyParameters)?;
    let mut message = Builder::begin(out, "Parse", tag::PARSE);
    message.text("statement name", statement)?;
    message.text("query", sql)?;
    message.bytes(&count.to_be_bytes());
    for oid in type_oids {
        message.bytes(&oid.to_be_bytes());
    }
    message.finish()
}

/// Binds text parameters (`None` is NULL) to a prepared statement, all results in text.
///
/// # Errors
/// A NUL in a name, more than 65535 parameters, or too long.
pub fn bind<'p>(
    out: &mut Vec<u8>,
    portal: &[u8],
    statement: &[u8],
    parameters: impl IntoIterator<Item = Option<&'p [u8]>>,
) -> Result<(), EncodeError> {
    let mut bind = BindMessage::begin(out, portal, statement)?;
    for parameter in parameters {
        match parameter {
            Some(value) => bind.parameter(value),
            None => bind.null(),
        }
    }
    bind.finish()
}

/// Kind of named object that a Describe or a Close refers to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DescribeTarget {
    /// A prepared statement.
    Statement,
    /// A portal: a statement with its parameters bound.
    Portal,
}

impl DescribeTarget {
    fn byte(self) -> u8 {
        match self {
            Self::Statement => b'S',
            Self::Portal => b'P',
        }
    }
}

/// Asks for the form of a statement or a portal.
pub fn describe(out: &mut Vec<u8>, target: DescribeTarget, name: &[u8]) -> Result<(), EncodeError> {
    let mut message = Builder::begin(out, "Describe", tag::DESCRIBE);
    message.bytes(&[target.byte()]);
    message.text("name", name)?;
    message.finish()
}

/// Runs a portal for at most `rows` rows; 0 means all.
pub fn execute(out: &mut Vec<u8>, portal: &[u8], rows: u32) -> Result<(), EncodeError> {
    let mut message = Builder::begin(out, "Execute", tag::EXECUTE);
    message.text("portal name", portal)?;
    message.bytes(&rows.to_be_bytes());
    message.finish()
}

/// Ends an extended query; the server answers ReadyForQuery.
pub fn sync(out: &mut Vec<u8>) {
    out.extend_from_slice(b"S\0\0\0\x04");
}

/// Ends the session.
pub fn terminate(out: &mut Vec<u8>) {
    out.extend_from_slice(b"X\0\0\0\x04");
}

/// A password, in clear or as an MD5 digest.
pub fn password(out: &mut Vec<u8>, password: &[u8]) -> Result<(), EncodeError> {
    let mut message = Builder::begin(out, "PasswordMessage", tag::PASSWORD);
    message.text("password", password)?;
    message.finish()
}

/// The first message of a SASL exchange.
pub fn sasl_initial_response(
    out: &mut Vec<u8>,
    mechanism: &[u8],
    response: &[u8],
) -> Result<(), EncodeError> {
    let length =
        i32::try_from(response.len()).map_err(|_| EncodeError::TooLong("SASLInitialResponse"))?;
    let mut message = Builder::begin(out, "SASLInitialResponse", tag::PASSWORD);
    message.text("mechanism name", mechanism)?;
    message.bytes(&length.to_be_bytes());
    message.bytes(response);
    message.finish()
}

/// The next message of a SASL exchange.
pub fn sasl_response(out: &mut Vec<u8>, response: &[u8]) -> Result<(), EncodeError> {
    let mut message = Builder::begin(out, "SASLResponse", tag::PASSWORD);
    message.bytes(response);
    message.finish()
}

#[cfg(test)]
mod tests;
