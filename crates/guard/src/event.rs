//! Events that a guard reports while it runs: for people by `Display`, for programs by serde.

use std::fmt;
use std::time::Duration;

use serde::Serialize;

use crate::kinds::kinds;

/// Something that a guard tells.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(tag = "event", rename_all = "snake_case")]
#[allow(missing_docs)] // Each field is what its name says.
pub enum GuardEvent {
    /// It has begun to guard a primary.
    Guarding { place: String, version: String, asked: String, in_force: String, is_dry_run: bool },
    /// There is nothing to guard: commits are asked to wait for no standby.
    NothingAsked,
    /// Commits do not wait, whatever the setting says.
    CommitsDoNotWait { synchronous_commit: String },
    /// The server is another machine.
    Remote,
    /// The server is a standby: nothing is done until it is promoted.
    Standby,
    /// The connection is lost; it is tried again.
    Lost { why: String },
    /// A session that an earlier guard of the same state directory has left is ended.
    TookOver { who: String },
    /// A session that is no guard's holds the lock of guards, and is passed over.
    ForeignLock { who: String },
    /// A standby has come.
    StandbyCame { name: String, is_asked_for: bool },
    /// A standby has gone.
    StandbyGone { name: String },
    /// Commits have been waiting for half the grace.
    Waiting { commits: usize, seconds: f64, grace_seconds: f64 },
    /// Commits wait for standbys that have flushed them and do not replay, and no weaker form helps.
    NotReplayed { setting: String },
    /// The setting is changed; the window is in the record already.
    Changing { from: String, to: String, confirmations: usize, why: String, window: u64 },
    /// The change is in force, and the commits that waited have gone on.
    InForce { setting: String, released: usize, after_ms: u64 },
    /// The change is not in force, or commits still wait.
    NotInForce { setting: String, waiting: usize },
    /// Without `--dry-run` the setting would be changed.
    WouldChange { from: String, to: String, why: String },
    /// A person has changed the setting: this is what is asked for.
    Adopted { setting: String, place: Option<String> },
    /// The configuration files have an error, because of which a reload does not put them in force.
    FileFault { why: String },
    /// An exposure window is over.
    Closed { window: u64, why: String, confirmed_lsn: Option<String> },
    /// The record cannot be written: until it can, the setting is not lowered and no window is closed.
    NoRecord { why: String },
    /// The guard has ended.
    Ended { in_force: String, asked: String, window: Option<u64> },
}

impl GuardEvent {
    /// True if it changes which standbys commits wait for or what is exposed, or if the guard could not
    /// change that.
    pub fn is_change(&self) -> bool {
        matches!(
            self,
            GuardEvent::Changing { .. }
                | GuardEvent::Adopted { .. }
                | GuardEvent::Closed { .. }
                | GuardEvent::NoRecord { .. }
        )
    }
}

kinds! { GuardEvent:
    Guarding => "guarding",
    NothingAsked => "nothing_asked",
    CommitsDoNotWait => "commits_do_not_wait",
    Remote => "remote",
    Standby => "standby",
    Lost => "lost",
    TookOver => "took_over",
    ForeignLock => "foreign_lock",
    StandbyCame => "standby_came",
    StandbyGone => "standby_gone",
    Waiting => "waiting",
    NotReplayed => "not_replayed",
    Changing => "changing",
    InForce => "in_force",
    NotInForce => "not_in_force",
    WouldChange => "would_change",
    Adopted => "adopted",
    FileFault => "file_fault",
    Closed => "closed",
    NoRecord => "no_record",
    Ended => "ended",
}

