//! Totals are the sums of their parts: in the text, the JSON file, the log and the progress, whatever
//! the options.

use std::fs;
use std::path::Path;
use std::thread;

use crate::common::Server;
use serde_json::Value;

/// Six clients collide on one row. Their sleep makes them collide, and leaves the CPUs to other tests.
const HOT: &str = "begin isolation level repeatable read;\nselect a from HOT;\n\\sleep 2 ms\n\
                   update HOT set a = a + 1;\nend;\n";

/// What the text says of a whole run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Totals {
    processed: u64,
    failed: u64,
    skipped: u64,
    retried: u64,
    retries: u64,
}

/// The number behind some words, in every line that begins with them.
fn numbers(text: &str, words: &str) -> Vec<u64> {
    let behind = text.lines().filter_map(|line| line.strip_prefix(words));
    let digits = behind.map(|rest| rest.trim().split(|c: char| !c.is_ascii_digit()).next());
    digits.map(|digits| digits.unwrap_or_default().parse().expect(words)).collect()
}

fn totals(text: &str, indent: &str) -> Totals {
    let sum = |words: &str| numbers(text, &format!("{indent}{words}: ")).iter().sum();
    Totals {
        processed: sum("number of transactions actually processed"),
        failed: sum("number of failed transactions"),
        skipped: sum("number of transactions skipped"),
        retried: sum("number of transactions retried"),
        retries: sum("total number of retries"),
    }
}

/// Failures and retries of all commands, from the columns of `-r`.
fn columns(text: &str, has_retries: bool) -> (u64, u64) {
    let mut sums = (0, 0);
    for line in text.lines().filter(|line| line.starts_with("     ")) {
        let mut words = line.split_whitespace().skip(1).map_while(|word| word.parse::<u64>().ok());
        sums.0 += words.next().unwrap_or(0);
        sums.1 += if has_retries { words.next().unwrap_or(0) } else { 0 };
    }
    sums
}

fn of_json(counts: &Value) -> Totals {
    let number = |name: &str| counts[name].as_u64().expect(name);
    let kinds = ["serialization_failures", "deadlock_failures", "other_failures"].map(number);
    assert_eq!(kinds.iter().sum::<u64>(), number("failed"), "{counts}");
    Totals {
        processed: number("transactions"),
        failed: number("failed"),
        skipped: number("skipped"),
        retried: number("retried"),
        retries: number("retries"),
    }
}

fn sum(parts: impl Iterator<Item = Totals>) -> Totals {
    parts.fold(Totals::default(), |sum, part| Totals {
        processed: sum.processed + part.processed,
        failed: sum.failed + part.failed,
        skipped: sum.skipped + part.skipped,
        retried: sum.retried + part.retried,
        retries: sum.retries + part.retries,
    })
}

/// What the lines of a log say.
fn of_log(folder: &Path, has_retries: bool) -> Totals {
    let mut totals = Totals::default();
    for file in fs::read_dir(folder).expect("a folder") {
        let path = file.expect("a file").path();
        if !path.file_name().is_some_and(|name| name.to_string_lossy().starts_with("log.")) {
            continue;
        }
        for line in fs::read_to_string(path).expect("a log").lines() {
            let words: Vec<&str> = line.split(' ').collect();
            match words[2] {
                "failed" => totals.failed += 1,
                "skipped" => totals.skipped += 1,
                _ => totals.processed += 1,
            }
            if has_retries && words[2] != "skipped" {
                let retries: u64 = words[words.len() - 1].parse().expect("retries");
                totals.retries += retries;
                totals.retried += u64::from(retries > 0);
            }
        }
    }
    totals
}

