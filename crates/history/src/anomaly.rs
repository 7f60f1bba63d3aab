//! The names of what a history may not show, after Adya, Cerone and Elle.

use std::fmt;

/// Something that a history shows and that some isolation level forbids.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum IsolationAnomaly {
    /// A committed transaction read a value that an aborted one wrote.
    G1a,
    /// A committed transaction read a value that another one overwrote before it committed.
    G1b,
    /// A committed transaction changed a value that an aborted one wrote.
    DirtyUpdate,
    /// A transaction read something other than what it had read before.
    Internal,
    /// A transaction did not read what it had written before.
    OwnWriteUnseen,
    /// Two committed transactions read the same version of a key, and both wrote the key.
    LostUpdate,
    /// A transaction read what it wrote only afterwards.
    FutureRead,
    /// A read of a value that no transaction wrote.
    UnwrittenRead,
    /// A list that holds one element twice.
    DuplicateElements,
    /// Reads of a list of which neither is a prefix of the other: there is no order of its versions.
    IncompatibleOrder,
    /// Versions of a register each of which was written after the other.
    CyclicVersions,
    /// A snapshot of all accounts with another sum than the one that every transfer keeps.
    WrongTotal,
    /// A cycle of dependencies.
    Cycle(CycleKind, CycleOrder),
    /// A session read a version that is older than one which it had read before.
    MonotonicReads,
    /// A session did not read what it had written.
    ReadYourWrites,
    /// A transaction read what a session wrote, and not what that session had read before it wrote.
    WritesFollowReads,
}

/// The kinds of cycles, by the dependencies that they are made of.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum CycleKind {
    /// Write dependencies only.
    G0,
    /// Write and read dependencies.
    G1c,
    /// One anti-dependency.
    GSingle,
    /// Anti-dependencies of which no two are adjacent, each between two read dependencies: two readers
    /// that saw the writes of two others in different orders.
    LongFork,
    /// Other cycles with two or more anti-dependencies, no two of them adjacent.
    GNonadjacent,
    /// Two adjacent anti-dependencies.
    G2Item,
}

/// The order, beside the dependencies, that a cycle needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum CycleOrder {
    /// None.
    Data,
    /// The order of the transactions of one client.
    Process,
    /// The order of time: one transaction had ended before another one began.
    Realtime,
}

impl CycleKind {
    /// Each kind, from the one that the weakest level forbids on.
    pub const ALL: [CycleKind; 6] = [
        CycleKind::G0,
        CycleKind::G1c,
        CycleKind::GSingle,
        CycleKind::LongFork,
        CycleKind::GNonadjacent,
        CycleKind::G2Item,
    ];

    const fn name(self) -> &'static str {
        match self {
            CycleKind::G0 => "G0",
            CycleKind::G1c => "G1c",
            CycleKind::GSingle => "G-single",
            CycleKind::LongFork => "long fork",
            CycleKind::GNonadjacent => "G-nonadjacent",
            CycleKind::G2Item => "G2-item",
        }
    }
}

impl IsolationAnomaly {
    /// The meaning in a few words.
    pub const fn meaning(self) -> &'static str {
        match self {
            IsolationAnomaly::G1a => "a value of an aborted transaction was read",
            IsolationAnomaly::G1b => {
                "a value was read that its transaction overwrote before it committed"
            }
            IsolationAnomaly::DirtyUpdate => "a value of an aborted transaction was changed",
            IsolationAnomaly::Internal => "a transaction contradicts its own earlier reads",
            IsolationAnomaly::OwnWriteUnseen => {
                "a transaction did not read what it had written itself"
            }
            IsolationAnomaly::LostUpdate => {
                "two transactions read one version and both wrote the key"
            }
            IsolationAnomaly::FutureRead => "a transaction read what it wrote only afterwards",
            IsolationAnomaly::UnwrittenRead => "a value was read that nobody wrote",
            IsolationAnomaly::DuplicateElements => "a list holds one element twice",
            IsolationAnomaly::IncompatibleOrder => {
                "two reads of a list, neither a prefix of the other"
            }
            IsolationAnomaly::CyclicVersions => "versions of a register that each follow the other",
            IsolationAnomaly::WrongTotal => {
                "the balances read at once have another sum than all transfers keep"
            }
            IsolationAnomaly::MonotonicReads => "a session read an older version than before",
            IsolationAnomaly::ReadYourWrites => "a session did not read its own write",
            IsolationAnomaly::WritesFollowReads => {
                "a write was seen without what its session had read before"
            }
            IsolationAnomaly::Cycle(cycle, _) => match cycle {
                CycleKind::G0 => "a cycle of writes",
                CycleKind::G1c => "a cycle of writes and reads",
                CycleKind::GSingle => "a cycle with one anti-dependency",
                CycleKind::LongFork => "two readers saw two writes in different orders",
                CycleKind::GNonadjacent => "a cycle whose anti-dependencies are not adjacent",
                CycleKind::G2Item => "a cycle with adjacent anti-dependencies (write skew)",
            },
        }
    }
}

impl fmt::Display for IsolationAnomaly {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = match self {
            IsolationAnomaly::G1a => "G1a",
            IsolationAnomaly::G1b => "G1b",
            IsolationAnomaly::DirtyUpdate => "dirty update",
            IsolationAnomaly::Internal => "internal",
            IsolationAnomaly::OwnWriteUnseen => "own write unseen",
            IsolationAnomaly::LostUpdate => "lost update",
            IsolationAnomaly::FutureRead => "future read",
            IsolationAnomaly::UnwrittenRead => "unwritten read",
            IsolationAnomaly::DuplicateElements => "duplicate elements",
            IsolationAnomaly::IncompatibleOrder => "incompatible order",
            IsolationAnomaly::CyclicVersions => "cyclic versions",
            IsolationAnomaly::WrongTotal => "wrong total",
            IsolationAnomaly::MonotonicReads => "monotonic reads",
            IsolationAnomaly::ReadYourWrites => "read your writes",
            IsolationAnomaly::WritesFollowReads => "writes follow reads",
            IsolationAnomaly::Cycle(cycle, CycleOrder::Data) => return f.write_str(cycle.name()),
            IsolationAnomaly::Cycle(cycle, CycleOrder::Process) => {
                return write!(f, "{}-process", cycle.name());
            }
            IsolationAnomaly::Cycle(cycle, CycleOrder::Realtime) => {
                return write!(f, "{}-realtime", cycle.name());
            }
        };
        f.write_str(name)
    }
}
