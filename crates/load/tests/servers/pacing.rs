//! Open loop: rates that are kept, and rates that the server does not take.

use load::{LogPlan, Pace};

use crate::support::{Server, plan, run, window, workload};

#[test]
fn rates_are_kept() {
    let server = Server::shared();
    // Three clients on two lanes: the shares are uneven, the sum is not.
    let check = |pace, connect_each, tolerance: f64| {
        let mut workload = workload(&server.conninfo(), "SELECT 1;\n", 3);
        workload.pace = pace;
        workload.connect_each = connect_each;
        let outcome = run(&plan(workload, window(2_000))).unwrap();
        let result = &outcome.workloads[0];
        let window = outcome.window.unwrap();
        let before = outcome.intervals.iter().rfind(|interval| interval.start < window.open);
        let inside = outcome.intervals.iter().rfind(|interval| interval.start < window.close);
        // A machine that is busy with other things leaves some of it undone, and says so.
        let due = result.counts.transactions + inside.unwrap().backlog;
        let achieved = due.saturating_sub(before.unwrap().backlog) as f64 / 2.0;
        assert!((achieved / 100.0 - 1.0).abs() < tolerance, "{achieved} a second, {pace:?}");
        assert_eq!(result.latency.count(), result.service.count());
        assert!(result.latency.mean_ns() >= result.service.mean_ns());
        assert_eq!(result.lag.count(), result.latency.count());
    };
    // 200 arrivals vary by 14; four times that.
    check(Pace::Poisson(100.0), false, 0.28);
    check(Pace::Constant(100.0), false, 0.1);
    check(Pace::Constant(100.0), true, 0.1);
}

#[test]
fn more_than_the_server_takes_is_a_backlog_and_users_wait() {
    let server = Server::shared();
    let mut workload = workload(&server.conninfo(), "SELECT pg_sleep(0.02);\n", 2);
    workload.pace = Pace::Poisson(1_000.0);
    let mut plan = plan(workload, window(1_000));
    plan.slowest = true;
    let outcome = run(&plan).unwrap();
    let backlogs: Vec<_> = outcome.intervals.iter().map(|interval| interval.backlog).collect();
    // 1.2 s at 900 a second more than is done, with half of that for a machine that is busy.
    let last = backlogs.iter().max().copied().unwrap_or(0);
    assert!(last > 500, "{backlogs:?}");
    assert!(backlogs[2] < backlogs[9], "{backlogs:?}");
    let result = &outcome.workloads[0];
    let (waited, took) = (result.latency.quantile_ns(0.5), result.service.quantile_ns(0.5));
    assert!(
        waited.unwrap() > 5 * took.unwrap(),
        "users wait {waited:?}, the server takes {took:?}"
    );
    assert!(result.counts.transactions < 120);
    // What was due and never started is among the open waits, and the longest is at least its age.
    assert!(result.never_started > 500, "{}", result.never_started);
    assert_eq!(result.open.count(), result.never_started + 2, "two clients are at work");
    assert!(result.longest_wait_is_open && result.longest_wait_ns >= 500_000_000);
    // Each of them is one of the slow transactions, which end at the close for that.
    let close = outcome.window.unwrap().close.0;
    let slowest = outcome.slowest[0].kept();
    let never_started = slowest.iter().filter(|slow| slow.began == close).count() as u64;
    assert_eq!(never_started, result.never_started);
    assert_eq!(slowest.len() as u64, result.open.count() + result.latency.count());
}

#[test]
fn what_is_under_way_at_the_close_is_a_wait_of_at_least_its_age() {
    let server = Server::shared();
    let check = |script: &str, drain_ms, ended: bool| {
        let workload = workload(&server.conninfo(), script, 3);
        let mut plan = plan(workload, window(500));
        plan.drain_ms = Some(drain_ms);
        plan.slowest = true;
        let outcome = run(&plan).unwrap();
        let result = &outcome.workloads[0];
        assert_eq!((result.open.count(), result.never_started), (3, 0), "{script}");
        assert_eq!(result.longest_wait_is_open, !ended, "{script}");
        let close = outcome.window.unwrap().close.0;
        let slowest = outcome.slowest[0].kept();
        assert!(
            slowest.len() == 3 && slowest.iter().all(|slow| slow.ended == close),
            "{slowest:?}"
        );
        result.longest_wait_ns / 1_000_000
    };
    // The close comes before the answer, and the rig stops waiting, or sees the end of it.
    let hangs_ms = check("SELECT pg_sleep(30);\n", 100, false);
    assert!((500..30_000).contains(&hangs_ms), "{hangs_ms}");
    let ends_ms = check("SELECT pg_sleep(1.2);\n", 20_000, true);
    assert!(ends_ms >= 1_200, "{ends_ms}");
}

#[test]
fn slots_past_the_latency_limit_are_skipped() {
    let server = Server::shared();
    let mut workload = workload(&server.conninfo(), "SELECT pg_sleep(0.02);\n", 1);
    workload.pace = Pace::Constant(200.0);
    workload.latency_limit_us = Some(30_000);
    let outcome = run(&plan(workload, window(1_000))).unwrap();
    let counts = &outcome.workloads[0].counts_total;
    assert!(counts.skipped > 50 && counts.transactions > 0, "{counts:?}");
    let slots = counts.skipped + counts.transactions;
    assert!((200..=242).contains(&slots), "{slots} slots in 1.2 s");
}

#[test]
fn skipped_slots_are_booked_to_the_script_that_they_would_have_run() {
    let server = Server::shared();
    let directory = tempfile::tempdir().unwrap();
    let mut workload = workload(&server.conninfo(), "SELECT pg_sleep(0.02);\n", 1);
    let mut other = workload.scripts[0].clone();
    other.name = "other.sql".to_owned();
    workload.scripts.push(other);
    workload.pace = Pace::Constant(200.0);
    workload.latency_limit_us = Some(30_000);
    let mut plan = plan(workload, window(1_000));
    plan.log = Some(LogPlan {
        prefix: directory.path().join("log").display().to_string(),
        sampling_rate: 1.0,
        aggregate_s: None,
        last_stretch: false,
        other_failures: false,
        failures_detailed: false,
        epoch_us: 0,
    });
    let outcome = run(&plan).unwrap();
    let file = std::fs::read_dir(directory.path()).unwrap().next().unwrap().unwrap().path();
    let log = std::fs::read_to_string(file).unwrap();
    let entries: Vec<(bool, usize)> = log
        .lines()
        .map(|line| {
            let words: Vec<&str> = line.split(' ').collect();
            (words[2] == "skipped", words[3].parse().unwrap())
        })
        .collect();
    // As in pgbench, the script is drawn first, and the slots that come too late are its own.
    let mut skipped = [0; 2];
    for pair in entries.windows(2).filter(|pair| pair[0].0) {
        assert_eq!(pair[0].1, pair[1].1, "{log}");
        skipped[pair[0].1] += 1;
    }
    assert!(skipped.iter().all(|skipped| *skipped > 10), "{skipped:?}");
    let told: u64 = outcome.scripts[0].iter().map(|script| script.counts.skipped).sum();
    assert!(told > 50, "{told}");
}
