//! Actions that are done at a moment of the timeline, and the conditions under which they can be.

use terms::{Direction, DiskFault, DiskRequest, RequestKind, StopMode};

use crate::throttle::NodeThrottle;

mod course;
mod entry;
mod fail_requests;
mod meant;
mod rebalance;

pub(crate) use course::{TopologyState, lacks_any};
pub(crate) use entry::VERBS;
pub use fail_requests::ServerFiles;
pub(crate) use meant::server;

/// Something done at a moment of the timeline. Each proves its effect or voids the trial.
#[derive(Clone, Debug, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum Action {
    /// Runs SQL on a server.
    Sql {
        node: String,
        /// The command, or the script.
        sql: String,
    },
    /// Runs CHECKPOINT on a server.
    Checkpoint { node: String },
    /// Takes a base backup of a server, for checks to restore.
    Backup { node: String },
    /// Steps the clock that a server sees.
    StepClock {
        node: String,
        /// By how much, in microseconds; less than 0 for back.
        by_us: i64,
    },
    /// Notes a moment that checks restore to: by the server's clock, its WAL, a name and a transaction.
    RestorePoint { node: String },
    /// Begins a transaction on a server that keeps its snapshot and does nothing more.
    HoldSnapshot { node: String },
    /// Ends such a transaction.
    ReleaseSnapshot { node: String },
    /// Shuts a node down.
    Stop {
        node: String,
        /// pg_ctl's shutdown mode.
        mode: StopMode,
    },
    /// Kills all processes of a node with SIGKILL.
    Kill { node: String },
    /// Kills the server process whose client's statement has run longest with SIGKILL, or has the kernel
    /// kill one for its memory.
    KillBackend {
        node: String,
        /// The memory, in bytes, that the server's processes may take until the kernel kills one; none for
        /// at once.
        memory_bytes: Option<u64>,
    },
    /// Ends the limit on a server's I/O.
    Unthrottle { node: String },
    /// Stops all processes of a node with SIGSTOP: its connections stay open, nothing answers.
    Pause { node: String },
    /// Lets a paused node go on.
    Continue { node: String },
    /// Starts a node that was stopped, killed or cut off from power.
    Start { node: String },
    /// Moves the rows of a PL/Proxy cluster until these servers hold them, and no others.
    Rebalance {
        node: String,
        /// The servers that hold the data afterwards.
        to: Vec<String>,
    },
    /// Does something to one process of a machine, or to the server that one has started.
    OfProcess { node: String, process: String, act: ProcessVerb },
    /// Runs a command on a machine, which must end with exit code 0.
    Run {
        node: String,
        /// The program and its arguments.
        command: Vec<String>,
    },
    /// Lets no packet pass between a machine and others.
    CutOff {
        node: String,
        /// The other ends: machines, and `clients`; all where none is named.
        from: Vec<String>,
        /// In which direction, as the machine sees it.
        direction: Direction,
    },
    /// Ends what cut a machine off.
    Reconnect { node: String },
    /// Makes a server a standby of another one, whatever it was before, and starts it.
    Rejoin {
        node: String,
        /// The server that it follows from then on.
        of: String,
        /// The way in which its data become those of a standby.
        by: RejoinBy,
    },
    /// Limits the I/O of a server from then on.
    Throttle { node: String, to: NodeThrottle },
    /// Makes a standby a primary.
    Promote { node: String },
    /// Makes the subscription of a server; the copy of the rows goes on beside.
    Subscribe { node: String },
    /// Takes the power from a server's disk and all processes on it.
    PowerCut {
        node: String,
        /// The request of its block disk at which that happens; none for at once.
        at: Option<DiskRequest>,
    },
    /// Has a server's block disk take longer for each request of a kind, from one on.
    SlowDisk {
        node: String,
        /// The first such request.
        at: DiskRequest,
        /// How much longer, in microseconds.
        by_us: u64,
    },
    /// Has a server's block disk fail from a request on; when the server has ended, its power is cut.
    FailDisk {
        node: String,
        /// The first request that fails.
        at: DiskRequest,
        /// The error that it gets.
        fault: DiskFault,
    },
    /// Has some requests of a server's block disk fail, while others are done and the server goes on.
    FailRequests {
        node: String,
        /// Their kind.
        kind: RequestKind,
        /// The files that they are about; none for every request.
        files: Option<ServerFiles>,
        /// How many fail; none for all until `heal`.
        times: Option<u64>,
        /// The error that they get.
        fault: DiskFault,
    },
    /// Ends what made a server's disk fail.
    HealDisk { node: String },
    /// Lets nothing pass a link any more.
    Cut {
        link: String,
        /// In which direction.
        direction: Direction,
    },
    /// Gives a link another delay.
    Delay {
        link: String,
        /// In each direction, in microseconds.
        to_us: u64,
    },
    /// Ends all connections of a link with a reset.
    Reset { link: String },
    /// Ends what was done to a link: nothing is cut, its delay is the topology's.
    Heal { link: String },
}

/// The name in an action of the node or the link that it touches, to be read or to be replaced.
macro_rules! target {
    ($action:expr) => {
        match $action {
            Action::Sql { node, .. }
            | Action::Checkpoint { node }
            | Action::Backup { node }
            | Action::RestorePoint { node }
            | Action::StepClock { node, .. }
            | Action::HoldSnapshot { node }
            | Action::ReleaseSnapshot { node }
            | Action::Stop { node, .. }
            | Action::Kill { node }
            | Action::KillBackend { node, .. }
            | Action::Unthrottle { node }
            | Action::Pause { node }
            | Action::Continue { node }
            | Action::Start { node }
            | Action::Rebalance { node, .. }
            | Action::Promote { node }
            | Action::Subscribe { node }
            | Action::Rejoin { node, .. }
            | Action::Throttle { node, .. }
            | Action::OfProcess { node, .. }
            | Action::Run { node, .. }
            | Action::CutOff { node, .. }
            | Action::Reconnect { node }
            | Action::PowerCut { node, .. }
            | Action::SlowDisk { node, .. }
            | Action::FailRequests { node, .. }
            | Action::HealDisk { node }
            | Action::FailDisk { node, .. } => node,
            Action::Cut { link, .. }
            | Action::Delay { link, .. }
            | Action::Reset { link }
            | Action::Heal { link } => link,
        }
    };
}

