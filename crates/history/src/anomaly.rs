//! The names of what a history may not show, after Adya, Cerone and Elle.

use std::fmt;

/// Something that a history shows and that some isolation level forbids.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Anomaly {
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
    Cycle(Cycle, Order),
    /// A session read a version that is older than one which it had read before.
    MonotonicReads,
    /// A session did not read what it had written.
    ReadYourWrites,
    /// A transaction read what a session wrote, and not what that session had read before it wrote.
    WritesFollowReads,
}

/// The kinds of cycles, by the dependencies that they are made of.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Cycle {
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
pub enum Order {
    /// None.
    Data,
    /// The order of the transactions of one client.
    Process,
    /// The order of time: one transaction had ended before another one began.
    Realtime,
}

impl Cycle {
    /// Each kind, from the one that the weakest level forbids on.
    pub const ALL: [Cycle; 6] = [
        Cycle::G0,
        Cycle::G1c,
        Cycle::GSingle,
        Cycle::LongFork,
        Cycle::GNonadjacent,
        Cycle::G2Item,
    ];

    const fn name(self) -> &'static str {
        match self {
            Cycle::G0 => "G0",
            Cycle::G1c => "G1c",
            Cycle::GSingle => "G-single",
            Cycle::LongFork => "long fork",
            Cycle::GNonadjacent => "G-nonadjacent",
            Cycle::G2Item => "G2-item",
        }
    }
}

impl Anomaly {
    /// The meaning in a few words.
    pub const fn meaning(self) -> &'static str {
        match self {
            Anomaly::G1a => "a value of an aborted transaction was read",
            Anomaly::G1b => "a value was read that its transaction overwrote before it committed",
            Anomaly::DirtyUpdate => "a value of an aborted transaction was changed",
            Anomaly::Internal => "a transaction contradicts its own earlier reads",
            Anomaly::OwnWriteUnseen => "a transaction did not read what it had written itself",
            Anomaly::LostUpdate => "two transactions read one version and both wrote the key",
            Anomaly::FutureRead => "a transaction read what it wrote only afterwards",
            Anomaly::UnwrittenRead => "a value was read that nobody wrote",
            Anomaly::DuplicateElements => "a list holds one element twice",
            Anomaly::IncompatibleOrder => "two reads of a list, neither a prefix of the other",
            Anomaly::CyclicVersions => "versions of a register that each follow the other",
            Anomaly::WrongTotal => {
                "the balances read at once have another sum than all transfers keep"
            }
            Anomaly::MonotonicReads => "a session read an older version than before",
            Anomaly::ReadYourWrites => "a session did not read its own write",
            Anomaly::WritesFollowReads => {
                "a write was seen without what its session had read before"
            }
            Anomaly::Cycle(cycle, _) => match cycle {
                Cycle::G0 => "a cycle of writes",
                Cycle::G1c => "a cycle of writes and reads",
                Cycle::GSingle => "a cycle with one anti-dependency",
                Cycle::LongFork => "two readers saw two writes in different orders",
                Cycle::GNonadjacent => "a cycle whose anti-dependencies are not adjacent",
                Cycle::G2Item => "a cycle with adjacent anti-dependencies (write skew)",
            },
        }
    }
}

impl fmt::Display for Anomaly {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = match self {
            Anomaly::G1a => "G1a",
            Anomaly::G1b => "G1b",
            Anomaly::DirtyUpdate => "dirty update",
            Anomaly::Internal => "internal",
            Anomaly::OwnWriteUnseen => "own write unseen",
            Anomaly::LostUpdate => "lost update",
            Anomaly::FutureRead => "future read",
            Anomaly::UnwrittenRead => "unwritten read",
            Anomaly::DuplicateElements => "duplicate elements",
            Anomaly::IncompatibleOrder => "incompatible order",
            Anomaly::CyclicVersions => "cyclic versions",
            Anomaly::WrongTotal => "wrong total",
            Anomaly::MonotonicReads => "monotonic reads",
            Anomaly::ReadYourWrites => "read your writes",
            Anomaly::WritesFollowReads => "writes follow reads",
            Anomaly::Cycle(cycle, Order::Data) => return f.write_str(cycle.name()),
            Anomaly::Cycle(cycle, Order::Process) => return write!(f, "{}-process", cycle.name()),
            Anomaly::Cycle(cycle, Order::Realtime) => {
                return write!(f, "{}-realtime", cycle.name());
            }
        };
        f.write_str(name)
    }
}
