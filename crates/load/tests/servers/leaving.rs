//! A client that is done leaves: others may wait for what its session has.

use std::time::{Duration, Instant};

use lab::{PoolMode, PoolerConfig, PoolerProgram};
use load::{LoadEnd, LoadLimit, Protocol, WarmUp};
use record::ledger::{Ledger, LedgerOutcome};

use crate::support::{Server, plan, run, window, workload};

const TIMED: LoadLimit = LoadLimit::Time { warm_up: WarmUp::Fixed(0), window_ms: 300 };

/// Runs it in a thread of its own; none where it does not end.
fn ends(plan: load::LoadPlan) -> Option<Box<load::LoadOutcome>> {
    let (sender, outcome) = std::sync::mpsc::channel();
    std::thread::spawn(move || sender.send(Box::new(run(&plan).unwrap())));
    outcome.recv_timeout(Duration::from_secs(15)).ok()
}

#[test]
fn a_lock_of_a_session_is_free_when_its_client_is_done() {
    let server = Server::shared();
    let check = |number: u32, limit, protocol, connect_each, lanes| {
        let script = format!("SELECT pg_advisory_lock({number});\n");
        let mut workload = workload(&server.conninfo(), &script, 3);
        (workload.protocol, workload.connect_each) = (protocol, connect_each);
        let mut plan = plan(workload, limit);
        plan.lanes = lanes;
        let outcome = ends(plan).expect("an end");
        let context = format!("{limit:?} {protocol:?} {connect_each} {lanes}");
        assert_eq!(outcome.end, LoadEnd::Completed, "{context}");
        assert!(outcome.workloads[0].counts_total.transactions >= 3, "{context}");
        if !connect_each {
            assert_eq!(outcome.disconnecting.count, 3, "{context}");
        }
    };
    check(1, LoadLimit::Transactions(1), Protocol::Simple, false, 1);
    check(2, LoadLimit::Transactions(4), Protocol::Prepared, false, 2);
    check(3, LoadLimit::Transactions(2), Protocol::Simple, true, 1);
    check(4, TIMED, Protocol::Simple, false, 1);
    check(5, TIMED, Protocol::Extended, false, 2);
}

#[test]
fn a_pool_of_sessions_may_be_smaller_than_the_number_of_clients() {
    let server = Server::shared();
    let program = lab::find::pgbouncer(None).expect("the tests need an installed PgBouncer");
    let config = PoolerConfig {
        pool: 1,
        mode: PoolMode::Session,
        ..PoolerConfig::new(PoolerProgram::Found(program), server.node.endpoint())
    };
    let mut front = server.lab.pooler("narrow", config).unwrap();
    front.start().unwrap();
    let conninfo = front.endpoint().to_string();
    let check = |limit, protocol| {
        let mut workload = workload(&conninfo, "SELECT 1;\n", 3);
        workload.protocol = protocol;
        let mut plan = plan(workload, limit);
        plan.lanes = 1;
        let outcome = ends(plan).expect("an end");
        assert_eq!(outcome.end, LoadEnd::Completed, "{limit:?} {protocol:?}");
        assert_eq!(outcome.workloads[0].counts_total.aborted_clients, 0);
        outcome.workloads[0].counts_total.transactions
    };
    assert_eq!(check(LoadLimit::Transactions(5), Protocol::Simple), 15);
    assert_eq!(check(LoadLimit::Transactions(5), Protocol::Prepared), 15);
    assert!(check(TIMED, Protocol::Simple) > 3);
    assert!(check(TIMED, Protocol::Prepared) > 1);
}

/// Whatever a study measures in its window, no client leaves in it.
#[test]
fn nobody_leaves_before_the_window_has_closed() {
    let server = Server::shared();
    for (drain_ms, lanes) in [(None, 1), (Some(5_000), 1), (Some(5_000), 3)] {
        // The next slot of an open loop lies beyond the close: the client is done long before.
        let mut workload = workload(&server.conninfo(), "SELECT 1;\n", 2);
        workload.pace = load::Pace::Constant(1.0);
        workload.session = vec![("application_name".to_owned(), "early".to_owned())];
        let busy = crate::support::workload(&server.conninfo(), "\\sleep 10 ms\nSELECT 1;\n", 1);
        let mut plan =
            plan(workload, LoadLimit::Time { warm_up: WarmUp::Fixed(0), window_ms: 900 });
        (plan.drain_ms, plan.lanes) = (drain_ms, lanes);
        plan.workloads.push(busy);
        let began = Instant::now();
        let loading = std::thread::spawn(move || run(&plan).unwrap());
        std::thread::sleep(Duration::from_millis(500));
        let there = "SELECT count(*) FROM pg_stat_activity WHERE application_name = 'early'";
        let there = server.number(there);
        // On a machine without a core to spare the moment may have passed.
        if began.elapsed() < Duration::from_millis(800) {
            assert_eq!(there, 2, "{drain_ms:?} {lanes}");
        }
        assert_eq!(loading.join().unwrap().disconnecting.count, 3);
    }
}

/// The rig's own cancel ends the wait for a standby: the commit is done on the primary only.
#[test]
fn a_commit_whose_wait_for_a_standby_the_rig_has_cancelled_is_unknown() {
    let server = Server::start(&[("synchronous_standby_names", "nobody")]);
    server.execute("SET synchronous_commit = local; CREATE TABLE log (client int, seq int)");
    let script = "INSERT INTO log VALUES (:ledger_client, :ledger_seq);\n";
    for (protocol, quiet) in [(Protocol::Simple, "warning"), (Protocol::Prepared, "error")] {
        let mut workload = workload(&server.conninfo(), script, 4);
        workload.protocol = protocol;
        workload.session = vec![("client_min_messages".to_owned(), quiet.to_owned())];
        let mut plan = plan(workload, window(300));
        plan.drain_ms = Some(100);
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().display().to_string();
        plan.ledger = Some(load::LedgerPlan { directory: path, seed: 1 });
        let result = run(&plan).unwrap().workloads.remove(0);
        let counts = &result.counts_total;
        assert_eq!((counts.transactions, counts.failed(), result.unknown), (0, 0, 4), "{quiet}");
        let ledger = Ledger::read(directory.path()).unwrap();
        let outcomes: Vec<LedgerOutcome> =
            ledger.clients().flat_map(|(_, all)| all.iter().map(|one| one.outcome)).collect();
        assert_eq!(outcomes, [LedgerOutcome::Unknown; 4], "{quiet}");
    }
    // They are there, all of them.
    assert_eq!(server.number("SELECT count(*) FROM log"), 8);
}
