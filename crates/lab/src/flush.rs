//! What one flush costs on the lab's disk: pg_test_fsync, as far as its first table.

use std::time::Duration;

use os::command::Output;
use rustix::process::Signal;
use serde::{Deserialize, Serialize};

use crate::error::Error;
use crate::files::{make_directory_for, read_file, remove_tree, write_file};
use crate::lab::Lab;
use crate::wait::wait_until;

/// One wal_sync_method and what pg_test_fsync measured of it: one block of 8 kB written and
/// flushed, again and again.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Flush {
    /// The method.
    pub method: String,
    /// Flushes a second; none where the platform does not have the method.
    pub per_second: Option<f64>,
}

impl Lab {
    /// Runs pg_test_fsync on the file system that the nodes' plain data lie on, `seconds` for each
    /// method, and ends it when each had its turn.
    ///
    /// # Errors
    /// [`Error::MissingPart`] where this PostgreSQL came without it; [`Error::FlushTest`].
    pub(crate) fn test_flush(&self, seconds: u64) -> Result<Vec<Flush>, Error> {
        let program = self.installation().program(PROGRAM);
        if !program.is_file() {
            let version = self.installation().version().clone();
            return Err(Error::MissingPart { name: PROGRAM.to_owned(), version, looked: program });
        }
        let directory = self.directory().join("flush");
        make_directory_for(&directory, self.user())?;
        let output = directory.join("said");
        write_file(&output, "", self.user())?;
        let command = self
            .shared()
            .command(PROGRAM, &directory)
            .args(["-s", &seconds.to_string(), "-f"])
            .arg(directory.join("file"))
            .stdout(Output::File(output.clone()))
            .stderr(Output::File(output.clone()));
        let pid = self.shared().spawn_in(&command, None)?;
        let process =
            |source| Error::Process { doing: "running", node: PROGRAM.to_owned(), source };
        let init = self.shared().init().map_err(process)?;
        let timeout = Duration::from_secs(seconds * METHODS_MAX) + STARTS_WITHIN;
        let flushes = wait_until(timeout, || {
            let said = read_file(&output, self.user()).unwrap_or_default();
            let is_over = init.exit(pid).map_err(process)?.is_some();
            Ok::<_, Error>(match first_table(&said) {
                // The next table goes over the same methods with two blocks.
                Some(flushes) => Some(Ok(flushes)),
                None => is_over.then_some(Err(said)),
            })
        })?;
        let _ = init.signal(pid, Signal::KILL);
        init.wait(pid, STARTS_WITHIN).map_err(process)?;
        let said = read_file(&output, self.user()).unwrap_or_default();
        remove_tree(&directory)?;
        flushes.unwrap_or(Err(said)).map_err(|said| Error::FlushTest { said })
    }
}

/// The first table, once the second one has begun.
fn first_table(said: &str) -> Option<Vec<Flush>> {
    let (_, rest) = said.split_once("using one ")?;
    let (table, _) = rest.split_once("using two ")?;
    let flushes: Vec<Flush> = table.lines().filter_map(flush).collect();
    (!flushes.is_empty()).then_some(flushes)
}

/// `        fdatasync                          6849.315 ops/sec     146 usecs/op`, or `n/a`.
fn flush(line: &str) -> Option<Flush> {
    let words: Vec<&str> = line.split_whitespace().collect();
    let (method, figure) = (words.first()?, words.get(1)?);
    let is_there = words.get(2) == Some(&"ops/sec");
    if !is_there && !figure.starts_with("n/a") {
        return None;
    }
    Some(Flush { method: (*method).to_owned(), per_second: figure.parse().ok() })
}

const PROGRAM: &str = "pg_test_fsync";

/// open_datasync, fdatasync, fsync, fsync_writethrough, open_sync.
const METHODS_MAX: u64 = 5;

/// Its start and its end, on a machine that is busy.
const STARTS_WITHIN: Duration = Duration::from_secs(30);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_table_is_read_when_it_is_whole() {
        let begun = "1 second per test\nO_DIRECT supported on this platform for open_datasync and \
                     open_sync.\n\nCompare file sync methods using one 8kB write:\n(in \
                     \"wal_sync_method\" preference order, except fdatasync is Linux's default)\n        \
                     open_datasync                      9110.553 ops/sec     110 usecs/op\n        \
                     fdatasync                          6849.315 ops/sec     146 usecs/op\n        \
                     fsync_writethrough                              n/a\n";
        assert_eq!(first_table(begun), None);
        let whole = format!("{begun}\nCompare file sync methods using two 8kB writes:\n");
        let flushes = first_table(&whole).unwrap();
        let flushes: Vec<_> =
            flushes.iter().map(|one| (one.method.as_str(), one.per_second)).collect();
        let expected = [
            ("open_datasync", Some(9110.553)),
            ("fdatasync", Some(6849.315)),
            ("fsync_writethrough", None),
        ];
        assert_eq!(flushes, expected);
    }
}
