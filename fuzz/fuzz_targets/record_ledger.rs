//! Any bytes as the ledgers of two lanes, checked against a table that holds some of their rows.

#![no_main]

use libfuzzer_sys::fuzz_target;
use record::Moment;
use record::ledger::{self, Ledger, LedgerRow, LedgerRows, UncoveredCommits};

fuzz_target!(|input: &[u8]| {
    let mut ledger = Ledger::default();
    for (index, text) in input.split(|byte| *byte == 1).take(2).enumerate() {
        if ledger.add(&index.to_string(), text).is_err() {
            return;
        }
    }
    let mut rows = Vec::new();
    for (client, history) in ledger.clients() {
        for (index, transaction) in history.iter().enumerate().filter(|(index, _)| index % 3 != 1) {
            let seq = Some(index as i64 + 1);
            rows.push(LedgerRow {
                client: Some(client.into()),
                seq,
                chain: Some(transaction.chain),
            });
        }
    }
    let exposed = [UncoveredCommits { from: Moment(0), until: Moment(u64::MAX / 2) }];
    let rows = LedgerRows { insert: Some(rows.clone()), update: Some(rows) };
    let findings = ledger::check(&ledger, &rows, &exposed);
    assert!(findings.anomalies() < u64::MAX);
    ledger.longest_pause_ns(Moment(0), Moment(u64::MAX));
});
