//! Rules of `sslmode` that say when to encrypt, and the one-byte answer to an SSLRequest.
//!
//! The TLS engine belongs to the caller. What is here decides before it and around it.

use std::fmt;
use std::str::FromStr;

use thiserror::Error;

/// The protocol name that a client must offer by ALPN when it starts TLS without an SSLRequest.
pub const ALPN: &[u8] = b"postgresql";

/// Encryption that is wanted, and proof of its identity that the server must give.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub enum SslMode {
    /// Never encrypt.
    Disable,
    /// Encrypt if the server insists.
    Allow,
    /// Encrypt if the server can.
    #[default]
    Prefer,
    /// Encrypt or fail; the certificate is checked only where root certificates are at hand.
    Require,
    /// Encrypt, and check that the certificate comes from a known authority.
    VerifyCa,
    /// Encrypt, check the certificate, and check that it names the host.
    VerifyFull,
}

impl SslMode {
    pub(crate) const ALL: [Self; 6] =
        [Self::Disable, Self::Allow, Self::Prefer, Self::Require, Self::VerifyCa, Self::VerifyFull];

    /// The name in a conninfo string.
    pub fn name(self) -> &'static str {
        match self {
            Self::Disable => "disable",
            Self::Allow => "allow",
            Self::Prefer => "prefer",
            Self::Require => "require",
            Self::VerifyCa => "verify-ca",
            Self::VerifyFull => "verify-full",
        }
    }

    /// Ways to try one host, in order. The next one is tried, on a new connection, when the one
    /// before failed in its TLS handshake or by an error of the server before authentication was
    /// complete; not when the server has declined TLS and then refused. Unix sockets are never encrypted, whatever the mode says.
    pub fn attempts(self, transport: ByteTransport) -> &'static [TlsAttempt] {
        match (transport, self) {
            (ByteTransport::Unix, _) | (_, Self::Disable) => &[TlsAttempt::Plain],
            (_, Self::Allow) => &[TlsAttempt::Plain, TlsAttempt::Tls],
            (_, Self::Prefer) => &[TlsAttempt::TlsOrPlain, TlsAttempt::Plain],
            (_, Self::Require | Self::VerifyCa | Self::VerifyFull) => &[TlsAttempt::Tls],
        }
    }
}

impl fmt::Display for SslMode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// In libpq's words.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("invalid {keyword} value: \"{value}\"")]
pub struct InvalidValue {
    /// The keyword.
    pub keyword: &'static str,
    /// The value that it cannot have.
    pub value: String,
}

impl FromStr for SslMode {
    type Err = InvalidValue;

    fn from_str(text: &str) -> Result<Self, InvalidValue> {
        Self::ALL
            .into_iter()
            .find(|mode| mode.name() == text)
            .ok_or_else(|| InvalidValue { keyword: "sslmode", value: text.to_owned() })
    }
}

/// The way TLS begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum SslNegotiation {
    /// With an SSLRequest.
    #[default]
    Postgres,
    /// At once, with [`ALPN`]; PostgreSQL 17 and later.
    Direct,
}

/// Transport that carries the bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ByteTransport {
    /// A Unix socket.
    Unix,
    /// TCP.
    Tcp,
}

/// One way to try a host.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum TlsAttempt {
    /// Without encryption.
    Plain,
    /// Ask for TLS, and go on without it on the same connection if the server has none.
    TlsOrPlain,
    /// With TLS only.
    Tls,
}

/// Continuation after the server's answer to an SSLRequest.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TlsContinuation {
    /// The TLS handshake, from the next byte on.
    Handshake,
    /// The start-up message, without encryption.
    Plain,
}

/// Reason why TLS does not come about.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
#[allow(missing_docs)]
pub enum NegotiationError {
    #[error("server does not support SSL, but SSL was required")]
    Unsupported,
    /// The server answered with an error, which anybody between could have forged: it is not shown.
    #[error("server sent an error response during SSL exchange")]
    ErrorResponse,
    #[error(
        "received invalid response to SSL negotiation: {}",
        crate::protocol_error::Printable(*.0)
    )]
    Invalid(u8),
    /// Bytes came with the answer: a man in the middle tries to have them taken for encrypted ones.
    #[error("received unencrypted data after SSL response")]
    Stuffed,
}

impl NegotiationError {
    /// The next step for the user.
    pub fn hint(&self) -> Option<&'static str> {
        match self {
            Self::Invalid(_) => Some(crate::startup::FOREIGN_HINT),
            _ => None,
        }
    }
}

/// Meaning of the answer to an SSLRequest; `None` when it has not arrived.
///
/// `input` must be all that has arrived: on [`TlsContinuation::Plain`] and [`TlsContinuation::Handshake`] that is
/// exactly one byte, to be dropped.
pub fn answer(
    attempt: TlsAttempt,
    input: &[u8],
) -> Result<Option<TlsContinuation>, NegotiationError> {
    let Some((&first, rest)) = input.split_first() else {
        return Ok(None);
    };
    let answer = match first {
        b'S' => TlsContinuation::Handshake,
        b'N' if attempt == TlsAttempt::Tls => return Err(NegotiationError::Unsupported),
        b'N' => TlsContinuation::Plain,
        b'E' => return Err(NegotiationError::ErrorResponse),
        other => return Err(NegotiationError::Invalid(other)),
    };
    if rest.is_empty() { Ok(Some(answer)) } else { Err(NegotiationError::Stuffed) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn modes_and_what_they_try() {
        let check = |mode: &str, expected: &[TlsAttempt]| {
            let mode: SslMode = mode.parse().unwrap();
            assert_eq!(mode.attempts(ByteTransport::Tcp), expected);
            assert_eq!(mode.attempts(ByteTransport::Unix), [TlsAttempt::Plain]);
        };
        check("disable", &[TlsAttempt::Plain]);
        check("allow", &[TlsAttempt::Plain, TlsAttempt::Tls]);
        check("prefer", &[TlsAttempt::TlsOrPlain, TlsAttempt::Plain]);
        check("require", &[TlsAttempt::Tls]);
        check("verify-ca", &[TlsAttempt::Tls]);
        check("verify-full", &[TlsAttempt::Tls]);
        assert_eq!(
            "on".parse::<SslMode>().unwrap_err().to_string(),
            "invalid sslmode value: \"on\""
        );
    }

    #[test]
    fn answers_to_an_ssl_request() {
        let check = |attempt, input: &[u8], expected: &str| {
            let shown = match answer(attempt, input) {
                Ok(answer) => format!("{answer:?}"),
                Err(error) => error.to_string(),
            };
            assert_eq!(shown, expected);
        };
        check(TlsAttempt::Tls, b"", "None");
        check(TlsAttempt::Tls, b"S", "Some(Handshake)");
        check(TlsAttempt::TlsOrPlain, b"N", "Some(Plain)");
        check(TlsAttempt::Tls, b"N", "server does not support SSL, but SSL was required");
        check(TlsAttempt::Tls, b"SE", "received unencrypted data after SSL response");
        check(TlsAttempt::TlsOrPlain, b"NR", "received unencrypted data after SSL response");
        check(TlsAttempt::Tls, b"E\0\0", "server sent an error response during SSL exchange");
        check(TlsAttempt::Tls, b"H", "received invalid response to SSL negotiation: \"H\"");
    }
}
