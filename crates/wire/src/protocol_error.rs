//! Errors in the bytes that a server sends.

use thiserror::Error;

/// Bytes that are not the PostgreSQL protocol, or not where they stand.
///
/// None of these can be repaired: after one, the position of the next message is unknown and the
/// connection must be closed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
#[allow(missing_docs)]
pub enum ProtocolError {
    #[error("the server sent a message of unknown type {}", Printable(*tag))]
    UnknownTag { tag: u8 },
    #[error(
        "the server sent a {} message ({}) that claims {length} bytes, which cannot be",
        crate::tag::name(*tag),
        Printable(*tag)
    )]
    Length {
        tag: u8,
        /// The length word as received, which includes its own four bytes.
        length: u32,
    },
    #[error(
        "the server sent a malformed {} message ({}): {reason}",
        crate::tag::name(*tag),
        Printable(*tag)
    )]
    Malformed { tag: u8, reason: &'static str },
}

/// A byte shown as a character where it has one, else as a number.
pub(crate) struct Printable(pub(crate) u8);

impl std::fmt::Display for Printable {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        if self.0.is_ascii_graphic() {
            write!(f, "\"{}\"", self.0 as char)
        } else {
            write!(f, "0x{:02x}", self.0)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_name_what_arrived() {
        let check = |error: ProtocolError, expected: &str| assert_eq!(error.to_string(), expected);
        check(
            ProtocolError::UnknownTag { tag: 0 },
            "the server sent a message of unknown type 0x00",
        );
        check(
            ProtocolError::Length { tag: b'Z', length: 9 },
            "the server sent a ReadyForQuery message (\"Z\") that claims 9 bytes, which cannot be",
        );
        check(
            ProtocolError::Malformed { tag: b'K', reason: "it ends too early" },
            "the server sent a malformed BackendKeyData message (\"K\"): it ends too early",
        );
    }
}
