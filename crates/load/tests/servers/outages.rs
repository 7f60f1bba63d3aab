//! Servers and backends that die while a load runs.

use std::time::{Duration, Instant};

use load::{LoadEnd, LoadEvent, LoadLimit, OnLoss, Pace};

use crate::door::Door;
use crate::support::{Server, plan, run, run_listening, run_with, window, workload};

#[test]
fn clients_of_a_dead_server_abort_and_the_load_ends() {
    let mut server = Server::start(&[]);
    let plan = plan(workload(&server.conninfo(), "SELECT 1;\n", 4), window(60_000));
    let mut said = Vec::new();
    let mut killed = false;
    let began = Instant::now();
    let outcome = run_with(&plan, &load::LoadControl::new(), &mut |event| match event {
        LoadEvent::Interval(_) if !killed => {
            killed = true;
            server.node.kill9().expect("a server that can be killed");
        }
        LoadEvent::Message(message) => said.push(message.text),
        _ => {}
    })
    .unwrap();
    assert!(began.elapsed() < Duration::from_secs(20));
    assert_eq!(outcome.end, LoadEnd::Aborted);
    let result = &outcome.workloads[0];
    assert_eq!(result.counts_total.aborted_clients, 4);
    // Backends that outlive the postmaster for a moment still say so.
    let errors = &result.counts_total.errors;
    assert_eq!(errors.values().sum::<u64>(), 4, "{errors:?}, said {said:?}");
    assert!(errors.keys().all(|state| state == "08006" || state == "57P01"), "{errors:?}");
    assert!(result.unknown <= 4);
    assert_eq!(said.len(), 4, "{said:?}");
    assert!(said.iter().all(|text| text.contains("aborted in command 0")), "{said:?}");
}

#[test]
fn clients_that_connect_again_lose_nothing_that_was_acknowledged() {
    let mut server = Server::start(&[]);
    server.execute("CREATE TABLE kept (client int)");
    let script = "INSERT INTO kept VALUES (:client_id);\n";
    let mut closed = workload(&server.conninfo(), script, 6);
    closed.on_loss = OnLoss::Reconnect;
    // Idle clients lose their connections too, and must not be given work without one.
    let mut open = workload(&server.conninfo(), script, 5);
    open.on_loss = OnLoss::Reconnect;
    open.pace = Pace::Poisson(100.0);
    let mut plan = plan(closed, window(4_000));
    plan.workloads.push(open);
    let mut intervals = 0;
    let outcome = run_with(&plan, &load::LoadControl::new(), &mut |event| {
        let LoadEvent::Interval(_) = event else { return };
        intervals += 1;
        if intervals == 6 {
            server.node.kill9().expect("a server that can be killed");
            server.node.start().expect("recovery");
        }
    })
    .unwrap();
    assert_eq!(outcome.end, LoadEnd::Completed, "a fault ends no load");
    let mut acknowledged = 0;
    let mut unknown = 0;
    for result in &outcome.workloads {
        let counts = &result.counts_total;
        assert_eq!(counts.reconnects, u64::from(result.clients), "{counts:?}");
        assert_eq!(counts.aborted_clients, 0);
        assert!(counts.other_failures <= u64::from(result.clients), "{counts:?}");
        acknowledged += counts.transactions;
        unknown += result.unknown;
    }
    let rows = server.number("SELECT count(*) FROM kept");
    assert!((acknowledged..=acknowledged + unknown).contains(&rows), "{rows} of {acknowledged}");
    let window = outcome.window.unwrap();
    let mut last = outcome.intervals.iter().filter(|i| i.workload == 0 && i.start < window.close);
    assert!(last.next_back().unwrap().counts.transactions > 0, "it is back at full speed");
    assert_eq!(outcome.connecting.count, 11, "only the first connections are the phase");
}

#[test]
fn attempts_to_connect_again_have_their_time_too() {
    let server = Server::shared();
    let directory = tempfile::tempdir().unwrap();
    let door = Door::new(directory.path(), &server.socket(), 100);
    let host = directory.path().display();
    let conninfo = format!("host={host} port=1 user=postgres dbname=postgres connect_timeout=2");
    let mut workload = workload(&conninfo, "SELECT pg_sleep(0.01);\n", 3);
    workload.on_loss = OnLoss::Reconnect;
    let mut intervals = 0;
    let outcome =
        run_with(&plan(workload, window(4_500)), &load::LoadControl::new(), &mut |event| {
            let LoadEvent::Interval(_) = event else { return };
            intervals += 1;
            match intervals {
                4 => door.fall_silent(),
                12 => door.open(),
                _ => {}
            }
        })
        .unwrap();
    // Who was answered by nobody gave up after two seconds, and got in at the next attempt.
    let counts = &outcome.workloads[0].counts_total;
    assert_eq!((counts.errors["08006"], counts.reconnects), (3, 3), "{counts:?}");
    assert!(counts.errors["08001"] >= 3, "{counts:?}");
    assert_eq!((outcome.end, counts.aborted_clients), (LoadEnd::Completed, 0));
}

#[test]
fn one_backend_that_is_terminated_costs_one_client() {
    let server = Server::shared();
    let script = "\\if :client_id = 0\nSELECT pg_terminate_backend(pid) FROM pg_stat_activity \
                  WHERE application_name = 'victim' AND pid <> pg_backend_pid() LIMIT 1;\n\
                  \\else\nSELECT pg_sleep(0.01);\n\\endif\n\\sleep 300 ms\n";
    let mut first = workload(&server.conninfo(), script, 1);
    first.name = "killer".to_owned();
    let mut victims = workload(&server.conninfo(), "SELECT pg_sleep(0.01);\n", 3);
    victims.session = vec![("application_name".to_owned(), "victim".to_owned())];
    let mut plan = plan(first, LoadLimit::Time { warm_up: load::WarmUp::Fixed(0), window_ms: 250 });
    plan.workloads.push(victims);
    plan.drain_ms = Some(50);
    let (outcome, said) = run_listening(&plan);
    let outcome = outcome.unwrap();
    let counts = &outcome.workloads[1].counts_total;
    assert_eq!((counts.aborted_clients, counts.errors["57P01"]), (1, 1));
    assert!(counts.transactions > 2, "the others go on");
    assert_eq!(said.len(), 1, "{said:?}");
    assert!(
        said[0].contains("FATAL:  terminating connection due to administrator command"),
        "{said:?}"
    );
}

#[test]
fn a_script_that_fails_in_one_client_leaves_the_others_alone() {
    let server = Server::shared();
    let script = "\\if :client_id = 1\nSELECT no_such_column;\n\\endif\nSELECT 1;\n";
    let workload = workload(&server.conninfo(), script, 3);
    let (outcome, said) = run_listening(&plan(workload.clone(), LoadLimit::Transactions(5)));
    let outcome = outcome.unwrap();
    let counts = &outcome.workloads[0].counts_total;
    assert_eq!((counts.transactions, counts.aborted_clients), (10, 1));
    assert_eq!((outcome.end, counts.errors["42703"]), (LoadEnd::Completed, 1));
    assert!(
        said[0].starts_with("client 1 script 0 aborted in command 1 query 0: ERROR:"),
        "{said:?}"
    );

    let mut strict = plan(workload, window(60_000));
    strict.exit_on_abort = true;
    let began = Instant::now();
    assert_eq!(run(&strict).unwrap().end, LoadEnd::ExitedOnAbort(0));
    assert!(began.elapsed() < Duration::from_secs(20));
}
