//! Why no server of a route let a client in.

use wire::SqlState;
use wire::startup::{ConnectionLimit, Login, StartupError};

/// Why no server of a route let a client in.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RouteFailure {
    /// Every attempt and why it failed, in libpq's words.
    pub message: String,
    /// SQLSTATE of the first attempt whose server gave one.
    pub sqlstate: Option<SqlState>,
    /// The advice for the first attempt that has one.
    pub hint: Option<String>,
    /// True if a server asked for a password and there was none.
    pub wants_password: bool,
    /// True if no process took the last connection.
    pub is_unreachable: bool,
    /// True if the last address gave no answer in its time.
    pub is_silent: bool,
    /// The first limit on connections that was reached.
    pub limit: Option<ReachedLimit>,
}

/// A limit on connections, and for whom it was reached.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReachedLimit {
    /// The limit.
    pub limit: ConnectionLimit,
    /// The role that logged in.
    pub user: String,
    /// The database.
    pub database: String,
}

impl ReachedLimit {
    /// The limit that a server told of when it refused this login.
    pub(super) fn of(error: &StartupError, login: &Login) -> Option<ReachedLimit> {
        let user = login.user.clone();
        let database = login.database.clone().unwrap_or_else(|| user.clone());
        error.limit().map(|limit| ReachedLimit { limit, user, database })
    }
}

impl RouteFailure {
    /// A failure of which only the message is known.
    pub(super) fn new(message: impl Into<String>) -> Self {
        RouteFailure { message: message.into(), ..RouteFailure::default() }
    }

    /// This failure and the one of the next attempt. Every attempt is told, as by libpq; the first one
    /// with a cause decides what is counted and what to do.
    pub(super) fn followed_by(self, next: RouteFailure) -> RouteFailure {
        RouteFailure {
            message: format!("{}\n{}", self.message, next.message),
            sqlstate: self.sqlstate.or(next.sqlstate),
            limit: self.limit.or(next.limit),
            hint: self.hint.or(next.hint),
            wants_password: self.wants_password || next.wants_password,
            ..next
        }
    }
}

impl std::fmt::Display for RouteFailure {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for RouteFailure {}
