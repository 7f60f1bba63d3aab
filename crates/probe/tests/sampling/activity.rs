//! The sampler of activity against servers whose activity is known.

use std::collections::BTreeMap;
use std::process::Stdio;
use std::thread;
use std::time::{Duration, Instant};

use probe::{ActivitySampler, SampledActivity};
use server::{Client, Conninfo};
use tail::SamplingMethod;

use crate::bench::Bench;

/// Samples a server for a while. `started` is its first process, if the sampler is told.
fn sample(bench: &Bench, started: &[u32], meanwhile: impl FnOnce()) -> SampledActivity {
    let conninfo = Conninfo::from_keyword_string(&bench.node.endpoint().to_string()).unwrap();
    let sampler = ActivitySampler::start(&conninfo, started, Vec::new(), Instant::now()).unwrap();
    meanwhile();
    sampler.stop()
}

/// Events of a backend with the share of looks that saw it in each.
fn shares(sampled: &SampledActivity, backend: i32) -> BTreeMap<String, f64> {
    let activity = &sampled.activity;
    let looks = activity.looks().len() as f64;
    let mut shares = BTreeMap::new();
    for seen in activity.looks().iter().filter_map(|look| activity.backend(look, backend)) {
        *shares.entry(seen.event.to_owned()).or_default() += 1.0 / looks;
    }
    shares
}

fn backend(client: &mut Client) -> i32 {
    client.query_one("SELECT pg_backend_pid()", &[]).unwrap().get(0)
}

#[test]
fn a_servers_shared_memory_tells_what_each_backend_does() {
    let bench = Bench::start(&[]);
    // They are cancelled once they were looked at, however long that takes.
    let burns = "DO $$ DECLARE until timestamptz := clock_timestamp() + '60 s'; \
                 BEGIN WHILE clock_timestamp() < until LOOP END LOOP; END $$";
    let known = [
        ("SELECT pg_sleep(60)", "Timeout:PgSleep"),
        (burns, ""),
        ("SET lock_timeout = '60s'; BEGIN; LOCK TABLE pgbench_branches; COMMIT", "Lock:relation"),
    ];
    let mut holder = bench.node.connect().unwrap();
    let of_holder = backend(&mut holder);
    holder.batch_execute("BEGIN; LOCK TABLE pgbench_branches").unwrap();
    let clients = known.map(|(statement, event)| {
        let mut client = bench.node.connect().unwrap();
        (statement, event, backend(&mut client), client)
    });
    let expected = clients.each_ref().map(|(_, event, backend, _)| (*event, *backend));
    let sampled = thread::scope(|scope| {
        for (statement, _, _, mut client) in clients {
            scope.spawn(move || client.batch_execute(statement).unwrap_or_default());
        }
        let pids = expected.map(|(_, backend)| backend.to_string()).join(",");
        let is_at_work = format!(
            "SELECT count(*) = 3 AND count(*) FILTER (WHERE wait_event_type IN ('Timeout', 'Lock')) = 2 \
             FROM pg_stat_activity WHERE state = 'active' AND pid IN ({pids})"
        );
        let mut witness = bench.node.connect().unwrap();
        // What is not at work then fails below.
        for _ in 0..2_000 {
            if witness.query_one(&is_at_work, &[]).unwrap().get(0) {
                break;
            }
            thread::sleep(Duration::from_millis(10));
        }
        // Servers of tests beside this one are as old, and their namespaces have the same numbers.
        let started = [bench.node.host_pid().unwrap() as u32];
        let sampled = sample(&bench, &started, || thread::sleep(Duration::from_millis(1_200)));
        holder.batch_execute("COMMIT").unwrap();
        let cancel = format!("SELECT pg_cancel_backend(pid) FROM unnest(ARRAY[{pids}]) pid");
        witness.batch_execute(&cancel).unwrap();
        sampled
    });
    assert_eq!(
        (sampled.activity.source, sampled.activity.refusal.as_str()),
        (SamplingMethod::SharedMemory, "")
    );
    // More than a hundred where nothing else needs the CPUs.
    assert!(sampled.activity.looks().len() > 30, "{}", sampled.activity.looks().len());
    for (event, backend) in expected.into_iter().chain([("Client:ClientRead", of_holder)]) {
        let shares = shares(&sampled, backend);
        assert!(shares.get(event).is_some_and(|share| *share > 0.95), "{event}: {shares:?}");
    }
    let last = *sampled.activity.looks().last().unwrap();
    let held_by = sampled.activity.holder(last.at, expected[2].1, 500_000_000);
    assert_eq!(
        held_by.unwrap().1.words(),
        "BEGIN; LOCK TABLE pgbench_branches (idle in transaction, pgrig)"
    );
    // Without its process, the server is found by a session's number and age, unless others have these, too.
    let found = sample(&bench, &[], || thread::sleep(Duration::from_millis(300))).activity.refusal;
    let alike = "several servers of this machine look alike";
    assert!(found.is_empty() || found == alike, "{found}");
}

/// Clients do something else all the time, sessions come and go, and it is found all the same.
#[test]
fn a_busy_servers_shared_memory_is_found_as_well() {
    let bench = Bench::start(&[("autovacuum", "on"), ("autovacuum_naptime", "1s")]);
    let started = [bench.node.host_pid().unwrap() as u32];
    // A process without backends stands before it.
    let pids = [std::process::id(), started[0]];
    for (options, started) in [
        (&["-S", "-n", "-c", "8", "-T", "5"][..], &started[..]),
        (&["-N", "-C", "-n", "-c", "4", "-T", "5"][..], &pids[..]),
    ] {
        // A machine that is busy with other tests may leave no time for a look at five seconds of load, or none
        // to find the places of processes before these do something else.
        let mut loads = (0..4).filter_map(|_| most_at_work(&bench, options, started));
        let most = loads.find(|most| *most > 0).unwrap();
        assert!((1..=9).contains(&most), "{options:?}: {most} at work");
    }
}

/// The most backends that a look at shared memory found at work while this load ran. None without a look.
fn most_at_work(bench: &Bench, options: &[&str], started: &[u32]) -> Option<usize> {
    let mut load =
        bench.command(options).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    thread::sleep(Duration::from_millis(300));
    let sampled = sample(bench, started, || {
        load.wait().unwrap();
    });
    let activity = &sampled.activity;
    if activity.source == SamplingMethod::View {
        return None;
    }
    assert_eq!(activity.refusal, "");
    let at_work = activity.looks().iter().map(|look| {
        activity.backends(look).filter(|seen| seen.event != "Client:ClientRead").count()
    });
    at_work.max()
}

#[test]
fn the_reason_for_the_view_is_told() {
    let bench = Bench::start(&[]);
    let sampled =
        sample(&bench, &[std::process::id()], || thread::sleep(Duration::from_millis(300)));
    assert_eq!(sampled.activity.source, SamplingMethod::View);
    assert!(sampled.activity.refusal.contains("ProcGlobal"), "{}", sampled.activity.refusal);
}
