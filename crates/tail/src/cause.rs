//! The causes to which a second of a slow transaction is attributed.

use serde::{Deserialize, Serialize};

use crate::event::event_key;

/// The cause of a part of a slow transaction.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum DelayCause {
    /// A heavyweight lock that another session held.
    Lock,
    /// A checkpoint: what was more while one was under way than otherwise.
    Checkpoint,
    /// Autovacuum: its locks, and what was more while a worker was at work than otherwise.
    Autovacuum,
    /// Writing and flushing WAL, and waiting for the session that does it.
    WalFlush,
    /// Reading and writing other files.
    FileIo,
    /// Ready to run, without a CPU.
    RunDelay,
    /// CPU time that the hypervisor took.
    Steal,
    /// On a CPU; where the kernel's account cannot be read, ready to run as well.
    Cpu,
    /// Any other wait event.
    Wait,
    /// A pooler's queue: the client was served by no server session.
    PoolerQueue,
    /// The server waited for the client: the network, and the client itself.
    Client,
    /// An open loop: the transaction was due, and no client was free to begin it.
    Schedule,
    /// None of these was seen.
    Unexplained,
}

impl DelayCause {
    /// The name in output.
    pub fn words(self) -> &'static str {
        match self {
            DelayCause::Lock => "lock",
            DelayCause::Checkpoint => "checkpoint",
            DelayCause::Autovacuum => "autovacuum",
            DelayCause::WalFlush => "WAL flush",
            DelayCause::FileIo => "file I/O",
            DelayCause::RunDelay => "run delay",
            DelayCause::Steal => "steal",
            DelayCause::Cpu => "CPU",
            DelayCause::Wait => "wait",
            DelayCause::PoolerQueue => "pooler's queue",
            DelayCause::Client => "client or network",
            DelayCause::Schedule => "behind schedule",
            DelayCause::Unexplained => "unexplained",
        }
    }

    /// The cause of a wait event, `type:event`. Those of no event, and those of a lock, need more
    /// than the name.
    pub(crate) fn of_event(event: &str) -> DelayCause {
        let key = event_key(event);
        match key.split_once(':').unwrap_or((&key, "")) {
            ("io", "walsync" | "walwrite" | "walsyncmethodassign")
            | ("lwlock", "walwrite" | "walwritelock") => DelayCause::WalFlush,
            ("io", _) | ("lwlock", "buffer_io") | ("ipc", "bufferio") => DelayCause::FileIo,
            ("lock", _) => DelayCause::Lock,
            ("client", _) => DelayCause::Client,
            _ => DelayCause::Wait,
        }
    }

    /// True if a checkpoint or a vacuum can make it longer without being named by it.
    pub(crate) fn can_be_due_to_background(self) -> bool {
        use DelayCause::{Cpu, FileIo, RunDelay, Unexplained, Wait, WalFlush};
        matches!(self, WalFlush | FileIo | RunDelay | Cpu | Wait | Unexplained)
    }
}
