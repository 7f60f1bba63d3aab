//! Isolation levels, by what they forbid.

use std::fmt;
use std::str::FromStr;

use crate::{CycleKind, CycleOrder, IsolationAnomaly};

/// An isolation level, as PostgreSQL provides it: its repeatable read is snapshot isolation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum IsolationLevel {
    /// Adya's PL-2: nothing aborted or intermediate is read, and no cycle of writes and reads.
    ReadCommitted,
    /// Snapshot isolation: every cycle has two adjacent anti-dependencies.
    RepeatableRead,
    /// No cycle of dependencies.
    Serializable,
    /// Serializable, in an order that agrees with time; sessions keep their guarantees.
    StrictSerializable,
}

impl IsolationLevel {
    /// Each level, the weakest first.
    pub const ALL: [IsolationLevel; 4] = [
        IsolationLevel::ReadCommitted,
        IsolationLevel::RepeatableRead,
        IsolationLevel::Serializable,
        IsolationLevel::StrictSerializable,
    ];

    /// True if a history at this level must not show it.
    pub fn forbids(self, anomaly: IsolationAnomaly) -> bool {
        self >= IsolationLevel::weakest_that_forbids(anomaly)
    }

    /// The weakest level that forbids it.
    pub fn weakest_that_forbids(anomaly: IsolationAnomaly) -> IsolationLevel {
        match anomaly {
            IsolationAnomaly::G1a
            | IsolationAnomaly::G1b
            | IsolationAnomaly::DirtyUpdate
            | IsolationAnomaly::OwnWriteUnseen
            | IsolationAnomaly::FutureRead
            | IsolationAnomaly::UnwrittenRead
            | IsolationAnomaly::DuplicateElements
            | IsolationAnomaly::IncompatibleOrder
            | IsolationAnomaly::CyclicVersions
            | IsolationAnomaly::Cycle(CycleKind::G0 | CycleKind::G1c, CycleOrder::Data) => {
                IsolationLevel::ReadCommitted
            }
            IsolationAnomaly::Internal
            | IsolationAnomaly::LostUpdate
            | IsolationAnomaly::WrongTotal
            | IsolationAnomaly::Cycle(
                CycleKind::GSingle | CycleKind::LongFork | CycleKind::GNonadjacent,
                CycleOrder::Data,
            ) => IsolationLevel::RepeatableRead,
            IsolationAnomaly::Cycle(CycleKind::G2Item, CycleOrder::Data) => {
                IsolationLevel::Serializable
            }
            IsolationAnomaly::Cycle(_, CycleOrder::Process | CycleOrder::Realtime)
            | IsolationAnomaly::MonotonicReads
            | IsolationAnomaly::ReadYourWrites
            | IsolationAnomaly::WritesFollowReads => IsolationLevel::StrictSerializable,
        }
    }
}

impl fmt::Display for IsolationLevel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            IsolationLevel::ReadCommitted => "read committed",
            IsolationLevel::RepeatableRead => "repeatable read",
            IsolationLevel::Serializable => "serializable",
            IsolationLevel::StrictSerializable => "strict serializable",
        })
    }
}

/// The word is no level.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("\"{0}\" is no isolation level; levels are {levels}", levels = levels())]
pub struct NotALevel(String);

fn levels() -> String {
    IsolationLevel::ALL.map(|level| format!("\"{level}\"")).join(", ")
}

impl FromStr for IsolationLevel {
    type Err = NotALevel;

    fn from_str(word: &str) -> Result<IsolationLevel, NotALevel> {
        let plain = word.replace(['-', '_'], " ");
        let named = IsolationLevel::ALL.into_iter().find(|level| level.to_string() == plain);
        named.ok_or_else(|| NotALevel(word.to_owned()))
    }
}
