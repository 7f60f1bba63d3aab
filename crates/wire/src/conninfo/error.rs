//! Errors in a conninfo, in libpq's words.

use thiserror::Error;

use crate::auth::MethodError;

/// Error in a conninfo; libpq's words if libpq has them, since wrappers read them.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[allow(missing_docs)]
pub enum ConninfoError {
    #[error("invalid connection option \"{0}\"")]
    UnknownKeyword(String),
    #[error("missing \"=\" after \"{0}\" in connection info string")]
    MissingEquals(String),
    #[error("unterminated quoted string in connection info string")]
    UnterminatedQuote,
    #[error(
        "end of string reached when looking for matching \"]\" in IPv6 host address in URI: \
         \"{0}\""
    )]
    UnterminatedBracket(String),
    #[error("IPv6 host address may not be empty in URI: \"{0}\"")]
    EmptyBrackets(String),
    #[error(
        "unexpected character \"{character}\" at position {position} in URI (expected \":\" or \
         \"/\"): \"{uri}\""
    )]
    AfterBracket {
        character: char,
        /// The position, in bytes from 1.
        position: usize,
        uri: String,
    },
    #[error("extra key/value separator \"=\" in URI query parameter: \"{0}\"")]
    ExtraEquals(String),
    #[error("missing key/value separator \"=\" in URI query parameter: \"{0}\"")]
    MissingUriEquals(String),
    #[error("invalid URI query parameter: \"{0}\"")]
    UnknownUriParameter(String),
    /// libpq would take a part of the password for a host or a port, and its messages would show it.
    #[error(
        "a \"@\", \"/\" or \"?\" in the user name or the password of the URI is not percent-encoded"
    )]
    NotEncoded,
    #[error("\"{0}:\" is not the beginning of a connection URI")]
    ForeignScheme(String),
    #[error("a database name with \":\" and \"@\" looks like a URI without its beginning")]
    NoScheme,
    #[error("invalid percent-encoded token: \"{0}\"")]
    PercentEncoding(String),
    #[error("forbidden value %00 in percent-encoded value: \"{0}\"")]
    PercentNul(String),
    #[error("unexpected spaces found in \"{0}\", use percent-encoded spaces (%20) instead")]
    SpacesInUri(String),
    #[error("invalid {keyword} value: \"{value}\"")]
    InvalidValue { keyword: &'static str, value: String },
    /// No version of TLS. libpq puts this keyword alone in quotes, since PostgreSQL 17.
    #[error("invalid \"{keyword}\" value: \"{value}\"")]
    InvalidVersion { keyword: &'static str, value: String },
    #[error("invalid integer value \"{value}\" for connection option \"{keyword}\"")]
    InvalidInteger { keyword: &'static str, value: String },
    #[error("invalid port number: \"{0}\"")]
    InvalidPort(String),
    #[error("could not match {hosts} host names to {addresses} hostaddr values")]
    HostsAndAddresses { hosts: usize, addresses: usize },
    #[error("could not match {ports} port numbers to {hosts} hosts")]
    PortsAndHosts { ports: usize, hosts: usize },
    #[error("Unix-domain socket path \"{path}\" is too long (maximum 107 bytes)")]
    SocketPathTooLong { path: String },
    #[error("no user name is given, and this process's user has none")]
    NoUser,
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
    #[error("could not parse network address \"{0}\": Name or service not known")]
    InvalidAddress(String),
    #[error("invalid SSL protocol version range")]
    SslVersionRange,
    #[error("min_protocol_version is greater than max_protocol_version")]
    VersionRange,
    #[error("definition of service \"{0}\" not found")]
    ServiceNotFound(String),
    #[error("service file \"{0}\" not found")]
    ServiceFileNotFound(String),
    #[error("syntax error in service file \"{path}\", line {line}")]
    ServiceSyntax {
        path: String,
        /// The line, from 1.
        line: usize,
    },
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

/// What stands for text that may be a password.
pub(super) const HIDDEN: &str = "…";

/// Text of the user's as a message repeats it: without what may be a password.
pub(super) fn shown(text: &str) -> String {
    let lower = text.to_ascii_lowercase();
    let secret = ["password", "secret", "scram_"].iter().filter_map(|word| lower.find(word)).min();
    let (text, end) = secret.map_or((text, ""), |at| (&text[..at], HIDDEN));
    match text.rsplit_once('@') {
        Some((_, place)) => format!("{HIDDEN}@{place}{end}"),
        None => format!("{text}{end}"),
    }
}

impl ConninfoError {
    /// The same error about a word that stands behind a password, of which it may be a part.
    pub(super) fn behind_secret(self) -> Self {
        let hidden = || HIDDEN.to_owned();
        match self {
            Self::UnknownKeyword(_) => Self::UnknownKeyword(hidden()),
            Self::MissingEquals(_) => Self::MissingEquals(hidden()),
            Self::UnknownUriParameter(_) => Self::UnknownUriParameter(hidden()),
            Self::MissingUriEquals(_) => Self::MissingUriEquals(hidden()),
            Self::ExtraEquals(_) => Self::ExtraEquals(hidden()),
            Self::PercentEncoding(_) => Self::PercentEncoding(hidden()),
            Self::PercentNul(_) => Self::PercentNul(hidden()),
            Self::SpacesInUri(_) => Self::SpacesInUri(hidden()),
            Self::InvalidInteger { keyword, .. } => {
                Self::InvalidInteger { keyword, value: hidden() }
            }
            other => other,
        }
    }

    /// Next step for the user, if the message alone does not say it.
    pub fn hint(&self) -> Option<&'static str> {
        match self {
            Self::UnknownKeyword(_) | Self::UnknownUriParameter(_) => {
                Some("the keywords are libpq's: host, port, dbname, user, sslmode …")
            }
            Self::MissingEquals(_) | Self::UnterminatedQuote => {
                Some("write KEYWORD=VALUE, with quotes around a value that holds spaces")
            }
            Self::PercentEncoding(_) | Self::NotEncoded => {
                Some("in a URI, write % as %25, / as %2F, : as %3A, ? as %3F and @ as %40")
            }
            Self::ForeignScheme(_) | Self::NoScheme => {
                Some("a connection URI begins with postgresql:// or postgres://")
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
