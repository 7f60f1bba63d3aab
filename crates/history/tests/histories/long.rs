//! A history of a million transactions: how long it takes, and how much memory.

use std::io::Write;
use std::time::Instant;

use history::file::{HistoryWriter, read};
use history::{
    History, HistoryFindings, HistoryWorkload, IsolationLevel, LevelJudgement, TransactionOutcome,
    check,
};
use stats::Prng;

/// Writes the history of a serializable database: clients whose transactions overlap in time, each with
/// four operations, on lists of up to some thirty elements. With stale reads, a tenth of them lack some.
fn written(transactions: u64, is_stale: bool) -> Vec<u8> {
    let group = HistoryWorkload { server: "primary".to_owned(), ..HistoryWorkload::default() };
    let mut out = HistoryWriter::header([&group], 1);
    let mut recorder = HistoryWriter::default();
    let clients = 16;
    for client in 0..clients {
        recorder.connected(&mut out, client, 0, 1 + client as i32, 0);
    }
    let mut prng = Prng::new(7);
    let (keys, appends_each) = (64, 30);
    let mut lists: Vec<(i64, Vec<i64>)> = (0..keys).map(|key| (key, Vec::new())).collect();
    let mut next_key = keys;
    let mut last = vec![0; clients as usize];
    for number in 0..transactions {
        let client = (number % u64::from(clients)) as u32;
        let (commit, seq) = (1_000 + number * 100, number / u64::from(clients) + 1);
        let begun: u64 = (commit - 1 - prng.below(700) as u64).max(last[client as usize]);
        let ended = commit + 1 + prng.below(700) as u64;
        last[client as usize] = ended;
        recorder.begins(&mut out, client, seq, begun);
        for operation in 0..4 {
            let at = prng.below(lists.len());
            let (key, list) = &mut lists[at];
            if operation % 2 == 0 {
                let lacks = if is_stale && prng.below(10) == 0 { prng.below(4) } else { 0 };
                let read = &list[..list.len().saturating_sub(lacks)];
                recorder.has_read_list(&mut out, client, *key, read);
                continue;
            }
            let value = (number * 4 + operation) as i64;
            recorder.appends(&mut out, client, *key, value);
            list.push(value);
            if list.len() == appends_each {
                (*key, *list) = (next_key, Vec::new());
                next_key += 1;
            }
        }
        recorder.ends(&mut out, client, TransactionOutcome::Committed, ended);
    }
    recorder.finishes(&mut out);
    out
}

/// The largest memory that this process has used, in MiB.
fn peak_mib() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    line.and_then(|line| line.trim().trim_end_matches(" kB").parse::<u64>().ok()).unwrap_or(0)
        / 1024
}

/// Judges a million transactions in a file of their own, so that the text is no part of the memory.
fn judge(is_stale: bool) -> HistoryFindings {
    let path = std::env::temp_dir().join(format!("{}-{is_stale}.history", std::process::id()));
    std::fs::write(&path, written(1_000_000, is_stale)).unwrap();
    let bytes = std::fs::metadata(&path).unwrap().len();
    let file = std::io::BufReader::new(std::fs::File::open(&path).unwrap());
    let began = Instant::now();
    let mut history = History::default();
    read(&mut history, "0.history", file).unwrap();
    let was_read = began.elapsed();
    let findings = check(&history);
    let judged = began.elapsed();
    std::fs::remove_file(&path).unwrap();
    let (mib, peak) = (bytes >> 20, peak_mib());
    let line = format!("{mib} MiB, read in {was_read:.2?}, judged after {judged:.2?}, {peak} MiB");
    writeln!(std::io::stdout().lock(), "{line}").unwrap();
    assert!(judged.as_secs() < 60 && peak < 2_048, "{line}");
    findings
}

/// `cargo test -p history --test histories million -- --ignored --nocapture --test-threads 1`
#[test]
#[ignore = "a minute, and a gigabyte of memory"]
fn a_million_transactions_are_judged_in_a_minute_and_two_gibibytes() {
    let findings = judge(false);
    assert_eq!(
        findings.judge(IsolationLevel::StrictSerializable),
        LevelJudgement::Holds,
        "{findings:?}"
    );
}

#[test]
#[ignore = "a minute, and a gigabyte of memory"]
fn a_million_transactions_with_stale_reads_take_no_longer() {
    let findings = judge(true);
    let counts = &findings.anomalies;
    writeln!(std::io::stdout().lock(), "{counts:?}, partial: {}", findings.is_partial).unwrap();
    assert_eq!(findings.judge(IsolationLevel::RepeatableRead), LevelJudgement::Violated);
}
