//! Small histories that elle-cli is tested with, in this crate's notation: what Elle says of their data
//! is what the checker says.

use std::collections::BTreeSet;

use history::{CycleOrder, IsolationAnomaly};

use crate::written::{judged, names};

fn name_of_elle(anomaly: &IsolationAnomaly) -> String {
    match anomaly {
        IsolationAnomaly::OwnWriteUnseen => IsolationAnomaly::Internal.to_string(),
        other => other.to_string(),
    }
}

/// The anomalies without those that only time or a client forbids; of these Elle names none where the
/// data alone show one.
fn check(lines: &[&str], expected: &[&str]) {
    let findings = judged(lines);
    let is_of_data = |anomaly: &IsolationAnomaly| match anomaly {
        IsolationAnomaly::Cycle(_, order) => *order == CycleOrder::Data,
        IsolationAnomaly::MonotonicReads
        | IsolationAnomaly::ReadYourWrites
        | IsolationAnomaly::WritesFollowReads => false,
        _ => true,
    };
    let found: BTreeSet<String> =
        names(&findings).iter().filter(|one| is_of_data(one)).map(name_of_elle).collect();
    let expected: BTreeSet<String> = expected.iter().map(|name| (*name).to_owned()).collect();
    assert_eq!(found, expected, "{lines:?}");
}

#[test]
fn the_names_are_those_of_elle() {
    check(&["0 0-1 fail: a1=1", "1 2-3 ok: r1=1"], &["G1a"]);
    check(&["0 0-1 ok: a1=1 a2=1", "1 2-3 ok: a1=2 a2=2", "2 4-5 ok: r1=1,2 r2=2,1"], &["G0"]);
    check(&["0 0-1 ok: a1=1 r2=1", "1 2-3 ok: a1=2 a2=1", "2 4-5 ok: r1=1,2"], &["G1c"]);
    check(&["0 0-1 ok: a1=1 a2=1", "1 2-3 ok: a1=2 r2=", "2 4-5 ok: r1=1,2"], &["G-single"]);
    check(&["0 0-1 ok: a1=1 r2=", "1 2-3 ok: a2=1 r1="], &["G2-item"]);
    check(
        &["0 0-1 ok: a1=0", "1 2-3 ok: r1=0 a1=1", "2 4-5 ok: r1=0 a1=2"],
        &["G2-item", "lost update"],
    );
    check(&["0 0-1 fail: a1=1", "1 2-3 ok: a1=2", "2 4-5 ok: r1=1,2"], &["G1a", "dirty update"]);
    check(&["0 0-1 ok: a1=1", "1 2-3 ok: r1=1,1"], &["duplicate elements"]);
    check(&["0 0-1 ok: r1=1 a1=1"], &["future read"]);
    check(
        &[
            "0 0-1 ok: a1=1",
            "0 2-3 ok: a1=3",
            "1 4-5 ok: r1=1,3",
            "0 6-7 ok: a1=2",
            "1 8-9 ok: r1=1,2,3",
        ],
        &["incompatible order"],
    );
    check(&["0 0-1 ok: a1=1", "1 2-3 ok: a1=2 r1=1"], &["internal"]);
    check(
        &[
            "0 0-1 ok: a1=1",
            "0 2-3 ?: a1=2",
            "0 6-7 ok: a1=4",
            "0 8-9 fail: a1=5",
            "0 10-11 ?: a1=6",
            "0 12-13 ok: a1=9",
            "1 14-15 ok: r1=1,2,4,5,6,9",
        ],
        &["G1a", "dirty update"],
    );
    // A stale read is no anomaly of the data.
    check(&["0 0-1 ok: a1=1", "1 2-3 ok: a1=2", "2 4-5 ok: r1=1"], &[]);
    check(&["0 0-1 ok: w1=1", "1 2-3 ok: g1=1 w2=1", "2 4-5 ok: g2=1 g1="], &["G-single"]);
}
