//! Errors of a lab: what was being done, to what, why it failed, what to do next.

use std::fmt::Write;
use std::io;
use std::path::PathBuf;
use std::time::Duration;

use os::init::ProcessExit;
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

pub use guest::{BoundaryFault, GuestError};
pub use host::{HostError, HostErrorKind};
pub use setting::{RefusedSetting, SettingFault};
pub use streaming::{NotStreaming, StreamingLag};

/// A failure of the lab. The message says what and why, [`Error::hint`] what to do next.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
#[allow(missing_docs)]
pub enum Error {
    #[error("no PostgreSQL server found; looked in {}", list(.searched))]
    NoPostgres { searched: Vec<PathBuf> },
    /// A folder that was named, or that is half of an installation.
    #[error("{} holds no usable PostgreSQL: {why}", .bin.display())]
    BadInstallation { bin: PathBuf, why: String },
    #[error(
        "asking the server at {place} for its version: server_version_num is {}",
        .told.as_ref().map_or("nothing".to_owned(), |told| format!("\"{told}\""))
    )]
    NoVersion { place: String, told: Option<String> },
    #[error("PostgreSQL {version} in {} is too old", .bin.display())]
    TooOld { bin: PathBuf, version: Version },
    #[error("{name} is not installed for PostgreSQL {version} ({} is missing)", .looked.display())]
    MissingPart { name: String, version: Box<Version>, looked: PathBuf, pg_config: PathBuf },
    #[error(
        "no PgBouncer{} found; looked in {}",
        .version.as_ref().map_or(String::new(), |version| format!(" {version}")),
        list(.searched)
    )]
    NoPgBouncer {
        /// The version that is wanted, if not any.
        version: Option<String>,
        searched: Vec<PathBuf>,
    },
    #[error("{} is not PgBouncer: {why}", .program.display())]
    BadPgBouncer { program: PathBuf, why: String },
    #[error("{doing} {}: {source}", .path.display())]
    File {
        /// The step, as in "making the directory".
        doing: &'static str,
        path: PathBuf,
        source: io::Error,
    },
    #[error("{} cannot hold a lab: {why}", .directory.display())]
    Directory { directory: PathBuf, why: String },
    #[error("{} cannot hold a lab: its servers may not enter {}", .directory.display(), .closed.display())]
    Closed { directory: PathBuf, uid: u32, closed: PathBuf },
    #[error(
        "{} cannot hold a lab: servers have a /dev/shm of their own, and would not find it there",
        .directory.display()
    )]
    SharedMemoryDirectory { directory: PathBuf },
    #[error("node {node} has lost all its data: {why}")]
    DataLost { node: String, why: String },
    #[error(
        "the path of the Unix socket {} would have {length} bytes; \
         the kernel allows {SOCKET_PATH_BYTES_MAX}", .socket.display()
    )]
    SocketPath {
        socket: PathBuf,
        /// Its path's length in bytes.
        length: usize,
    },
    #[error("PostgreSQL refuses to run as root, and neither user postgres nor nobody exists")]
    NoServerUser,
    #[error("no isolation for the lab's processes: {}", .reasons.join("; "))]
    Isolation {
        /// Each way that was tried, and why it failed.
        reasons: Vec<String>,
    },
    #[error("{doing} of {node}: {source}")]
    Process {
        /// The step, as in "stopping all processes".
        doing: &'static str,
        node: String,
        source: io::Error,
    },
    #[error("running {} in {}: {source}", .program.display(), .directory.display())]
    Execute {
        program: PathBuf,
        directory: PathBuf,
        uid: u32,
        /// The part of either path that this user may not enter, if that is the reason.
        closed: Option<PathBuf>,
        source: io::Error,
    },
    #[error("{name:?} is not a node's name (letters, digits, - and _, at most 40)")]
    NodeName { name: String },
    #[error("there is a node {name} already")]
    NodeExists { name: String },
    #[error("{doing} node {node}: it {state}")]
    State {
        /// The verb, as in "starting".
        doing: &'static str,
        node: String,
        /// The state, as in "is running".
        state: &'static str,
    },
    #[error("making a network namespace for node {node}: only root may")]
    NetworkNeedsRoot { node: String },
    #[error("{node} has no process {process}; it has {}", .known.join(", "))]
    NoProcess { node: String, process: String, known: Vec<String> },
    #[error("fetching the packages {names}: {said}")]
    Packages { names: String, said: String },
    #[error(
        "node {node} cannot listen on loopback or another address of this machine in a network of \
         its own: no client could reach it"
    )]
    NetworkAndLoopback { node: String },
    #[error("there is no program {name}")]
    MissingTool { name: &'static str, package: &'static str },
    #[error("{doing} link {link}: {why}")]
    Link {
        /// The verb, as in "cutting".
        doing: &'static str,
        link: String,
        why: String,
    },
    #[error("shaping link {link}: this kernel has no netem (CONFIG_NET_SCH_NETEM)")]
    NoNetem { link: String },
    #[error("configuring node {node}: {name} {why}")]
    Setting { node: String, name: String, why: SettingFault },
    #[error(transparent)]
    RefusedSetting(RefusedSetting),
    #[error("initialising node {node}: initdb {exit}{}", tail(.output))]
    Initdb { node: String, exit: ProcessExit, output: String },
    #[error("backing up node {primary} to {node}: pg_basebackup {exit}{}", tail(.output))]
    Backup { node: String, primary: String, exit: ProcessExit, output: String },
    #[error("archive and backups of node {node}: pgbackrest {exit}{}", tail(.output))]
    PgBackRest { node: String, exit: ProcessExit, output: String },
    #[error("making node {node} a standby of {primary}: pg_rewind {exit}{}", tail(.output))]
    Rewind { node: String, primary: String, exit: ProcessExit, output: String },
    #[error("making the data of node {node} by pg_upgrade: {why}{}", tail(.log))]
    Upgrade { node: String, why: String, log: String },
    #[error("checking the checksums of node {node}: pg_checksums {exit}{}", tail(.output))]
    Checksums { node: String, exit: ProcessExit, output: String },
    #[error("measuring what a flush costs: pg_test_fsync{}", tail(.said))]
    FlushTest { said: String },
    #[error(transparent)]
    NotStreaming(Box<NotStreaming>),
    #[error(transparent)]
    Behind(Box<StreamingLag>),
    #[error(
        "waiting for standby {standby} of node {primary}: its replication slot {slot} is lost, \
         because the WAL that it reserved was removed"
    )]
    SlotLost { slot: String, standby: String, primary: String },
    #[error("starting node {node}: the server {why}{}", tail(.log))]
    Start { node: String, why: String, log: String },
    #[error("reloading node {node}: {} not applied{}", .names.join(", "), tail(.log))]
    Reload { node: String, names: Vec<String>, log: String },
    #[error("{doing} node {node}: not done after {} s{}", .waited.as_secs_f32(), tail(.log))]
    Timeout {
        /// The verb, as in "stopping".
        doing: &'static str,
        node: String,
        waited: Duration,
        /// The end of its log, or what was seen last.
        log: String,
    },
    /// A server did not stop in time; it still runs.
    #[error(
        "stopping node {node} ({mode}): it still runs after {} s{}", .waited.as_secs_f32(),
        tail(.log)
    )]
    Stop { node: String, mode: StopMode, waited: Duration, log: String },
    #[error("connecting to {server} ({place}): {source}")]
    Connect {
        server: String,
        /// The address, without a password.
        place: String,
        source: Box<ConnectError>,
    },
    #[error("node {node}: {source}")]
    Disk { node: String, source: fault::disk::Error },
    #[error("running {statement:?} on {server}: {}", server::message::chain(.source))]
    Query { server: String, statement: String, source: postgres::Error },
    #[error(transparent)]
    Guest(GuestError),
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
            Self::MissingPart { name, version, pg_config, .. } => {
                Some(advice::how_to_install_part(name, version, pg_config))
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
            Self::NoNetem { .. } => {
                Some("delay it by = \"relay\", or use a kernel that has netem".into())
            }
            Self::File { source, .. } => hint::of_file(source),
            Self::Disk { source, .. } => source.hint(),
            Self::Directory { .. } => {
                Some("name a directory that is empty or does not exist".into())
            }
            Self::SharedMemoryDirectory { .. } => {
                Some("use a directory elsewhere, or set TMPDIR to one, such as /var/tmp".into())
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
            Self::Upgrade { .. } => Some(
                "the upgrade of production would end so, too: do there what it asks for".into(),
            ),
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
