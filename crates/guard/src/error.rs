//! Errors of the guard.

use std::io;
use std::path::{Path, PathBuf};

use crate::kinds::kinds;

/// Error of the guard.
#[derive(Debug, thiserror::Error)]
#[allow(missing_docs)]
pub enum Error {
    #[error("connecting to {place}: {why}")]
    Connect { place: String, why: String },
    #[error("{doing}: {why}")]
    Server { doing: &'static str, why: String },
    #[error("{doing}: no answer within {seconds} s")]
    Silence { doing: &'static str, seconds: u64 },
    #[error("{doing} {}: {source}", path.display())]
    File { doing: &'static str, path: PathBuf, source: io::Error },
    #[error("reading {}: {why}", path.display())]
    Content { path: PathBuf, why: String },
    #[error("another guard uses the state directory {}", path.display())]
    StateInUse { path: PathBuf },
    #[error("the state directory {} {why}", path.display())]
    NoState { path: PathBuf, why: &'static str },
    #[error("the state directory {} {why}", path.display())]
    NotPrivate { path: PathBuf, why: String },
    #[error(
        "{} is the state of another cluster: its system identifier is {theirs}, the server's is \
         {ours}", path.display()
    )]
    OtherCluster { path: PathBuf, theirs: String, ours: String },
    #[error("another guard is in charge of this server: {who}")]
    SecondGuard { who: String },
    #[error("{manager} is in charge of this server: {evidence}")]
    Managed { manager: &'static str, evidence: String },
    #[error("synchronous_standby_names comes from the server's command line")]
    CommandLine,
    #[error("allow_alter_system is off on this server")]
    AlterSystemOff,
    #[error("the server is PostgreSQL {version}; the guard needs 10 or later")]
    Version { version: String },
    #[error("synchronous_standby_names has a value that the guard does not understand: \"{text}\"")]
    Setting { text: String },
    #[error(
        "another program changes synchronous_standby_names back: {times} times in a row, each within \
         {seconds} s of the guard's change, {setting} was in force again"
    )]
    Overruled { times: u32, seconds: u64, setting: String },
    #[error("role {role} lacks rights: {missing}")]
    Rights { role: String, missing: String, grants: Vec<String> },
}

impl Error {
    /// Next step for the user.
    pub fn hint(&self) -> Option<String> {
        let hint = match self {
            Error::Connect { .. } => {
                "name the primary as in `pgrig-guard host=/run/postgresql`, or by PGHOST and so on"
            }
            Error::StateInUse { .. } => "give each guard a --state directory of its own",
            Error::NotPrivate { path, .. } => {
                return Some(format!(
                    "nobody but the guard's user may own it or write there: chmod go-w {0}, or chown, \
                     or name another --state",
                    path.display()
                ));
            }
            Error::OtherCluster { .. } => {
                "name this server's own state directory with --state, or a new one"
            }
            Error::SecondGuard { .. } => {
                "one guard a server; `pgrig-guard status` says what it does"
            }
            Error::Managed { .. } => {
                "leave synchronous replication to it: it has settings for that, and with automatic \
                 promotion a primary without sync mode becomes split brain"
            }
            Error::NoState { .. } => "name the directory that the guard was started with",
            Error::Setting { .. } => {
                "write it as the manual of PostgreSQL does: a list of names, or ANY or FIRST, a number, \
                 and the list in parentheses"
            }
            Error::Overruled { .. } => {
                "find the program, as the server's log names the session that reloads; either it or the \
                 guard has the setting"
            }
            Error::CommandLine => {
                "take it from the command line (-c, or postgres's start script) and put it into \
                 postgresql.conf"
            }
            Error::AlterSystemOff => "the guard changes a setting; set allow_alter_system = on",
            Error::Rights { grants, .. } => {
                return Some(format!("as a superuser:\n{}", indented(grants)));
            }
            Error::Server { .. }
            | Error::Silence { .. }
            | Error::File { .. }
            | Error::Content { .. }
            | Error::Version { .. } => return None,
        };
        Some(hint.to_owned())
    }

    /// True if another connection may help.
    pub(crate) fn may_pass(&self) -> bool {
        matches!(self, Error::Connect { .. } | Error::Server { .. } | Error::Silence { .. })
    }
}

kinds! { Error:
    Connect => "connect",
    Server => "server",
    Silence => "silence",
    File => "file",
    Content => "content",
    StateInUse => "state_in_use",
    NoState => "no_state",
    NotPrivate => "not_private",
    OtherCluster => "other_cluster",
    SecondGuard => "second_guard",
    Managed => "managed",
    CommandLine => "command_line",
    AlterSystemOff => "alter_system_off",
    Version => "version",
    Setting => "setting",
    Overruled => "overruled",
    Rights => "rights",
}

pub(crate) fn file(doing: &'static str, path: &Path) -> impl FnOnce(io::Error) -> Error {
    let path = path.to_owned();
    move |source| Error::File { doing, path, source }
}

fn indented(lines: &[String]) -> String {
    let lines: Vec<String> = lines.iter().map(|line| format!("    {line}")).collect();
    lines.join("\n")
}