impl fmt::Display for GuardEvent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            GuardEvent::Guarding { place, version, asked, in_force, is_dry_run } => {
                let verb = if *is_dry_run { "watching (dry run)" } else { "guarding" };
                write!(
                    f,
                    "{verb} PostgreSQL {version} at {place}: {} is asked for",
                    called(asked)
                )?;
                match in_force == asked {
                    true => Ok(()),
                    false => write!(f, ", {} is in force", called(in_force)),
                }
            }
            GuardEvent::NothingAsked => {
                f.write_str("synchronous_standby_names is empty: nothing to guard until it is set")
            }
            GuardEvent::Standby => {
                f.write_str("the server is a standby: doing nothing until it is promoted")
            }
            GuardEvent::Lost { why } => write!(f, "no connection, trying again: {why}"),
            GuardEvent::CommitsDoNotWait { synchronous_commit } => write!(
                f,
                "synchronous_commit is {synchronous_commit} by default: commits wait for no \
                 standby unless their session says otherwise"
            ),
            GuardEvent::Remote => f.write_str(
                "the server is another machine: when the network between is down, nobody helps \
                 commits on; better run the guard there",
            ),
            GuardEvent::TookOver { who } => {
                write!(f, "ended the session that an earlier guard has left: {who}")
            }
            GuardEvent::ForeignLock { who } => write!(
                f,
                "a session that is no guard's holds the lock of guards, and is passed over: {who}"
            ),
            GuardEvent::NotReplayed { setting } => write!(
                f,
                "commits wait for standbys that have flushed them and do not replay: {} stays in force, \
                 because sessions that ask for less than remote_apply are served",
                called(setting)
            ),
            GuardEvent::StandbyCame { name, is_asked_for: true } => {
                write!(f, "standby {name} is connected")
            }
            GuardEvent::StandbyCame { name, is_asked_for: false } => write!(
                f,
                "standby {name} is connected, but synchronous_standby_names does not name it: no \
                 commit waits for it"
            ),
            GuardEvent::StandbyGone { name } => write!(f, "standby {name} is gone"),
            GuardEvent::Waiting { commits, seconds, grace_seconds } => write!(
                f,
                "{commits} {} for a standby, the oldest for {seconds:.1} s; the grace is \
                 {grace_seconds} s",
                if *commits == 1 { "commit waits" } else { "commits wait" }
            ),
            GuardEvent::Changing { from, to, why, window, .. } => write!(
                f,
                "{} instead of {}, because {why}; exposure window {window}",
                called(to),
                called(from)
            ),
            GuardEvent::InForce { setting, released, after_ms } => {
                write!(f, "{} is in force after {after_ms} ms", called(setting))?;
                match released {
                    0 => Ok(()),
                    1 => f.write_str(", the commit that waited has gone on"),
                    n => write!(f, ", the {n} commits that waited have gone on"),
                }
            }
            GuardEvent::NotInForce { setting, waiting } => {
                write!(f, "{} shows no effect yet; commits that wait: {waiting}", called(setting))
            }
            GuardEvent::WouldChange { from, to, why } => {
                write!(f, "would put {} instead of {}, because {why}", called(to), called(from))
            }
            GuardEvent::Adopted { setting, place } => {
                write!(f, "another session has changed the setting: guarding {}", called(setting))?;
                match place {
                    Some(place) => write!(f, ", as in {place}"),
                    None => Ok(()),
                }
            }
            GuardEvent::FileFault { why } => write!(
                f,
                "an error in the configuration files, whose setting is not adopted until it is \
                 mended: {why}"
            ),
            GuardEvent::Closed { window, why, .. } => {
                write!(f, "exposure window {window} ends: {why}")
            }
            GuardEvent::NoRecord { why } => {
                write!(f, "until the record can be written, the setting is not lowered: {why}")
            }
            GuardEvent::Ended { in_force, asked, window: None } if in_force == asked => {
                f.write_str("ended; the setting is as it was asked for")
            }
            GuardEvent::Ended { in_force, asked, window } => {
                write!(
                    f,
                    "ended, and left {} in force; {} is asked for",
                    called(in_force),
                    called(asked)
                )?;
                if let Some(window) = window {
                    write!(f, ", and exposure window {window} is open")?;
                }
                f.write_str(": the next guard goes on from here")
            }
        }
    }
}

/// A setting in a sentence.
pub(crate) fn called(setting: &str) -> String {
    match setting {
        "" => "no sync mode".to_owned(),
        setting => setting.to_owned(),
    }
}

pub(crate) fn seconds(time: Duration) -> String {
    format!("{:.1} s", time.as_secs_f64())
}
