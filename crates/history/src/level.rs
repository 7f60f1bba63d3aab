//! Isolation levels, by what they forbid.

use std::fmt;
use std::str::FromStr;

use crate::{Anomaly, Cycle, Order};

/// An isolation level, as PostgreSQL provides it: its repeatable read is snapshot isolation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Level {
    /// Adya's PL-2: nothing aborted or intermediate is read, and no cycle of writes and reads.
    ReadCommitted,
    /// Snapshot isolation: every cycle has two adjacent anti-dependencies.
    RepeatableRead,
    /// No cycle of dependencies.
    Serializable,
    /// Serializable, in an order that agrees with time; sessions keep their guarantees.
    StrictSerializable,
}

impl Level {
    /// Each level, the weakest first.
    pub const ALL: [Level; 4] = [
        Level::ReadCommitted,
        Level::RepeatableRead,
        Level::Serializable,
        Level::StrictSerializable,
    ];

    /// True if a history at this level must not show it.
    pub fn forbids(self, anomaly: Anomaly) -> bool {
        self >= Level::weakest_that_forbids(anomaly)
    }

    /// The weakest level that forbids it.
    pub fn weakest_that_forbids(anomaly: Anomaly) -> Level {
        match anomaly {
            Anomaly::G1a
            | Anomaly::G1b
            | Anomaly::DirtyUpdate
            | Anomaly::OwnWriteUnseen
            | Anomaly::FutureRead
            | Anomaly::UnwrittenRead
            | Anomaly::DuplicateElements
            | Anomaly::IncompatibleOrder
            | Anomaly::CyclicVersions
            | Anomaly::Cycle(Cycle::G0 | Cycle::G1c, Order::Data) => Level::ReadCommitted,
            Anomaly::Internal
            | Anomaly::LostUpdate
            | Anomaly::WrongTotal
            | Anomaly::Cycle(Cycle::GSingle | Cycle::LongFork | Cycle::GNonadjacent, Order::Data) => {
                Level::RepeatableRead
            }
            Anomaly::Cycle(Cycle::G2Item, Order::Data) => Level::Serializable,
            Anomaly::Cycle(_, Order::Process | Order::Realtime)
            | Anomaly::MonotonicReads
            | Anomaly::ReadYourWrites
            | Anomaly::WritesFollowReads => Level::StrictSerializable,
        }
    }
}

impl fmt::Display for Level {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Level::ReadCommitted => "read committed",
            Level::RepeatableRead => "repeatable read",
            Level::Serializable => "serializable",
            Level::StrictSerializable => "strict serializable",
        })
    }
}

/// The word is no level.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("\"{0}\" is no isolation level; levels are {levels}", levels = levels())]
pub struct NotALevel(String);

fn levels() -> String {
    Level::ALL.map(|level| format!("\"{level}\"")).join(", ")
}

impl FromStr for Level {
    type Err = NotALevel;

    fn from_str(word: &str) -> Result<Level, NotALevel> {
        let plain = word.replace(['-', '_'], " ");
        let named = Level::ALL.into_iter().find(|level| level.to_string() == plain);
        named.ok_or_else(|| NotALevel(word.to_owned()))
    }
}
