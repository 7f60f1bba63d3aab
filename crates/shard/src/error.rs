//! Errors of a cluster: what was being done, to what, why it failed, what to do next.

use std::time::Duration;

use postgres::error::SqlState;
use server::LimitReached;

#[cfg(test)]
mod page;

/// A failure. The message says what and why, [`Error::hint`] what to do next.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
#[allow(missing_docs)]
pub enum Error {
    #[error("connecting to {server} ({place}): {source}")]
    Connect {
        server: String,
        /// Its address, without a password.
        place: String,
        source: server::ConnectError,
    },
    #[error("what is given for {server} is no connection string: {source}")]
    Conninfo { server: String, source: server::ConninfoError },
    #[error("{doing} on {server}: {}", server::message::chain(.source))]
    Statement {
        /// The step, as in "fencing".
        doing: &'static str,
        server: String,
        source: postgres::Error,
    },
    #[error("{what}")]
    Refused { what: String, hint: String },
    #[error("{what}")]
    MissingPart { what: String },
    #[error(
        "the proxy and the nodes contradict each other, and neither is certain to be right:{}",
        lines(.table)
    )]
    Undecided {
        /// The words of each server, a line for buckets of which they are the same.
        table: Vec<String>,
    },
    #[error("nodes are not where version {version} of the mapping has them{}", lines(.table))]
    OutOfStep { table: Vec<String>, version: i64 },
    #[error(
        "node {node} was to get version {version} of the mapping, and serves other buckets than that has \
         there"
    )]
    Certificate { node: i32, version: i64 },
    #[error(
        "another pgrig-shard is at work on this cluster{}",
        .pid.map_or(String::new(), |pid| format!(" (process {pid} of the proxy's server)"))
    )]
    Busy { pid: Option<i32> },
    #[error(
        "copying from node {from} to node {to}: node {to} has failed {failures} times without progress"
    )]
    Copy { from: i32, to: i32, failures: i64 },
    #[error("copying from node {from} to node {to} was begun anew {times} times: {why}")]
    GivenUp { from: i32, to: i32, times: u32, why: String },
    #[error("node {from} still uses the replication slot {slot} after {} s", .waited.as_secs())]
    SlotInUse { from: i32, slot: String, waited: Duration },
    #[error(
        "moving buckets from node {from} to node {to}: {what} within {} s; \
         they stay on node {from}", .waited.as_secs_f32()
    )]
    Fence { from: i32, to: i32, what: String, waited: Duration },
    #[error(
        "moving buckets from node {from} to node {to}: {table} has {source_rows} rows there and \
         {} here, or their checksums differ; they stay on node {from}",
        .target_rows.map_or("is not".to_owned(), |rows| rows.to_string())
    )]
    Differs { from: i32, to: i32, table: String, source_rows: i64, target_rows: Option<i64> },
    #[error("stopped before the move was complete")]
    Stopped,
}

impl Error {
    /// Next step for the user, if one can be named.
    pub fn hint(&self) -> Option<String> {
        match self {
            Self::Refused { hint, .. } => Some(hint.clone()),
            Self::MissingPart { .. } => {
                Some("install it there: apt-get install postgresql-15-plproxy".into())
            }
            Self::Connect { source, .. } => Some(match source.hint() {
                Some(hint) => format!("{hint}; then run the same again"),
                None => "start that server, or correct its address; then run the same again".into(),
            }),
            Self::Statement { .. } | Self::Stopped => {
                Some("`pgrig-shard rebalance` goes on where this stopped".into())
            }
            Self::Undecided { .. } => Some(
                "find out which copy of these buckets has the rows that clients need, and say so: see \
                 \"Neither is certain\" in docs/sharding.md; nothing was changed"
                    .into(),
            ),
            Self::OutOfStep { .. } => {
                Some("`pgrig-shard rebalance` brings them into step; then run the same again".into())
            }
            Self::Certificate { .. } => {
                Some("`pgrig-shard rebalance` looks again at what all servers have".into())
            }
            Self::Busy { .. } => {
                Some("wait for it; `pgrig-shard status` shows how far it is".into())
            }
            Self::Copy { to, .. } => Some(format!(
                "see the log of node {to} (is its disk full?), then `pgrig-shard rebalance`; `pgrig-shard \
                 abandon` gives the move up"
            )),
            Self::GivenUp { from, .. } => Some(format!(
                "remove the cause; where node {from} gave the slot up, raise max_slot_wal_keep_size there, or move \
                 fewer buckets at once (--batch); `pgrig-shard abandon` gives the move up"
            )),
            Self::SlotInUse { from, .. } => Some(format!(
                "end the walsender on node {from}, then run the same again"
            )),
            Self::Fence { .. } => {
                Some("end what it waits for, then `pgrig-shard rebalance`; `pgrig-shard abandon` gives the move up".into())
            }
            Self::Differs { to, .. } => Some(format!(
                "find out who else writes those tables on node {to}, then `pgrig-shard abandon` and \
                 `pgrig-shard rebalance`: it copies anew"
            )),
            Self::Conninfo { .. } => {
                Some("write it like \"host=db1 port=5432 user=app dbname=shop\"".into())
            }
        }
    }

    /// True if the server may be back soon.
    pub(crate) fn is_lost_connection(&self) -> bool {
        match self {
            Self::Connect { .. } => true,
            // Without words from the server it was the connection that failed.
            Self::Statement { source, .. } => match source.code() {
                Some(code) => GOING_AWAY.contains(&code.code()),
                None => true,
            },
            _ => false,
        }
    }

    /// The request that a server gave no answer to in time, as a sentence without the time; none for other
    /// failures.
    pub(crate) fn silence(&self) -> Option<String> {
        match self {
            Self::Connect { server, source, .. } if source.is_silence() => {
                Some(format!("connecting to {server} had no answer"))
            }
            Self::Statement { doing, server, source } => {
                let reached = LimitReached::below(source)?;
                matches!(reached, LimitReached::Silence(_))
                    .then(|| format!("{doing} on {server} had no answer"))
            }
            _ => None,
        }
    }

    /// True if another session held a lock for longer than one attempt waits.
    pub(crate) fn is_lock(&self) -> bool {
        let Self::Statement { source, .. } = self else { return false };
        source.code() == Some(&SqlState::LOCK_NOT_AVAILABLE)
    }
}

/// Lines of a table, each on its own.
fn lines(table: &[String]) -> String {
    table.iter().map(|line| format!("\n  {line}")).collect()
}

/// admin_shutdown, crash_shutdown, cannot_connect_now.
const GOING_AWAY: [&str; 3] = ["57P01", "57P02", "57P03"];
