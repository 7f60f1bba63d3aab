//! pgbench's final block, from made-up outcomes.

use load::Protocol;
use pgbench::options::{Invocation, PartitionMethod, Partitions, Request, RunOptions};
use pgbench::words::{CommandWords, ScriptWords, Words};
use record::TransactionCounts;
use stats::LatencyHistogram;

fn options(line: &str) -> RunOptions {
    let arguments: Vec<String> =
        line.split(' ').filter(|word| !word.is_empty()).map(str::to_owned).collect();
    match Request::read(&Invocation::of(&arguments, None)) {
        Ok(Request::Run(options)) => *options,
        other => panic!("{line}: {other:?}"),
    }
}

fn latency_ms(values: &[u64]) -> LatencyHistogram {
    let mut latency = LatencyHistogram::new();
    values.iter().for_each(|ms| latency.record_ns(ms * 1_000_000));
    latency
}

/// The block of a run with these options: 1000 transactions in 2 s unless `counts` says otherwise.
fn block(line: &str, counts: TransactionCounts, partitions: Option<Partitions>) -> String {
    let options = options(line);
    let latency = latency_ms(&[1, 2, 3]);
    let lag = latency_ms(&[1, 5]);
    let commands = || {
        vec![
            CommandWords { text: "\\set aid 1", mean_ms: 0.0014, failures: 0, retries: 0 },
            CommandWords { text: "SELECT 1;", mean_ms: 12.3456, failures: 2, retries: 3 },
        ]
    };
    let scripts = options.scripts.iter().map(|script| ScriptWords {
        name: &script.name,
        weight: script.weight,
        counts: &counts,
        latency: &latency,
        commands: if options.per_command { commands() } else { Vec::new() },
    });
    Words {
        options: &options,
        scale: 10,
        partitions,
        counts: &counts,
        latency: latency.clone(),
        lag,
        seconds: 2.0,
        connecting_ns: 2_345_678,
        scripts: scripts.collect(),
    }
    .block()
}

fn thousand() -> TransactionCounts {
    TransactionCounts { transactions: 1000, ..TransactionCounts::default() }
}

#[test]
fn the_plain_block() {
    let expected = "\
transaction type: <builtin: select only>
scaling factor: 10
query mode: prepared
number of clients: 4
number of threads: 2
maximum number of tries: 1
duration: 2 s
number of transactions actually processed: 1000
number of failed transactions: 0 (0.000%)
latency average = 8.000 ms
initial connection time = 2.346 ms
tps = 500.000000 (without initial connection time)
";
    assert_eq!(block("-S -c 4 -j 2 -T 2 -M prepared", thousand(), None), expected);
    assert_eq!(options("-S -M prepared").protocol, Protocol::Prepared);
}

#[test]
fn the_block_of_a_number_of_transactions_over_partitions() {
    let partitions = Partitions { count: 8, method: PartitionMethod::Hash };
    let expected = "\
transaction type: <builtin: TPC-B (sort of)>
scaling factor: 10
partition method: hash
partitions: 8
query mode: simple
number of clients: 2
number of threads: 1
maximum number of tries: 1
number of transactions per client: 500
number of transactions actually processed: 1000/1000
number of failed transactions: 0 (0.000%)
latency average = 2.000 ms
latency stddev = 0.816 ms
average connection time = 0.002 ms
tps = 500.000000 (including reconnection times)
";
    assert_eq!(block("-c 2 -t 500 -C -P 1", thousand(), Some(partitions)), expected);
}

#[test]
fn a_run_without_any_transaction_has_no_figures() {
    let expected = "\
transaction type: <builtin: TPC-B (sort of)>
scaling factor: 10
query mode: simple
number of clients: 1
number of threads: 1
maximum number of tries: 1
number of transactions per client: 10
number of transactions actually processed: 0/10
";
    assert_eq!(block("", TransactionCounts::default(), None), expected);
}

#[test]
fn failures_retries_skipped_and_late_transactions() {
    let counts = TransactionCounts {
        transactions: 900,
        skipped: 60,
        retried: 50,
        retries: 75,
        serialization_failures: 25,
        deadlock_failures: 10,
        other_failures: 5,
        late: 90,
        ..TransactionCounts::default()
    };
    let text = block("-T 2 -R 500 -L 10 --max-tries 0 --failures-detailed", counts.clone(), None);
    let expected = "\
transaction type: <builtin: TPC-B (sort of)>
scaling factor: 10
query mode: simple
number of clients: 1
number of threads: 1
duration: 2 s
number of transactions actually processed: 900
number of failed transactions: 40 (4.000%)
number of serialization failures: 25 (2.500%)
number of deadlock failures: 10 (1.000%)
number of other failures: 5 (0.500%)
number of transactions retried: 50 (5.000%)
total number of retries: 75
number of transactions skipped: 60 (6.000%)
number of transactions above the 10.0 ms latency limit: 90/900 (10.000%)
latency average = 2.000 ms
latency stddev = 0.816 ms
rate limit schedule lag: avg 3.000 (max 5.000) ms
initial connection time = 2.346 ms
tps = 450.000000 (without initial connection time)
";
    assert_eq!(text, expected);
    let text = block("-T 2 --continue-on-error --failures-detailed", counts.clone(), None);
    let expected = "\nnumber of other failures: 5 (0.500%)\n\
                    latency average = 2.000 ms (including failures)\n";
    assert!(text.contains(expected), "{text}");
    let line = "number of other failures: ";
    assert!(block("-T 2 --failures-detailed", counts.clone(), None).contains(line));
    assert!(!block("-T 2 --failures-detailed --as=18", counts, None).contains(line));
}

#[test]
fn several_scripts_and_their_commands() {
    let text = block("-T 2 -b tpcb@3 -S -r --max-tries 2", thousand(), None);
    let expected = "\
tps = 500.000000 (without initial connection time)
SQL script 1: <builtin: TPC-B (sort of)>
 - weight: 3 (targets 75.0% of total)
 - 1000 transactions (100.0% of total)
 - number of transactions actually processed: 1000 (tps = 500.000000)
 - number of failed transactions: 0 (0.000%)
 - number of transactions retried: 0 (0.000%)
 - total number of retries: 0
 - latency average = 2.000 ms
 - latency stddev = 0.816 ms
 - statement latencies in milliseconds, failures and retries:
         0.001           0          0 \\set aid 1
        12.346           2          3 SELECT 1;
SQL script 2: <builtin: select only>
";
    assert!(text.starts_with("transaction type: multiple scripts\n"), "{text}");
    assert!(text.contains(expected), "{text}");
    let text = block("-T 2 -S -r", thousand(), None);
    let expected = "\
tps = 500.000000 (without initial connection time)
statement latencies in milliseconds and failures:
         0.001           0 \\set aid 1
        12.346           2 SELECT 1;
";
    assert!(text.ends_with(expected), "{text}");
}
