//! The files that a run leaves: pgbench's logs, and ours.

use std::fs;
use std::path::Path;

use crate::common::Server;
use serde_json::Value;
use stats::hdr_log;

fn initialised() -> Server {
    let server = Server::start(&[]);
    assert_eq!(server.ours("postgres", "-i -q").code, 0);
    server
}

/// The lines of all log files with a prefix.
fn log_lines(folder: &Path, prefix: &str) -> Vec<Vec<String>> {
    let mut names: Vec<_> = fs::read_dir(folder)
        .expect("a folder")
        .flatten()
        .map(|entry| entry.path())
        .filter(|path| {
            path.file_name().is_some_and(|name| name.to_string_lossy().starts_with(prefix))
        })
        .collect();
    names.sort();
    let text = names.iter().map(|name| fs::read_to_string(name).expect("a log"));
    text.collect::<String>()
        .lines()
        .map(|line| line.split(' ').map(str::to_owned).collect())
        .collect()
}

#[test]
fn logs_have_pgbenchs_columns() {
    let server = initialised();
    let folder = tempfile::tempdir().expect("a folder");
    for (number, line) in [
        "-S -n -t 7 -c 3 -j 2 -l",
        "-S -n -t 7 -l -R 200",
        "-S -n -t 7 -l -R 200 -L 100 --max-tries=2",
        "-S -n -T 3 -l --aggregate-interval=1",
        "-S -n -T 2 -l --aggregate-interval=1 -R 100 -L 50 --max-tries=2 --failures-detailed",
    ]
    .into_iter()
    .enumerate()
    {
        let run = |who: &str| {
            let prefix = format!("{who}{number}");
            let line = format!("{line} --log-prefix={}", folder.path().join(&prefix).display());
            let ended = match who {
                "ours" => server.ours_alike("postgres", &line),
                _ => server.theirs("postgres", &line),
            };
            assert_eq!(ended.code, 0, "{line}: {ended:?}");
            log_lines(folder.path(), &prefix)
        };
        let (ours, theirs) = (run("ours"), run("theirs"));
        assert!(!ours.is_empty() && !theirs.is_empty(), "{line}");
        for log_line in ours.iter().chain(&theirs) {
            assert_eq!(log_line.len(), theirs[0].len(), "{line}: {log_line:?}");
            // On a busy machine a transaction may be later than -L allows.
            let is_known = |field: &String| field == "skipped" || field.parse::<u64>().is_ok();
            assert!(log_line.iter().all(is_known), "{log_line:?}");
        }
        if !line.contains("aggregate") {
            assert_eq!(ours.len(), theirs.len(), "{line}");
        }
    }
    // Where no log can be, nothing begins.
    let line = "-S -n -t 1 -l --log-prefix=/nonexistent/log";
    for ended in [server.ours("postgres", line), server.theirs("postgres", line)] {
        assert_eq!(ended.code, 1, "{ended:?}");
        let why = "could not open logfile \"/nonexistent/log.";
        assert!(ended.err.contains(why) && !ended.err.contains("os error"), "{ended:?}");
        assert!(!ended.out.contains("tps"), "{ended:?}");
    }
}

