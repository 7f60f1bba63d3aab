//! What clients count is what the server has.

use load::{LoadEnd, LoadLimit, OnError, Protocol, WarmUp};

use crate::support::{Server, plan, run, window, workload};

const PROTOCOLS: [Protocol; 3] = [Protocol::Simple, Protocol::Extended, Protocol::Prepared];

#[test]
fn so_many_transactions_each_are_so_many_rows() {
    let server = Server::shared();
    server.execute("CREATE TABLE fixed (client int, number int)");
    let script = "\\set n random(1, 9)\nINSERT INTO fixed VALUES (:client_id, :n);\n";
    let pipeline = "\\startpipeline\nINSERT INTO fixed VALUES (:client_id, 1);\nSELECT 1;\n\
                    \\endpipeline\n";
    let check = |script: &str, protocol, connect_each| {
        server.execute("TRUNCATE fixed");
        let mut workload = workload(&server.conninfo(), script, 7);
        workload.protocol = protocol;
        workload.connect_each = connect_each;
        let outcome = run(&plan(workload, LoadLimit::Transactions(13))).unwrap();
        assert_eq!(outcome.end, LoadEnd::Completed);
        let result = &outcome.workloads[0];
        assert_eq!(result.counts_total.transactions, 91);
        assert_eq!(result.counts, result.counts_total, "no warm-up, no drain");
        assert_eq!(result.per_client, [13; 7]);
        assert_eq!(result.published_way.transactions, 91);
        assert_eq!(result.latency.count(), 91);
        assert!(result.service.is_empty(), "in a closed loop there is one latency");
        assert_eq!(server.number("SELECT count(*) FROM fixed"), 91, "{protocol:?}");
        let each = "SELECT count(*) FROM (SELECT FROM fixed GROUP BY client HAVING count(*) = 13)c";
        assert_eq!(server.number(each), 7);
        assert_eq!(outcome.connecting.count, if connect_each { 91 } else { 7 });
    };
    for protocol in PROTOCOLS {
        check(script, protocol, false);
        check(script, protocol, true);
    }
    check(pipeline, Protocol::Extended, false);
    check(pipeline, Protocol::Prepared, false);
}

#[test]
fn a_window_counts_a_part_and_the_whole_equals_the_servers() {
    let server = Server::shared();
    server.execute("CREATE TABLE timed (a int)");
    let mut workload = workload(&server.conninfo(), "INSERT INTO timed VALUES (1);\n", 4);
    workload.protocol = Protocol::Prepared;
    let outcome = run(&plan(workload, window(800))).unwrap();
    let result = &outcome.workloads[0];
    assert_eq!(result.counts_total.transactions, server.number("SELECT count(*) FROM timed"));
    assert!(result.counts.transactions < result.counts_total.transactions);
    assert_eq!(result.unknown, 0);
    let window = outcome.window.unwrap();
    assert_eq!(window.close.since(window.open), 800_000_000);
    assert_eq!(window.open.since(window.load_began), 200_000_000);
    let inside =
        outcome.intervals.iter().filter(|i| i.start >= window.open && i.start < window.close);
    let (mut n, mut length) = (0, 0);
    for interval in inside {
        n += interval.counts.transactions;
        length += interval.length_ns;
    }
    assert_eq!((n, length), (result.counts.transactions, 800_000_000));
    assert_eq!(result.per_client.iter().sum::<u64>(), n);
    assert!(outcome.generator.cpu_ns > 0 && outcome.generator.busy_share_max <= 1.0);
    assert_eq!((outcome.connecting.count, outcome.disconnecting.count), (4, 4));
}

#[test]
fn retried_transactions_happen_exactly_once() {
    let server = Server::shared();
    server.execute("CREATE TABLE hot (a int); INSERT INTO hot VALUES (0)");
    let script = "BEGIN ISOLATION LEVEL REPEATABLE READ;\nSELECT a FROM hot;\n\
                  UPDATE hot SET a = a + 1;\nEND;\n";
    let mut workload = workload(&server.conninfo(), script, 6);
    workload.on_error = OnError { tries_max: 0, go_on: false };
    let outcome = run(&plan(workload, LoadLimit::Transactions(20))).unwrap();
    let counts = &outcome.workloads[0].counts_total;
    assert_eq!((counts.transactions, counts.failed()), (120, 0));
    assert_eq!(server.number("SELECT a FROM hot"), 120);
    assert_eq!(counts.errors.get("40001").copied().unwrap_or(0), counts.retries);
}

#[test]
fn workloads_run_side_by_side() {
    let server = Server::shared();
    server.execute("CREATE TABLE side (w int)");
    let script = "INSERT INTO side VALUES (:w);\n";
    let with = |name: &str, number: &str, clients, pace| {
        let mut workload = workload(&server.conninfo(), script, clients);
        workload.name = name.to_owned();
        workload.variables = vec![("w".to_owned(), number.to_owned())];
        workload.pace = pace;
        workload
    };
    let mut plan = plan(with("closed", "1", 1, load::Pace::Closed), window(600));
    plan.workloads.push(with("open", "2", 3, load::Pace::Constant(50.0)));
    let outcome = run(&plan).unwrap();
    for (index, workload) in outcome.workloads.iter().enumerate() {
        let rows = server.number(&format!("SELECT count(*) FROM side WHERE w = {}", index + 1));
        assert_eq!(workload.counts_total.transactions, rows, "{}", workload.name);
    }
    let open = outcome.workloads[1].counts.transactions;
    assert!((20..=40).contains(&open), "{open} in 0.6 s at 50 a second");
    assert!(outcome.workloads[0].counts.transactions > 0);
}

#[test]
fn a_warm_up_that_ends_by_itself_opens_a_window() {
    let server = Server::shared();
    let workload = workload(&server.conninfo(), "\\sleep 2 ms\nSELECT 1;\n", 2);
    let limit =
        LoadLimit::Time { warm_up: WarmUp::Auto { min_ms: 600, max_ms: 3_000 }, window_ms: 300 };
    let outcome = run(&plan(workload, limit)).unwrap();
    let window = outcome.window.unwrap();
    assert_eq!(window.close.since(window.open), 300_000_000);
    assert!(window.open.since(window.load_began) >= 600_000_000);
    assert!(outcome.steady.is_some());
}
