//! How old reads were.

use history::ReadStaleness;

use crate::written::judged;

#[test]
fn a_read_is_as_old_as_the_first_acknowledged_append_that_it_lacks() {
    let check = |lines: &[&str], reads: usize, age_ns: u64, lacking: u32| {
        let findings = judged(lines);
        let found: &ReadStaleness = &findings.staleness[0];
        let most = (found.age_ns(1.0), found.lacking(1.0));
        assert_eq!((found.reads(), most), (reads, (Some(age_ns), Some(lacking))), "{lines:?}");
    };
    check(&["0 0-10 ok: a1=1", "1 20-30 ok: r1=1"], 1, 0, 0);
    check(&["0 0-10 ok: a1=1", "1 25-30 ok: r1="], 1, 15, 1);
    // One that had not been acknowledged when the read began may be missing.
    check(&["0 0-10 ok: a1=1", "1 5-30 ok: r1="], 1, 0, 0);
    let two = ["0 0-10 ok: a1=1", "0 11-20 ok: a1=2", "1 30-40 ok: r1=", "2 50-60 ok: r1=1,2"];
    check(&two, 2, 20, 2);
    // One transaction that appended twice is one transaction.
    check(&["0 0-10 ok: a1=1 a1=2", "1 25-30 ok: r1=", "2 40-50 ok: r1=1,2"], 2, 15, 1);
    // An append that is not known to be committed is not missing.
    check(&["0 0-10 ?: a1=1", "1 25-30 ok: r1="], 1, 0, 0);
}

#[test]
fn shares_of_the_reads_are_told() {
    let mut lines = vec!["0 0-10 ok: a1=1".to_owned()];
    lines.extend((0..9).map(|at| format!("1 {}-{} ok: r1=1", 20 + 10 * at, 25 + 10 * at)));
    lines.push("2 110-120 ok: r1=".to_owned());
    let lines: Vec<&str> = lines.iter().map(String::as_str).collect();
    let findings = judged(&lines);
    let found = &findings.staleness[0];
    assert_eq!((found.reads(), found.stale()), (10, 1));
    let ages = [0.5, 0.9, 0.95, 1.0].map(|share| found.age_ns(share));
    assert_eq!(ages, [Some(0), Some(0), Some(100), Some(100)]);
}
