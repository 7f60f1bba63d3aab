//! The rows that clients have read: what one of them saw must not vanish.

use std::collections::{BTreeMap, BTreeSet};

use super::check::LedgerRow;
use super::entry::ReadRow;
use super::findings::{About, LedgerAnomaly, LedgerFindings};
use super::history::{Ledger, Reading};

/// Holds the rows of the insert table to what the clients of a ledger have read: each row that one of them
/// saw is still there.
pub fn check_seen(ledger: &Ledger, rows: &[LedgerRow], findings: &mut LedgerFindings) {
    let there: BTreeSet<ReadRow> = rows.iter().filter_map(seen_in).collect();
    let mut first: BTreeMap<ReadRow, &Reading> = BTreeMap::new();
    for reading in ledger.readings() {
        let known = first.entry(reading.seen).or_insert(reading);
        if reading.at < known.at {
            *known = reading;
        }
    }
    findings.seen += first.len() as u64;
    for (seen, reading) in first.into_iter().filter(|(seen, _)| !there.contains(seen)) {
        let about = About { client: Some(seen.client), seq: seen.seq, at: reading.at };
        findings.note(LedgerAnomaly::Vanished, about, || {
            (format!("the row that client {} has read", reading.reader), "no such row".to_owned())
        });
    }
}

fn seen_in(row: &LedgerRow) -> Option<ReadRow> {
    let client = u32::try_from(row.client?).ok()?;
    Some(ReadRow { client, seq: u64::try_from(row.seq?).ok()? })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_that_a_reader_saw_must_still_be_there() {
        let check = |lines: &str, rows: &[(i64, i64)], expected: (u64, u64)| {
            let mut ledger = Ledger::default();
            ledger.add("0.ledger", format!("ledger 2 seed 1\n{lines}").as_bytes()).unwrap();
            let row = |(client, seq): &(i64, i64)| LedgerRow {
                client: Some(*client),
                seq: Some(*seq),
                chain: None,
            };
            let rows: Vec<LedgerRow> = rows.iter().map(row).collect();
            let mut findings = LedgerFindings::default();
            check_seen(&ledger, &rows, &mut findings);
            assert_eq!((findings.seen, findings.vanished), expected, "{lines} {rows:?}");
        };
        let reads = "i 9 1 10\nr 9 1 20 0 7\na 9 1 20\ni 9 2 30\nr 9 2 40 1 3\na 9 2 40\n";
        check(reads, &[(0, 7), (1, 3)], (2, 0));
        check(reads, &[(0, 7), (1, 2)], (2, 1));
        // Seen twice, it is one row.
        check(&format!("{reads}i 9 3 50\nr 9 3 60 1 3\na 9 3 60\n"), &[], (2, 2));
        check("i 9 1 10\na 9 1 20\n", &[], (0, 0));
    }
}