/// A client whose every transaction fails by an error that is neither a serialization failure nor a
/// deadlock, beside one that has none.
#[test]
fn logs_have_pgbench_19s_other_failures() {
    let server = Server::start(&[]);
    let folder = tempfile::tempdir().expect("a folder");
    let script = folder.path().join("half.sql");
    fs::write(&script, "select 1 / :client_id;\n").expect("a script");
    let base = format!("-n -f {} -c 2 -l --continue-on-error", script.display());
    let logged = |number: usize, line: &str| {
        let run = |who: &str| {
            let prefix = format!("{who}{number}");
            let line =
                format!("{base} {line} --log-prefix={}", folder.path().join(&prefix).display());
            let ended = match who {
                "ours" => server.ours("postgres", &format!("{line} --as=19")),
                _ => server.theirs("postgres", &line),
            };
            assert_eq!(ended.code, 0, "{line}: {ended:?}");
            log_lines(folder.path(), &prefix)
        };
        // Earlier ones have neither the option nor the column.
        let theirs = (crate::common::theirs_major() >= 19).then(|| run("theirs"));
        [Some(run("ours")), theirs].into_iter().flatten().collect::<Vec<_>>()
    };
    for (number, (line, word)) in
        [("-t 20 --failures-detailed", "other"), ("-t 20", "failed")].into_iter().enumerate()
    {
        for log in logged(number, line) {
            let count = |is_it: &dyn Fn(&str) -> bool| {
                log.iter().filter(|columns| is_it(&columns[2])).count()
            };
            assert_eq!(log.len(), 40, "{log:?}");
            assert_eq!(count(&|latency| latency == word), 20, "{line}: {log:?}");
            assert_eq!(count(&|latency| latency.parse::<u64>().is_ok()), 20, "{line}: {log:?}");
        }
    }
    let aggregate = "-T 3 -R 100 --aggregate-interval=1 --failures-detailed";
    for log in logged(2, aggregate) {
        let sum_of = |column: usize| -> u64 {
            log.iter().map(|columns| columns[column].parse::<u64>().expect("a number")).sum()
        };
        assert!(log.iter().all(|columns| columns.len() == 16), "{log:?}");
        assert_eq!((sum_of(13), sum_of(14)), (0, 0), "{log:?}");
        assert!((50..=250).contains(&sum_of(15)), "{log:?}");
    }
}

#[test]
fn the_document_holds_everything() {
    let server = initialised();
    let folder = tempfile::tempdir().expect("a folder");
    let file = |name: &str| folder.path().join(name).display().to_string();
    let (json, hdr) = (file("run.json"), file("run.hlog"));
    let line = format!("-c 2 -T 2 -r -n -R 100 --interval=500 --json={json} --hdr={hdr}");
    let ended = server.ours("postgres", &line);
    assert_eq!(ended.code, 0, "{ended:?}");

    let text = fs::read_to_string(&json).expect("written");
    let document: Value = serde_json::from_str(&text).expect("JSON");
    let number = |pointer: &str| document.pointer(pointer).and_then(Value::as_f64);
    assert_eq!(document["format"], "pgrig bench");
    assert_eq!(document["version"], 1);
    assert_eq!(document["end"], "completed");
    assert_eq!(number("/options/clients"), Some(2.0));
    assert_eq!(number("/options/rate"), Some(100.0));
    let transactions = number("/pgbench_way/transactions").expect("a count");
    assert!(
        ended.out.contains(&format!("actually processed: {transactions}\n")),
        "{transactions} {ended:?}"
    );
    let tps = number("/pgbench_way/tps").expect("a rate");
    assert!(ended.out.contains(&format!("tps = {tps:.6} ")), "{tps} {ended:?}");
    assert!((number("/window/seconds").expect("a length") - 2.0).abs() < 0.1);
    assert!(number("/latency/p99_ns") >= number("/latency/p50_ns"));
    assert!(number("/latency/mean_ns") >= number("/service/mean_ns"));
    assert_eq!(document["statements"].as_array().map(Vec::len), Some(11));
    let intervals = document["intervals"].as_array().expect("intervals");
    assert!((4..=6).contains(&intervals.len()), "{}", intervals.len());

    let log = hdr_log::read(&fs::read_to_string(&hdr).expect("written")).expect("an HDR log");
    let (sent, all): (Vec<_>, Vec<_>) =
        log.intervals.iter().partition(|interval| interval.tag.is_some());
    assert_eq!((sent.len(), all.len()), (intervals.len(), intervals.len()));
    let count: u64 = all.iter().map(|interval| interval.latency.count()).sum();
    assert_eq!(count as f64, transactions);
}