fn check(server: &Server, table: &str, length: &str, more: &str) {
    let folder = tempfile::tempdir().expect("a folder");
    let script = folder.path().join("hot.sql");
    fs::write(&script, HOT.replace("HOT", table)).expect("a script");
    let (script, base) = (script.display(), folder.path().display());
    let has_two = !more.contains("--one");
    let more = more.replace("--one", "");
    let scripts =
        if has_two { format!("-f {script}@3 -b select-only@1") } else { format!("-f {script}") };
    let line = format!(
        "-n -c 6 -j 2 {length} {scripts} -r -P 1 -l --log-prefix={base}/log --json={base}/run.json \
         {more}"
    );
    let ended = server.ours("postgres", &line);
    let context = format!("{line}\n{}\n{}", ended.out, ended.err);
    assert_eq!(ended.code, 0, "{context}");
    let has_retries = !more.contains("--max-tries=1");
    let is_warm = more.contains("--warmup");

    let whole = totals(&ended.out, "");
    let failed_and_retried = (whole.failed, whole.retries);
    assert!(whole.processed > 0, "{context}");
    assert_eq!(columns(&ended.out, has_retries), failed_and_retried, "{context}");
    if has_two {
        assert_eq!(totals(&ended.out, " - "), whole, "{context}");
    }

    let text = fs::read_to_string(folder.path().join("run.json")).expect("a file");
    let json: Value = serde_json::from_str(&text).expect("JSON");
    let window = of_json(&json["window"]["counts"]);
    let all = of_json(&json["pgbench_way"]["counts"]);
    let array = |name: &str| json[name].as_array().expect(name).iter();
    let with_text = |json: Totals| match has_retries {
        true => json,
        false => Totals { retried: 0, retries: 0, ..json },
    };
    assert_eq!(with_text(if is_warm { window } else { all }), whole, "{context}");
    assert_eq!(sum(array("scripts").map(|one| of_json(&one["counts"]))), whole, "{context}");
    assert_eq!(sum(array("intervals").map(|one| of_json(&one["counts"]))), all, "{context}");
    let of_statements = |name: &str| -> u64 {
        array("statements").map(|one| one[name].as_u64().expect("a number")).sum()
    };
    assert_eq!((of_statements("failures"), of_statements("retries")), failed_and_retried);
    let clients: u64 = array("per_client").map(|one| one.as_u64().expect("a number")).sum();
    assert_eq!(clients, window.processed, "{context}");
    assert_eq!(json["latency"]["count"].as_u64(), Some(window.processed), "{context}");

    assert_eq!(of_log(folder.path(), has_retries), with_text(all), "{context}");
    let told = ended.err.lines().filter(|line| line.starts_with("progress: "));
    let told =
        told.filter_map(|line| line.split(", ").find_map(|part| part.strip_suffix(" failed")));
    let told: u64 = told.map(|failed| failed.parse::<u64>().expect("a number")).sum();
    assert!(told <= all.failed, "{context}");

    if length == "-T 1" && !more.contains("-L ") && more.contains("--max-tries=0") {
        assert_eq!(all.failed, 0, "nobody gives up but for want of time: {context}");
        assert!(whole.retries > 0, "{context}");
    }
}

#[test]
fn totals_are_the_sums_of_their_parts() {
    let server = Server::start(&[]);
    assert_eq!(server.ours("postgres", "-i -q -s 1").code, 0);
    // Each number of tries has a table of its own, so that its clients meet nobody else.
    thread::scope(|scope| {
        for (table, tries) in
            [("once", "--max-tries=1"), ("thrice", "--max-tries=3"), ("often", "--max-tries=0")]
        {
            server.execute(
                "postgres",
                &format!("create table {table} (a int); insert into {table} values (0)"),
            );
            let server = &server;
            scope.spawn(move || of_tries(server, table, tries));
        }
    });
}

fn of_tries(server: &Server, table: &str, tries: &str) {
    for length in ["-t 60", "-T 1"] {
        for more in ["", "-M prepared", "-M extended -C --one", "-R 400 -L 15", "--one"] {
            // Without a limit of time, tries must have one.
            if length == "-t 60" && tries == "--max-tries=0" && !more.contains("-L") {
                continue;
            }
            check(server, table, length, &format!("{tries} {more}"));
        }
    }
    check(server, table, "-T 1", &format!("{tries} --warmup=0.3"));
    check(server, table, "-T 1", &format!("{tries} --one --warmup=0.3"));
}
