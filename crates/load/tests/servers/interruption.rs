//! Ctrl-C: once ends the window and reports, twice stops at once.

use std::{
    thread,
    time::{Duration, Instant},
};

use load::{LoadControl, LoadEnd, LoadError, LoadEvent};
use testing::lag::Lag;

use crate::support::{Server, plan, run_with, window, workload};

/// Interrupts `times` when the load has run for `after`.
fn interrupt_after(
    after: Duration,
    times: u32,
    control: &LoadControl,
) -> impl FnMut(LoadEvent<'_>) {
    let control = control.clone();
    move |event| {
        if matches!(event, LoadEvent::LoadBegan { .. }) {
            let control = control.clone();
            thread::spawn(move || {
                thread::sleep(after);
                for _ in 0..times {
                    control.interrupt();
                    thread::sleep(Duration::from_millis(100));
                }
            });
        }
    }
}

#[test]
fn once_ends_the_window_cancels_what_runs_and_reports() {
    let server = Server::shared();
    let script = "\\if :client_id = 0\nSELECT pg_sleep(60) AS interrupted_once;\n\\elif :client_id = 1\n\
                  \\sleep 60 s\n\\else\nSELECT 1;\n\\endif\n";
    let plan = plan(workload(&server.conninfo(), script, 4), window(60_000));
    let control = LoadControl::new();
    let (lag, began) = (Lag::watch(), Instant::now());
    let mut said = Vec::new();
    let mut interrupt = interrupt_after(Duration::from_millis(600), 1, &control);
    let outcome = run_with(&plan, &control, &mut |event| {
        if let LoadEvent::Message(message) = &event {
            said.push(message.text.clone());
        }
        interrupt(event);
    });
    let outcome = outcome.unwrap();
    assert!(began.elapsed() < lag.allow(Duration::from_secs(10)), "{:?}", began.elapsed());
    assert_eq!(outcome.end, LoadEnd::Interrupted);
    let window = outcome.window.unwrap();
    let most = lag.allow(Duration::from_secs(5)).as_secs_f64();
    assert!(window.seconds() > 0.2 && window.seconds() < most, "{}", window.seconds());
    let counts = &outcome.workloads[0].counts;
    assert!(counts.transactions > 0);
    let total = &outcome.workloads[0].counts_total;
    assert_eq!((total.aborted_clients, total.failed(), total.errors.len()), (0, 0, 0));
    assert_eq!(said, Vec::<String>::new());
    let left = "SELECT count(*) FROM pg_stat_activity WHERE state = 'active' \
                AND query LIKE 'SELECT pg_sleep(60) AS interrupted_once%'";
    assert_eq!(server.number(left), 0, "the sleep on the server was cancelled");
}

#[test]
fn during_warm_up_there_is_no_window_but_a_report() {
    let server = Server::shared();
    let mut plan = plan(workload(&server.conninfo(), "SELECT 1;\n", 2), window(60_000));
    plan.limit = load::LoadLimit::Time { warm_up: load::WarmUp::Fixed(60_000), window_ms: 60_000 };
    let control = LoadControl::new();
    let mut interrupt = interrupt_after(Duration::from_millis(300), 1, &control);
    let outcome = run_with(&plan, &control, &mut interrupt).unwrap();
    assert_eq!((outcome.end, outcome.window), (LoadEnd::Interrupted, None));
    let result = &outcome.workloads[0];
    assert!(result.published_way.transactions > 0 && result.published_way.seconds > 0.1);
}

#[test]
fn twice_waits_for_nobody() {
    // A server that stands still answers no cancel.
    let server = Server::start(&[]);
    let conninfo = server.conninfo();
    let plan = plan(workload(&conninfo, "SELECT 1;\n", 3), window(60_000));
    let control = LoadControl::new();
    let mut paused = false;
    let mut server = server;
    let (lag, mut ended) = (Lag::watch(), Instant::now());
    let outcome = run_with(&plan, &control, &mut |event| {
        if matches!(event, LoadEvent::Interval(_)) && !paused {
            paused = true;
            server.node.pause().expect("a server that can be paused");
            control.interrupt();
            control.interrupt();
            ended = Instant::now();
        }
    })
    .unwrap();
    assert!(ended.elapsed() < lag.allow(Duration::from_secs(4)), "{:?}", ended.elapsed());
    assert_eq!(outcome.end, LoadEnd::Interrupted);
    server.node.resume().expect("a server that can be resumed");
}

#[test]
fn before_the_load_it_says_how_far_it_came() {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let conninfo = format!("host=127.0.0.1 port={port} user=a dbname=b sslmode=disable");
    let plan = plan(workload(&conninfo, "SELECT 1;\n", 3), window(1_000));
    let control = LoadControl::new();
    let other = control.clone();
    let thread = thread::spawn(move || {
        thread::sleep(Duration::from_millis(200));
        other.interrupt();
    });
    let error = run_with(&plan, &control, &mut |_| {}).unwrap_err();
    thread.join().unwrap();
    assert!(matches!(error, LoadError::Interrupted { connected: 0, clients: 3 }), "{error}");
    assert_eq!(error.to_string(), "interrupted while 0 of 3 clients were connected");
}
