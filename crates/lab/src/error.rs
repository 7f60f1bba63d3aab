//! Errors of a lab: what was being done, to what, why it failed, what to do next.

use std::fmt::Write;
use std::io;
use std::path::PathBuf;
use std::time::Duration;

use os::init::Exit;
use server::ConnectError;
use terms::StopMode;

use crate::advice;
use crate::target_name::TARGET;
use crate::version::{MAJOR_MIN, Version};

mod guest;
mod hint;
mod host;
mod setting;
mod streaming;

pub use guest::GuestError;
pub use host::{HostError, HostErrorKind};
pub use setting::{RefusedSetting, SettingFault};
pub use streaming::{Behind, NotStreaming};

/// A failure of the lab. The message says what and why, [`Error::hint`] what to do next.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
#[allow(missing_docs)]
pub enum Error {
    /// No installation of PostgreSQL anywhere.
    #[error("no PostgreSQL server found; looked in {}", list(.searched))]
    NoPostgres {
        /// The folders that were looked into.
        searched: Vec<PathBuf>,
    },
    /// A folder that was named, or that is half of an installation.
    #[error("{} holds no usable PostgreSQL: {why}", .bin.display())]
    BadInstallation { bin: PathBuf, why: String },
    /// A version that the rig does not know how to drive.
    #[error("PostgreSQL {version} in {} is too old", .bin.display())]
    TooOld {
        /// The folder of its programs.
        bin: PathBuf,
        version: Version,
    },
    /// An extension or module that is not installed.
    #[error("{name} is not installed for PostgreSQL {version} ({} is missing)", .looked.display())]
    MissingPart {
        /// The extension's or library's name.
        name: String,
        /// The version that it is missing for.
        version: Version,
        /// The file that would be there.
        looked: PathBuf,
    },
    /// No PgBouncer anywhere, or none of the version that is wanted.
    #[error(
        "no PgBouncer{} found; looked in {}",
        .version.as_ref().map_or(String::new(), |version| format!(" {version}")),
        list(.searched)
    )]
    NoPgBouncer {
        /// The version that is wanted, if not any.
        version: Option<String>,
        /// The folders that were looked into.
        searched: Vec<PathBuf>,
    },
    /// A PgBouncer that was named.
    #[error("{} is not PgBouncer: {why}", .program.display())]
    BadPgBouncer {
        /// The program that was named.
        program: PathBuf,
        why: String,
    },
    /// A step on the file system.
    #[error("{doing} {}: {source}", .path.display())]
    File {
        /// The step, as in "making the directory".
        doing: &'static str,
        /// The file or directory.
        path: PathBuf,
        source: io::Error,
    },
    /// The directory that was given for a lab cannot be one.
    #[error("{} cannot hold a lab: {why}", .directory.display())]
    Directory { directory: PathBuf, why: String },
    /// The servers' user cannot come to a directory.
    #[error("{} cannot hold a lab: its servers may not enter {}", .directory.display(), .closed.display())]
    Closed {
        directory: PathBuf,
        /// The user that its servers run as.
        uid: u32,
        /// The part of its path that this user may not enter.
        closed: PathBuf,
    },
    /// A power cut has taken all data of a node.
    #[error("node {node} has lost all its data: {why}")]
    DataLost { node: String, why: String },
    /// The kernel's limit on the path of a Unix socket.
    #[error(
        "the path of the Unix socket {} would have {length} bytes; \
         the kernel allows {SOCKET_PATH_BYTES_MAX}", .socket.display()
    )]
    SocketPath {
        socket: PathBuf,
        /// Its path's length in bytes.
        length: usize,
    },
    /// PostgreSQL refuses root, and there is no other user.
    #[error("PostgreSQL refuses to run as root, and neither user postgres nor nobody exists")]
    NoServerUser,
    /// Not even a keeper could be started, or the isolation asked for is not allowed here.
    #[error("no isolation for the lab's processes: {}", .reasons.join("; "))]
    Isolation {
        /// Each way that was tried, and why it failed.
        reasons: Vec<String>,
    },
    /// The init could not do what it was asked.
    #[error("{doing} of {node}: {source}")]
    Process {
        /// The step, as in "stopping all processes".
        doing: &'static str,
        /// The node or program.
        node: String,
        source: io::Error,
    },
    /// A program could not even be executed.
    #[error("running {} in {}: {source}", .program.display(), .directory.display())]
    Execute {
        program: PathBuf,
        /// The directory in which it was to run.
        directory: PathBuf,
        /// The user that it was to run as.
        uid: u32,
        /// The part of either path that this user may not enter, if that is the reason.
        closed: Option<PathBuf>,
        source: io::Error,
    },
    /// A node's name that cannot be a directory's.
    #[error("{name:?} is not a node's name (letters, digits, - and _, at most 40)")]
    NodeName { name: String },
    /// A name twice.
    #[error("there is a node {name} already")]
    NodeExists { name: String },
    /// A verb that the node's state does not allow.
    #[error("{doing} node {node}: it {state}")]
    State {
        /// The verb, as in "starting".
        doing: &'static str,
        node: String,
        /// The state, as in "is running".
        state: &'static str,
    },
    /// Only root makes networks.
    #[error("making a network namespace for node {node}: only root may")]
    NetworkNeedsRoot { node: String },
    /// A station has no process of that name.
    #[error("{node} has no process {process}; it has {}", .known.join(", "))]
    NoProcess {
        node: String,
        /// The name that was given.
        process: String,
        /// The processes that it has.
        known: Vec<String>,
    },
    /// Packages that cannot be had.
    #[error("fetching the packages {names}: {said}")]
    Packages {
        names: String,
        /// The last words of the program that failed.
        said: String,
    },
    /// Loopback is another one in each network, and so are all other addresses.
    #[error(
        "node {node} cannot listen on loopback or another address of this machine in a network of \
         its own: no client could reach it"
    )]
    NetworkAndLoopback { node: String },
    /// A program that sets up networks.
    #[error("there is no program {name}")]
    MissingTool {
        name: &'static str,
        /// The package that it is in.
        package: &'static str,
    },
    /// A link did not do what it was told.
    #[error("{doing} link {link}: {why}")]
    Link {
        /// The verb, as in "cutting".
        doing: &'static str,
        link: String,
        why: String,
    },
    /// A setting that cannot be made.
    #[error("configuring node {node}: {name} {why}")]
    Setting { node: String, name: String, why: SettingFault },
    /// A setting that a server does not take.
    #[error(transparent)]
    RefusedSetting(RefusedSetting),
    /// initdb failed.
    #[error("initialising node {node}: initdb {exit}{}", tail(.output))]
    Initdb {
        node: String,
        exit: Exit,
        /// The end of what it said.
        output: String,
    },
    /// pg_basebackup failed.
    #[error("backing up node {primary} to {node}: pg_basebackup {exit}{}", tail(.output))]
    Backup {
        /// The standby to be.
        node: String,
        /// The node that was backed up.
        primary: String,
        exit: Exit,
        /// The end of what it said.
        output: String,
    },
    /// A server whose data could not be made those of a standby.
    #[error("making node {node} a standby of {primary}: pg_rewind {exit}{}", tail(.output))]
    Rewind {
        /// The standby to be.
        node: String,
        /// The server that it was to follow.
        primary: String,
        exit: Exit,
        /// The end of what it said.
        output: String,
    },
    /// pg_checksums did not get to its end.
    #[error("checking the checksums of node {node}: pg_checksums {exit}{}", tail(.output))]
    Checksums {
        node: String,
        exit: Exit,
        /// The end of what it said.
        output: String,
    },
    /// pg_test_fsync did not measure anything.
    #[error("measuring what a flush costs: pg_test_fsync{}", tail(.said))]
    FlushTest { said: String },
    /// A standby does not stream, or not in the role that it should have.
    #[error(transparent)]
    NotStreaming(Box<NotStreaming>),
    /// A standby did not replay the primary's WAL in time.
    #[error(transparent)]
    Behind(Box<Behind>),
    /// The primary has removed WAL that a standby still needs.
    #[error(
        "waiting for standby {standby} of node {primary}: its replication slot {slot} is lost, \
         because the WAL that it reserved was removed"
    )]
    SlotLost { slot: String, standby: String, primary: String },
    /// A server did not come up.
    #[error("starting node {node}: the server {why}{}", tail(.log))]
    Start {
        node: String,
        why: String,
        /// The end of its log.
        log: String,
    },
    /// A server did not take all of its new settings.
    #[error("reloading node {node}: {} not applied{}", .names.join(", "), tail(.log))]
    Reload {
        node: String,
        /// The settings that still have their old values.
        names: Vec<String>,
        /// The end of its log.
        log: String,
    },
    /// Something did not happen in time.
    #[error("{doing} node {node}: not done after {} s{}", .waited.as_secs_f32(), tail(.log))]
    Timeout {
        /// The verb, as in "stopping".
        doing: &'static str,
        node: String,
        /// The time that it was given.
        waited: Duration,
        /// The end of its log, or what was seen last.
        log: String,
    },
    /// A server did not stop in time; it still runs.
    #[error(
        "stopping node {node} ({mode}): it still runs after {} s{}", .waited.as_secs_f32(),
        tail(.log)
    )]
    Stop {
        node: String,
        /// The mode in which it was to stop.
        mode: StopMode,
        /// The time that it was given.
        waited: Duration,
        /// The end of its log.
        log: String,
    },
    /// No connection.
    #[error("connecting to {server} ({place}): {source}")]
    Connect {
        /// The node or target.
        server: String,
        /// The address, without a password.
        place: String,
        source: Box<ConnectError>,
    },
    /// A node's own disk.
    #[error("node {node}: {source}")]
    Disk {
        node: String,
        /// The fault of its disk.
        source: fault::disk::Error,
    },
    /// A statement of the lab's own failed.
    #[error("running {statement:?} on {server}: {}", server::message::chain(.source))]
    Query {
        /// The node or target.
        server: String,
        statement: String,
        source: postgres::Error,
    },
    /// A run cannot begin on a server of the user's.
    #[error(transparent)]
    Guest(GuestError),
    /// A lab on another host.
    #[error(transparent)]
    Host(HostError),
}

