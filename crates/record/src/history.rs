//! The histories of a trial's clients, read from its directory, and what they showed.

use std::path::Path;

use history::file::{SUFFIX, read};
use history::{FaultKind, History, HistoryFault};
use serde::{Deserialize, Serialize};

use crate::error::Error;
use crate::inside::Inside;

/// A day of a lane with thousands of transactions a second.
const HISTORY_BYTES_MAX: u64 = 64 << 30;

/// More lanes than a load has.
const FILES_MAX: u64 = 4096;

/// Reads all histories of a directory. A file that the load wrote and that is not there is a fault of the
/// history.
pub fn read_histories(directory: &Path) -> Result<History, Error> {
    let inside = Inside::open(directory)?;
    let mut history = History::default();
    for entry in inside.entries()? {
        let name = entry.name.to_string_lossy();
        if name.ends_with(SUFFIX) {
            let text = inside.bytes(&entry.name, HISTORY_BYTES_MAX)?;
            let path = inside.path(&entry.name);
            let read = read(&mut history, &name, text.as_slice());
            read.map_err(|error| Error::Damaged { path, line: 1, why: error.to_string() })?;
        }
    }
    // A number that a line tells wrong must not fill the memory.
    let written = history.files_written().unwrap_or(0).min(FILES_MAX); // Version 1 tells of none.
    for lane in 0..written {
        let file = format!("{lane}{SUFFIX}");
        if !history.files().contains(&file) {
            history.blame(HistoryFault { file, line: 0, what: FaultKind::FileMissing });
        }
    }
    Ok(history)
}

/// Transactions that show an anomaly, for a picture.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct WitnessPicture {
    /// The anomaly's name.
    pub anomaly: String,
    /// The meaning.
    pub meaning: String,
    /// The transactions.
    pub transactions: Vec<PicturedTransaction>,
    /// Pairs of transactions, one before the other, and the reason; empty if it is no cycle.
    pub links: Vec<TransactionOrder>,
    /// Why it is an anomaly, if it is no cycle; what is known of a cycle of its shape.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub why: String,
}

/// A transaction of a witness.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PicturedTransaction {
    /// The client, its number, its server, its outcome, in words.
    pub who: String,
    /// Operations of the transaction, in their order.
    pub did: Vec<String>,
    /// Time at which it began, in nanoseconds since the start of the run.
    pub begun: u64,
    /// Time at which its client heard of its end; none if it did not.
    pub ended: Option<u64>,
}

/// One transaction comes before another one.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TransactionOrder {
    /// The earlier one, as an index.
    pub from: usize,
    /// The later one.
    pub to: usize,
    /// The dependency: ww, wr, rw, process, realtime.
    pub name: String,
    /// The reason for the order.
    pub why: String,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_that_was_written_and_is_not_there_is_a_fault() {
        let check = |files: &[(&str, &str)], expected: &[&str]| {
            let directory = tempfile::tempdir().unwrap();
            for (name, text) in files {
                std::fs::write(directory.path().join(name), text).unwrap();
            }
            let history = read_histories(directory.path()).unwrap();
            let missing = history.faults().iter().filter(|one| one.what == FaultKind::FileMissing);
            let missing: Vec<&str> = missing.map(|fault| fault.file.as_str()).collect();
            assert_eq!(missing, expected, "{files:?}");
        };
        let of_three = "history 2\nn 3\ng 0\tp\ti\tw\ne 0\nz\n";
        let three = ["0.history", "1.history", "2.history"].map(|name| (name, of_three));
        check(&three, &[]);
        check(&three[..1], &["1.history", "2.history"]);
        check(&three[1..], &["0.history"]);
        check(&[("1.history", "history 1\ng 0\tp\ti\tw\n")], &[]);
    }
}
