//! The output of pg_test_fsync on one flush.

use serde::{Deserialize, Serialize};

/// One wal_sync_method and what pg_test_fsync measured of it: one block of 8 kB written and
/// flushed, again and again.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Flush {
    /// The method.
    pub method: String,
    /// Flushes a second; none where the platform does not have the method.
    pub per_second: Option<f64>,
}

/// The first table, once the second one has begun.
pub(crate) fn first_table(said: &str) -> Option<Vec<Flush>> {
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