impl Error {
    /// The next step, where there is one.
    pub fn hint(&self) -> Option<String> {
        match self {
            Self::NoPostgres { .. } => Some(advice::how_to_install()),
            Self::BadInstallation { .. } => {
                let hint = "name the folder that holds postgres and initdb: --pg-bin DIR, or --a-bin \
                            DIR and --b-bin DIR of pgrig compare";
                Some(hint.into())
            }
            Self::TooOld { .. } => Some(format!(
                "PostgreSQL {} or later is needed: {}",
                MAJOR_MIN,
                advice::how_to_install()
            )),
            Self::MissingPart { name, version, .. } => {
                Some(advice::how_to_install_part(name, version))
            }
            Self::NoPgBouncer { .. } | Self::BadPgBouncer { .. } => {
                Some(advice::how_to_install_package("pgbouncer"))
            }
            Self::NetworkNeedsRoot { .. } => {
                Some("run as root, or make the link by = \"relay\"".into())
            }
            Self::Packages { .. } => {
                Some("run `apt-get update`; `apt-cache policy NAME` says if one can be had".into())
            }
            Self::NetworkAndLoopback { .. } => Some("have it listen on its Unix socket".into()),
            Self::MissingTool { package, .. } => Some(advice::how_to_install_package(package)),
            Self::Link { why, .. } if why.contains("netem") => {
                Some("delay it by = \"relay\", or use a kernel that has netem".into())
            }
            Self::File { source, .. } => hint::of_file(source),
            Self::Disk { source, .. } => source.hint(),
            Self::Directory { .. } => {
                Some("name a directory that is empty or does not exist".into())
            }
            Self::SocketPath { .. } => {
                Some("use a directory with a shorter path, or set TMPDIR=/tmp".into())
            }
            Self::NoServerUser => Some("run as a plain user, or: useradd --system postgres".into()),
            Self::Execute { closed: Some(closed), uid, .. } | Self::Closed { closed, uid, .. } => {
                Some(format!(
                    "user {uid} may not enter {}: use another directory, or chmod o+x it",
                    closed.display()
                ))
            }
            Self::Setting { why: SettingFault::OfTheLab, .. } => {
                Some("leave it out; the lab chooses where a node listens and logs".into())
            }
            Self::RefusedSetting(_) => Some("correct it, or leave it out".into()),
            Self::Start { log, .. } | Self::Initdb { output: log, .. } => hint::of_log(log),
            Self::Backup { output, .. } => streaming::hint(output),
            Self::Rewind { .. } => Some(hint::of_rewind()),
            Self::NotStreaming(not_streaming) => not_streaming.hint(),
            Self::Behind(behind) => streaming::hint(&behind.log),
            Self::SlotLost { .. } => {
                Some("raise max_slot_wal_keep_size, and make the standby anew from a backup".into())
            }
            Self::Connect { server, source, .. } => connect_hint(server, source),
            Self::Reload { .. } => Some("correct the values; some settings need a restart".into()),
            Self::Stop { mode, .. } => match mode {
                StopMode::Smart => Some("it waits for its clients to leave; stop it fast".into()),
                StopMode::Fast => Some("its last checkpoint may take longer; allow it more".into()),
                StopMode::Immediate => None,
            },
            Self::Guest(error) => Some(error.hint()),
            Self::Host(error) => error.hint(),
            _ => None,
        }
    }
}

/// The next step where a server does not let us in. That a node of the lab does not listen has another
/// reason, which is told before.
fn connect_hint(server: &str, error: &ConnectError) -> Option<String> {
    match error {
        ConnectError::Refused(failure) if failure.is_unreachable && server != TARGET => None,
        error => error.hint(),
    }
}

fn list(paths: &[PathBuf]) -> String {
    let paths: Vec<_> = paths.iter().map(|path| path.display().to_string()).collect();
    paths.join(", ")
}

/// Lines set off below a message.
fn tail(text: &str) -> String {
    let mut lines = String::new();
    for line in text.lines() {
        // Writing to a String cannot fail.
        let _ = write!(lines, "\n  | {line}");
    }
    lines
}

/// `sun_path` holds 108 bytes, the last of them zero (unix(7)).
pub(crate) const SOCKET_PATH_BYTES_MAX: usize = 107;
