//! Errors in a conninfo, in libpq's words.

use thiserror::Error;

use crate::auth::MethodError;

/// Error in a conninfo; libpq's words if libpq has them, since wrappers read them.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[allow(missing_docs)]
pub enum ConninfoError {
    /// No such keyword.
    #[error("invalid connection option \"{0}\"")]
    UnknownKeyword(String),
    /// A keyword without a value.
    #[error("missing \"=\" after \"{0}\" in connection info string")]
    MissingEquals(String),
    /// A quote that is never closed.
    #[error("unterminated quoted string in connection info string")]
    UnterminatedQuote,
    /// `[` without `]`.
    #[error(
        "end of string reached when looking for matching \"]\" in IPv6 host address in URI: \
         \"{0}\""
    )]
    UnterminatedBracket(String),
    /// `[]`
    #[error("IPv6 host address may not be empty in URI: \"{0}\"")]
    EmptyBrackets(String),
    /// Something odd after `]`.
    #[error(
        "unexpected character \"{character}\" at position {position} in URI (expected \":\" or \
         \"/\"): \"{uri}\""
    )]
    AfterBracket {
        character: char,
        /// Its position, in bytes from 1.
        position: usize,
        uri: String,
    },
    /// `?a=b=c`
    #[error("extra key/value separator \"=\" in URI query parameter: \"{0}\"")]
    ExtraEquals(String),
    /// `?a`
    #[error("missing key/value separator \"=\" in URI query parameter: \"{0}\"")]
    MissingUriEquals(String),
    /// `?unknown=1`
    #[error("invalid URI query parameter: \"{0}\"")]
    UnknownUriParameter(String),
    /// `%` without two hexadecimal digits, or bytes that are not UTF-8.
    #[error("invalid percent-encoded token: \"{0}\"")]
    PercentEncoding(String),
    /// `%00`
    #[error("forbidden value %00 in percent-encoded value: \"{0}\"")]
    PercentNul(String),
    /// A blank in a URI.
    #[error("unexpected spaces found in \"{0}\", use percent-encoded spaces (%20) instead")]
    SpacesInUri(String),
    /// A word that this keyword does not take.
    #[error("invalid {keyword} value: \"{value}\"")]
    InvalidValue { keyword: &'static str, value: String },
    /// No version of TLS. libpq puts this keyword alone in quotes, since PostgreSQL 17.
    #[error("invalid \"{keyword}\" value: \"{value}\"")]
    InvalidVersion { keyword: &'static str, value: String },
    /// Not a number.
    #[error("invalid integer value \"{value}\" for connection option \"{keyword}\"")]
    InvalidInteger { keyword: &'static str, value: String },
    /// Not a port.
    #[error("invalid port number: \"{0}\"")]
    InvalidPort(String),
    /// Lists of different lengths.
    #[error("could not match {hosts} host names to {addresses} hostaddr values")]
    HostsAndAddresses { hosts: usize, addresses: usize },
    /// Lists of different lengths.
    #[error("could not match {ports} port numbers to {hosts} hosts")]
    PortsAndHosts { ports: usize, hosts: usize },
    /// Longer than the kernel takes.
    #[error("Unix-domain socket path \"{path}\" is too long (maximum 107 bytes)")]
    SocketPathTooLong { path: String },
    /// No user given, and the operating system has no name for this one.
    #[error("no user name is given, and this process's user has none")]
    NoUser,
    /// `require_auth`
    #[error(transparent)]
    RequireAuth(#[from] MethodError),
    /// TLS at once, or not at all: there is nothing to negotiate.
    #[error(
        "weak sslmode \"{0}\" may not be used with sslnegotiation=direct (use \"require\", \
         \"verify-ca\", or \"verify-full\")"
    )]
    WeakModeWithDirect(String),
    /// Everybody's certificates need the name to be checked.
    #[error("weak sslmode \"{0}\" may not be used with sslrootcert=system (use \"verify-full\")")]
    WeakModeWithSystem(String),
    /// Needs a library that is not here.
    #[error("gssencmode value \"require\" invalid when GSSAPI support is not compiled in")]
    GssRequired,
    /// Not an address.
    #[error("could not parse network address \"{0}\": Name or service not known")]
    InvalidAddress(String),
    /// The least version is above the most.
    #[error("invalid SSL protocol version range")]
    SslVersionRange,
    /// The least version is above the most.
    #[error("min_protocol_version is greater than max_protocol_version")]
    VersionRange,
    /// The named service is nowhere.
    #[error("definition of service \"{0}\" not found")]
    ServiceNotFound(String),
    /// The file that was named is not there.
    #[error("service file \"{0}\" not found")]
    ServiceFileNotFound(String),
    /// A line that is none.
    #[error("syntax error in service file \"{path}\", line {line}")]
    ServiceSyntax {
        path: String,
        /// The line, from 1.
        line: usize,
    },
    /// A service that names a service.
    #[error(
        "nested \"{keyword}\" specifications not supported in service file \"{path}\", line {line}"
    )]
    NestedService {
        keyword: &'static str,
        path: String,
        /// The line, from 1.
        line: usize,
    },
}

impl ConninfoError {
    /// Next step for the user, if the message alone does not say it.
    pub fn hint(&self) -> Option<&'static str> {
        match self {
            Self::UnknownKeyword(_) | Self::UnknownUriParameter(_) => {
                Some("the keywords are libpq's: host, port, dbname, user, sslmode …")
            }
            Self::MissingEquals(_) | Self::UnterminatedQuote => {
                Some("write KEYWORD=VALUE, with quotes around a value that holds spaces")
            }
            Self::PercentEncoding(_) => {
                Some("in a URI, write % as %25, / as %2F, : as %3A and @ as %40")
            }
            Self::ServiceNotFound(_) => Some(
                "services are looked up in PGSERVICEFILE or ~/.pg_service.conf, then in \
                 PGSYSCONFDIR",
            ),
            Self::SocketPathTooLong { .. } => Some("put the socket into a directory higher up"),
            _ => None,
        }
    }
}