impl Action {
    /// The node or the link that it touches.
    pub fn target(&self) -> &str {
        target!(self)
    }

    /// The verb, as study.toml writes it.
    pub fn verb(&self) -> &'static str {
        match self {
            Action::Sql { .. } => "sql",
            Action::Checkpoint { .. } => "checkpoint",
            Action::Backup { .. } => "backup",
            Action::RestorePoint { .. } => "restore_point",
            Action::StepClock { .. } => "step_clock",
            Action::HoldSnapshot { .. } => "hold_snapshot",
            Action::ReleaseSnapshot { .. } => "release_snapshot",
            Action::Stop { .. } => "stop",
            Action::Kill { .. } => "kill",
            Action::KillBackend { .. } => "kill_backend",
            Action::Unthrottle { .. } => "unthrottle",
            Action::Pause { .. } => "pause",
            Action::Continue { .. } => "continue",
            Action::Start { .. } => "start",
            Action::Rebalance { .. } => "rebalance",
            Action::Promote { .. } => "promote",
            Action::Subscribe { .. } => "subscribe",
            Action::Rejoin { .. } => "rejoin",
            Action::Throttle { .. } => "throttle",
            Action::PowerCut { .. } => "power_cut",
            Action::SlowDisk { .. } => "slow_disk",
            Action::FailDisk { .. } => "fail_disk",
            Action::FailRequests { .. } => "fail_requests",
            Action::Cut { .. } | Action::CutOff { .. } => "cut",
            Action::Delay { .. } => "delay",
            Action::Reset { .. } => "reset",
            Action::Heal { .. } | Action::Reconnect { .. } | Action::HealDisk { .. } => "heal",
            Action::OfProcess { act, .. } => act.word(),
            Action::Run { .. } => "run",
        }
    }

    /// The same action on another node, found at its moment.
    pub fn on(&self, name: &str) -> Action {
        let mut action = self.clone();
        name.clone_into(target!(&mut action));
        action
    }

    /// The same action with another node that is followed from then on.
    pub fn of(&self, name: &str) -> Action {
        match self.clone() {
            Action::Rejoin { node, by, .. } => Action::Rejoin { node, of: name.to_owned(), by },
            other => other,
        }
    }

    /// True if it may keep clients waiting or disconnect them, so that a rate is missed as was intended.
    pub fn disturbs_clients(&self) -> bool {
        match self {
            Action::Sql { .. }
            | Action::Checkpoint { .. }
            | Action::Backup { .. }
            | Action::RestorePoint { .. }
            | Action::StepClock { .. }
            | Action::HoldSnapshot { .. }
            | Action::ReleaseSnapshot { .. }
            | Action::Subscribe { .. }
            | Action::Unthrottle { .. }
            | Action::Continue { .. }
            | Action::Start { .. }
            | Action::Heal { .. }
            | Action::HealDisk { .. }
            | Action::Reconnect { .. } => false,
            Action::Stop { .. }
            | Action::Kill { .. }
            | Action::KillBackend { .. }
            | Action::Pause { .. }
            | Action::Rebalance { .. }
            | Action::OfProcess { .. }
            | Action::Run { .. }
            | Action::CutOff { .. }
            | Action::Rejoin { .. }
            | Action::Throttle { .. }
            | Action::Promote { .. }
            | Action::PowerCut { .. }
            | Action::SlowDisk { .. }
            | Action::FailDisk { .. }
            | Action::FailRequests { .. }
            | Action::Cut { .. }
            | Action::Delay { .. }
            | Action::Reset { .. } => true,
        }
    }

    /// True if it only talks to a server, as anybody may who can connect.
    pub fn is_sql(&self) -> bool {
        matches!(
            self,
            Action::Sql { .. }
                | Action::Checkpoint { .. }
                | Action::RestorePoint { .. }
                | Action::HoldSnapshot { .. }
                | Action::ReleaseSnapshot { .. }
        )
    }
}

/// The way in which the data of a server become those of a standby.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RejoinBy {
    /// pg_rewind takes back what the other server does not have.
    Rewind,
    /// A base backup takes the place of all that it had.
    Backup,
}

/// An action on one process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ProcessVerb {
    /// It is asked to end.
    Stop,
    /// SIGKILL, with all that descends from it.
    Kill,
    /// SIGSTOP, with all that descends from it.
    Pause,
    /// SIGCONT.
    Continue,
    /// It is started again.
    Start,
}

impl ProcessVerb {
    /// The verb, as study.toml writes it.
    pub fn word(self) -> &'static str {
        match self {
            ProcessVerb::Stop => "stop",
            ProcessVerb::Kill => "kill",
            ProcessVerb::Pause => "pause",
            ProcessVerb::Continue => "continue",
            ProcessVerb::Start => "start",
        }
    }
}

/// A node that is found at the moment of its action.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ActionTarget {
    /// The server that takes writes then.
    PrimaryNow,
    /// The first server that is a standby then.
    StandbyNow,
    /// The target of an earlier action, by the name that it gave.
    Earlier(String),
}

impl ActionTarget {
    /// The form of [`ActionTarget::StandbyNow`] in study.toml; no node can have the name.
    pub const STANDBY_NOW: &'static str = "a standby now";
}
