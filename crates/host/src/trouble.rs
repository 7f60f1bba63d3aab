//! Reasons why a host cannot be used.

use std::time::Duration;

use thiserror::Error;

/// Reason why a host cannot be used. The text is about the launcher and names no host, so that
/// hosts with the same trouble can share it.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[allow(missing_docs)]
pub enum LauncherTrouble {
    #[error("starting the launcher {program}: {why}")]
    NoLauncher {
        /// The first word of `launch`.
        program: String,
        why: String,
    },
    #[error("there is no {program} on the host{}", quoted(said))]
    NoProgram { program: String, said: String },
    #[error("the launcher {how} before pgrig answered{}", quoted(said))]
    Ended { how: String, said: String },
    #[error("the launcher ran for {} s, and pgrig did not answer{}", waited.as_secs(), quoted(said))]
    Silent { waited: Duration, said: String },
    #[error("interrupted while waiting for an answer")]
    Interrupted,
    #[error("more than {most} came before pgrig's first line, the last{}", quoted(said))]
    Chatter { most: &'static str, said: String },
    #[error("the greeting of pgrig there cannot be read: {why}")]
    Greeting { why: String },
    #[error("pgrig there is {theirs}, here it is {ours}")]
    Version { theirs: String, ours: String },
    #[error("copying pgrig to {path}: {why}")]
    Push { path: String, why: String },
    #[error("{0}")]
    Lost(String),
    #[error("starting a process: {0}")]
    Process(String),
    #[error("the clock is known to {bound_ms:.1} ms only; moments on this host may be off by as much", bound_ms = *bound_ns as f64 / 1e6)]
    Clock {
        /// Half of the shortest round trip, and what the drift adds.
        bound_ns: u64,
    },
    #[error("no connection to {address}: {why}")]
    Unreachable { address: String, why: String },
    #[error("the host cannot listen on {address}: {why}")]
    NotItsAddress { address: String, why: String },
    #[error("the disk of the directory for labs cannot be looked at: {why}")]
    NoDisk { why: String },
}

fn quoted(said: &str) -> String {
    match said.trim() {
        "" => String::new(),
        said => format!(": {}", short(said)),
    }
}

/// As much of a foreign line as a message has room for.
pub fn short(line: &str) -> String {
    match line.char_indices().nth(200) {
        Some((end, _)) => format!("{}…", &line[..end]),
        None => line.to_owned(),
    }
}

impl LauncherTrouble {
    /// Next step for the user.
    pub fn hint(&self) -> Option<&'static str> {
        Some(match self {
            LauncherTrouble::NoLauncher { .. } => {
                "`launch` begins with a program of this machine, as in launch = \"ssh db1\""
            }
            LauncherTrouble::NoProgram { .. } => {
                "copy it there with --push, or name it: program = \"/opt/pgrig\""
            }
            LauncherTrouble::Ended { .. } => {
                "the launcher must run a command without asking anything: try it with `true` instead \
                 of pgrig. It has no terminal, so a password cannot be asked for; ssh needs a key, \
                 and tells more with -v"
            }
            LauncherTrouble::Silent { .. } => {
                "does the launcher ask for something, or wait for an allocation? Raise the host's \
                 `timeout`, or with ssh add -o BatchMode=yes to see what it would ask"
            }
            LauncherTrouble::Chatter { .. } => {
                "the login scripts there print too much: move it behind a test for a terminal"
            }
            LauncherTrouble::Greeting { .. } => {
                "something else than this pgrig answers there: look at what `launch` and `program` run"
            }
            LauncherTrouble::Version { .. } => "use the same pgrig everywhere, or --push",
            LauncherTrouble::Push { .. } => "is /tmp there writable, and may programs run from it?",
            LauncherTrouble::Clock { .. } => "a shorter way to the host bounds its clock better",
            LauncherTrouble::Unreachable { .. } => "a firewall, or an address of another network?",
            LauncherTrouble::NotItsAddress { .. } => {
                "`address` is where other hosts reach this one"
            }
            LauncherTrouble::NoDisk { .. } => "TMPDIR on the host names the directory for labs",
            LauncherTrouble::Interrupted
            | LauncherTrouble::Lost(_)
            | LauncherTrouble::Process(_) => return None,
        })
    }
}
