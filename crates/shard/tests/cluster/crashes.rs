//! The tool, a node or the proxy dies in the middle of a move.

use std::panic::{self, AssertUnwindSafe};
use std::time::Duration;

use shard::{Cluster, Event, Moves, Options};

use crate::common::{KEYS, Servers, Writer, connect, open_again, options};

pub(crate) fn never() -> bool {
    false
}

/// Runs the moves until the `at`th event and leaves them there as a killed tool would: nothing is
/// lifted, recorded or closed in good order. Whether there were so many events.
fn run_and_die(cluster: Cluster, at: usize) -> bool {
    let mut seen = 0;
    run_and_die_when(cluster, &mut |_| {
        seen += 1;
        seen == at
    })
}

/// As a killed tool would, after a part of a step.
pub(crate) fn run_and_die_at(cluster: Cluster, part: &str) -> bool {
    run_and_die_when(
        cluster,
        &mut |event| matches!(event, Event::Did { what, .. } if *what == part),
    )
}

pub(crate) fn run_and_die_when(
    mut cluster: Cluster,
    is_time: &mut dyn FnMut(&Event<'_>) -> bool,
) -> bool {
    let died = panic::catch_unwind(AssertUnwindSafe(|| {
        let mut tell = |event: &Event<'_>| {
            if is_time(event) {
                panic::resume_unwind(Box::new("killed"));
            }
        };
        Moves::new(&mut cluster, options(), &mut tell, &never).run().unwrap();
    }));
    died.is_err()
}

#[test]
fn a_tool_that_is_killed_at_any_step_is_taken_up_by_the_next() {
    let servers = Servers::start(2);
    drop(servers.create(1));
    servers.fill();
    let writer = Writer::start(&servers.conninfo());
    let open = || open_again(&servers);
    let mut at = 1;
    loop {
        let mut cluster = open();
        cluster.add(&servers.node(1)).unwrap();
        if !run_and_die(cluster, at) {
            break;
        }
        at += 3;
    }
    let mut cluster = open();
    cluster.remove(0).unwrap();
    drop(cluster);
    let mut at = 2;
    while run_and_die(open(), at) {
        at += 3;
    }
    let written = writer.finish();
    assert_eq!(written.errors, Vec::<String>::new());
    assert!(written.acknowledged > 100);
    assert_eq!(servers.check_rows(), KEYS + written.acknowledged, "{written:?}");
}

#[test]
fn servers_that_are_killed_in_between_are_waited_for() {
    let mut servers = Servers::start(2);
    let mut cluster = servers.create(1);
    servers.fill();
    cluster.add(&servers.node(1)).unwrap();
    // A crash of the target undoes all that the tool has not made durable itself.
    let mut target = connect(&servers.node(1).conninfo);
    target.batch_execute("ALTER SYSTEM SET wal_writer_delay = '10s'").unwrap();
    target.batch_execute("SELECT pg_reload_conf()").unwrap();
    let proxy = servers.conninfo();
    let writer = Writer::start(&proxy);

    let mut cuts =
        ["subscribed", "fenced", "arrived at the target", "copied", "compared", "left the source"]
            .into_iter()
            .enumerate();
    let mut next = cuts.next();
    let Servers { proxy: proxy_node, nodes, .. } = &mut servers;
    let mut tell = |event: &Event<'_>| {
        let (Event::Did { what, .. }, Some((index, when))) = (event, next) else { return };
        if *what == when {
            let victim = match index % 3 {
                0 => &mut nodes[1],
                1 => &mut nodes[0],
                _ => &mut *proxy_node,
            };
            victim.kill9().unwrap();
            victim.start().unwrap();
            next = cuts.next();
        }
    };
    Moves::new(&mut cluster, options(), &mut tell, &never).run().unwrap();
    assert!(next.is_none(), "every kill was due: {next:?}");
    let written = writer.finish();
    // Commits are asynchronous on the nodes: what was acknowledged in the moment before a crash of
    // a node may be gone with it, move or no move. Rows are never astray and never doubled.
    let sum = servers.check_rows();
    assert!(sum <= KEYS + written.acknowledged + written.unknown, "{sum} {written:?}");
    assert!(written.acknowledged > 100);
}

#[test]
fn a_server_that_is_killed_in_a_long_copy_is_waited_for_from_then_on() {
    let mut servers = Servers::start(2);
    let mut cluster = servers.create(1);
    servers.fill();
    cluster.add(&servers.node(1)).unwrap();
    let target = &mut servers.nodes[1];
    let (mut holder, mut is_killed) = (None, false);
    let mut tell = |event: &Event<'_>| match event {
        Event::Did { what: "made the schemas", .. } if holder.is_none() => {
            let mut client = connect(&target.endpoint().to_string());
            let one = "SELECT bucket FROM pgrig_shard.bucket WHERE state = 'arriving' LIMIT 1";
            let schema = shard::bucket_schema(client.query_one(one, &[]).unwrap().get(0));
            client
                .batch_execute(&format!("BEGIN; LOCK TABLE {schema}.counter IN EXCLUSIVE MODE"))
                .unwrap();
            holder = Some(client);
        }
        // The copy has lasted longer than patience does.
        Event::Lasting { .. } if !is_killed => {
            is_killed = true;
            target.kill9().unwrap();
            target.start().unwrap();
        }
        _ => {}
    };
    let options = Options { patience: Duration::from_secs(4), ..options() };
    Moves::new(&mut cluster, options, &mut tell, &never).run().unwrap();
    assert!(is_killed);
    assert_eq!(servers.check_rows(), KEYS);
}
