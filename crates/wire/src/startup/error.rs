//! Errors of a start-up.

use thiserror::Error;

use crate::auth::{AuthMethods, ScramError};
use crate::backend::ServerError;
use crate::frontend::EncodeError;
use crate::{ProtocolError, ProtocolVersion, SqlState};

/// Error of a start-up; libpq's words if libpq has them.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[allow(missing_docs)]
pub enum StartupError {
    #[error("{0}")]
    Server(Box<ServerError>),
    /// The server refused in the form of the time before protocol 3.0.
    #[error("{0}")]
    OldServer(String),
    /// The server hung up. The caller reports this one: only it sees the end of the input.
    #[error("server closed the connection unexpectedly")]
    Closed,
    #[error("fe_sendauth: no password supplied")]
    PasswordMissing,
    /// Anybody may have made the socket.
    #[error("no password is sent to this server: {0}")]
    Unvouched(String),
    #[error("authentication method {name} (number {code}) is not supported")]
    UnsupportedMethod { name: &'static str, code: i32 },
    #[error("authentication method requirement \"{required}\" failed: {reason}")]
    MethodNotPermitted { required: AuthMethods, reason: &'static str },
    #[error("none of the server's SASL authentication mechanisms are supported (offered: {0})")]
    NoMechanism(String),
    #[error("{0}")]
    ChannelBinding(&'static str),
    #[error(transparent)]
    Scram(#[from] ScramError),
    #[error("the server ended the SCRAM exchange without showing that it knows the password")]
    Unverified,
    #[error(
        "server only supports protocol version {newest}, but \"min_protocol_version\" was set to \
         {least}"
    )]
    TooOld { least: ProtocolVersion, newest: ProtocolVersion },
    #[error(
        "the server speaks protocol {newest} at most; this client asked for {asked} and puts up \
         with {least}"
    )]
    Version { asked: ProtocolVersion, least: ProtocolVersion, newest: ProtocolVersion },
    #[error("the server rejects protocol options that were not requested: {0}")]
    UnknownOptions(String),
    #[error("the server sent a message that has no place in a start-up: {name}")]
    Unexpected { name: &'static str },
    #[error("the server reports more than 64 KiB of settings or notices at start-up")]
    TooMuchReported,
    #[error(transparent)]
    Protocol(#[from] ProtocolError),
    #[error(transparent)]
    Encode(#[from] EncodeError),
}

/// A limit on the number of connections.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ConnectionLimit {
    /// The role's own.
    Role,
    /// The database's own.
    Database,
    /// `max_connections`.
    Slots,
    /// `max_connections` without the reserved ones.
    Reserved,
    /// A pooler's.
    Pooler,
}

impl StartupError {
    /// The SQLSTATE that the server gave.
    pub fn sql_state(&self) -> Option<SqlState> {
        match self {
            Self::Server(error) => Some(error.sql_state),
            _ => None,
        }
    }

    /// True if another host of a list is to be tried: only if the server says that it takes no
    /// connections now. If it has refused this client, the others are left alone, as by libpq.
    pub fn leads_to_next_host(&self) -> bool {
        self.sql_state() == Some(SqlState::CANNOT_CONNECT_NOW)
    }

    /// True if the same host is to be tried with the next of [`crate::tls::SslMode::attempts`]: if
    /// the server itself has refused, since pg_hba.conf may tell encrypted from plain.
    pub fn leads_to_next_attempt(&self) -> bool {
        matches!(self, Self::Server(_))
    }

    /// The limit on connections that the server has reached. Messages are translated, and the function
    /// that reports one is not; a pooler names none.
    pub fn limit(&self) -> Option<ConnectionLimit> {
        let Self::Server(error) = self else { return None };
        let is_limit = error.sql_state == SqlState::TOO_MANY_CONNECTIONS;
        match error.routine.as_deref() {
            None if is_limit || error.sql_state == SqlState::PROTOCOL_VIOLATION => {
                Some(ConnectionLimit::Pooler)
            }
            _ if !is_limit => None,
            Some("InitializeSessionUserId") => Some(ConnectionLimit::Role),
            Some("CheckMyDatabase") => Some(ConnectionLimit::Database),
            Some("InitPostgres") => Some(ConnectionLimit::Reserved),
            Some(_) | None => Some(ConnectionLimit::Slots),
        }
    }

    /// Says what to do next, where the server itself does not.
    pub fn hint(&self) -> Option<&'static str> {
        match self {
            Self::Server(error) if error.hint.is_some() => None,
            Self::Server(error) => server_hint(error.sql_state),
            Self::Closed => Some(
                "the server's log says why; it may be at its connection limit or shutting down",
            ),
            Self::PasswordMissing => Some(PASSWORD_HINT),
            Self::Unvouched(_) => Some(
                "if that user runs the server, say so by requirepeer=USER in the connection string; or \
                 have the server make its socket in a directory that only its user may write \
                 (unix_socket_directories)",
            ),
            Self::UnsupportedMethod { .. } | Self::NoMechanism(_) => Some(
                "let this client in by scram-sha-256, md5, password, cert, peer or trust \
                 (pg_hba.conf)",
            ),
            Self::ChannelBinding(_) => {
                Some("use sslmode=require and scram-sha-256, or channel_binding=prefer")
            }
            Self::Protocol(_) => Some(FOREIGN_HINT),
            _ => None,
        }
    }
}

/// The next step where something else than PostgreSQL answers.
pub(crate) const FOREIGN_HINT: &str =
    "what answers there does not speak PostgreSQL's protocol: correct the host and the port";

const PASSWORD_HINT: &str = "give the password in PGPASSWORD or in a password file (~/.pgpass)";

fn server_hint(sql_state: SqlState) -> Option<&'static str> {
    match sql_state {
        SqlState::TOO_MANY_CONNECTIONS => {
            Some("raise max_connections (it needs a restart), or use fewer clients")
        }
        SqlState::INVALID_PASSWORD => Some(PASSWORD_HINT),
        SqlState::INVALID_CATALOG_NAME => {
            Some("create that database (createdb), or name another one")
        }
        SqlState::CANNOT_CONNECT_NOW => Some("the server is starting or stopping: try again"),
        _ => None,
    }
}
