//! Faults of a history itself, and the extent to which it can be judged in spite of them.

use std::fmt;

/// Something that is wrong with a history.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HistoryFault {
    /// The file.
    pub file: String,
    /// The line, from 1; 0 for none in particular.
    pub line: u64,
    /// Kind of the fault.
    pub what: FaultKind,
}

/// Kind of a fault.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FaultKind {
    /// The file ends before its last line.
    CutOff,
    /// Lines between two others are missing: a client's transactions are not numbered one by one.
    Gap {
        /// The client.
        client: u32,
        /// The number that its next transaction should have had.
        expected: u64,
        /// The number that it has.
        found: u64,
    },
    /// The file was written and is not there.
    FileMissing,
    /// The line says nothing that can be understood here.
    Line(String),
    /// The same value was written twice to one key: reads of it do not say whose it was.
    WrittenTwice {
        /// The key.
        key: i64,
        /// The value.
        value: i64,
    },
    /// A value was read before the transaction that wrote it had begun: clocks are apart.
    ClocksApart {
        /// By how many nanoseconds at least.
        ns: u64,
    },
}

impl FaultKind {
    /// True if lines are missing that may have told of writes.
    pub(crate) fn loses_lines(&self) -> bool {
        match self {
            FaultKind::CutOff
            | FaultKind::Line(_)
            | FaultKind::Gap { .. }
            | FaultKind::FileMissing => true,
            FaultKind::WrittenTwice { .. } | FaultKind::ClocksApart { .. } => false,
        }
    }

    /// The part that is not judged because of it; none if the judgement is complete.
    pub fn unjudged(&self) -> Option<&'static str> {
        match self {
            FaultKind::Line(_) | FaultKind::Gap { .. } => Some(
                "transactions that were open there are not judged, nor are reads of values that \
                 nobody is known to have written",
            ),
            FaultKind::CutOff | FaultKind::FileMissing => Some(
                "what the lost lines told is not judged, nor are reads of values that nobody is known to \
                 have written",
            ),
            FaultKind::WrittenTwice { .. } => Some("the key is not judged"),
            FaultKind::ClocksApart { .. } => {
                Some("the order of time, staleness and the guarantees of sessions are not judged")
            }
        }
    }
}

impl fmt::Display for HistoryFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let HistoryFault { file, line, what } = self;
        match line {
            0 => write!(f, "{file}: {what}")?,
            _ => write!(f, "{file}, line {line}: {what}")?,
        }
        what.unjudged().map_or(Ok(()), |what| write!(f, "; {what}"))
    }
}

impl fmt::Display for FaultKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            FaultKind::CutOff => f.write_str(
                "the file ends before its last line, as the death of a generator leaves it; \
                 transactions that were open there count as unknown",
            ),
            FaultKind::Gap { client, expected, found } => write!(
                f,
                "client {client} begins transaction {found}, and not {expected}: lines are missing"
            ),
            FaultKind::FileMissing => {
                f.write_str("the file is missing, as the loss of a generator's host leaves it")
            }
            FaultKind::Line(why) => f.write_str(why),
            FaultKind::WrittenTwice { key, value } => {
                write!(f, "{value} was written to key {key} twice; values must be unique")
            }
            FaultKind::ClocksApart { ns } => write!(
                f,
                "a value was read {:.3} ms before the transaction that wrote it began; the clocks \
                 of the clients are apart",
                *ns as f64 / 1e6
            ),
        }
    }
}
