//! Servers that are restored to an earlier state, as after an asynchronous failover.

use lab::Node;
use shard::{Cluster, Error, Event, Moves, Status};

use crate::common::{KEYS, Servers, connect, open_again, options};
use crate::crashes::{never, run_and_die_at, run_and_die_when};

/// A copy of a server's data; the server goes on.
pub(crate) fn copy(node: &mut Node) -> lab::Snapshot {
    node.kill9().unwrap();
    let copy = node.snapshot().unwrap();
    node.start().unwrap();
    copy
}

pub(crate) fn restore(node: &mut Node, copy: &lab::Snapshot) {
    node.kill9().unwrap();
    node.init_from_snapshot(copy).unwrap();
    node.start().unwrap();
}

pub(crate) fn run(cluster: &mut Cluster) -> Result<Vec<String>, Error> {
    let mut mended = Vec::new();
    let mut tell = |event: &Event<'_>| {
        if let Event::Mended { what } = event {
            mended.push(what.clone());
        }
    };
    Moves::new(cluster, options(), &mut tell, &never).run()?;
    Ok(mended)
}

/// The rows that a call to all nodes counts, or the state of its error.
pub(crate) fn counted(servers: &Servers) -> Result<i64, String> {
    let sum = "SELECT sum(counters)::bigint FROM counters()";
    let row = connect(&servers.conninfo()).query_one(sum, &[]);
    row.map(|row| row.get(0)).map_err(|error| error.code().unwrap().code().to_owned())
}

#[test]
fn a_source_that_comes_back_from_before_a_switch_serves_nothing_of_it() {
    let mut servers = Servers::start(3);
    let mut cluster = servers.create(1);
    servers.fill();
    cluster.add(&servers.node(1)).unwrap();
    let old = copy(&mut servers.nodes[0]);
    run(&mut cluster).unwrap();
    drop(cluster);
    restore(&mut servers.nodes[0], &old);

    assert_eq!(counted(&servers), Err("40001".into()), "no row is counted twice");
    let status = Status::of(&servers.conninfo()).unwrap();
    assert!(!status.is_undecided && !status.out_of_step.is_empty(), "{status:?}");
    let owned = status.nodes[0].says.as_ref().unwrap().owned;
    assert_eq!((status.nodes[0].mapped, owned), (8, 16));
    // What a dry run asks, which changes nothing.
    let error = Cluster::look(&servers.conninfo()).unwrap().check_in_step().unwrap_err();
    assert!(matches!(error, Error::OutOfStep { .. }), "{error}");
    let mut cluster = open_again(&servers);
    let error = cluster.add(&servers.node(2)).unwrap_err();
    assert!(matches!(error, Error::OutOfStep { .. }) && error.hint().is_some(), "{error}");

    let mended = run(&mut cluster).unwrap();
    assert!(mended.iter().any(|what| what.starts_with("the old copy of bucket")), "{mended:?}");
    assert_eq!(counted(&servers), Ok(KEYS));
    assert_eq!(Status::of(&servers.conninfo()).unwrap().out_of_step, Vec::<String>::new());
    cluster.add(&servers.node(2)).unwrap();
    run(&mut cluster).unwrap();
    assert_eq!(counted(&servers), Ok(KEYS));
    assert_eq!(servers.check_rows(), KEYS);
}

#[test]
fn a_proxy_that_has_lost_a_switch_learns_of_it_from_the_nodes() {
    let mut servers = Servers::start(2);
    drop(servers.create(1));
    servers.fill();
    let mut cluster = open_again(&servers);
    cluster.add(&servers.node(1)).unwrap();
    // In the middle of a move: the proxy believes that the target has a copy.
    assert!(run_and_die_at(cluster, "copied"));
    let old = copy(&mut servers.proxy);
    // Other tools have come since, whose numbers the proxy has lost.
    for _ in 0..3 {
        drop(open_again(&servers));
    }
    run(&mut open_again(&servers)).unwrap();
    let call = "SELECT count(add(key)) FROM generate_series(1, 200::bigint) key";
    connect(&servers.conninfo()).batch_execute(call).unwrap();
    for is_given_up in [false, true] {
        restore(&mut servers.proxy, &old);
        assert!(connect(&servers.conninfo()).batch_execute(call).is_err(), "not served");
        let status = Status::of(&servers.conninfo()).unwrap();
        assert!(!status.is_undecided && !status.out_of_step.is_empty(), "{status:?}");
        let mut cluster = open_again(&servers);
        let mut told = Vec::new();
        let mut tell = |event: &Event<'_>| told.push(format!("{event:?}"));
        let mut moves = Moves::new(&mut cluster, options(), &mut tell, &never);
        match is_given_up {
            true => moves.abandon().unwrap(),
            false => moves.run().unwrap(),
        }
        let lies = told.iter().filter(|event| event.starts_with("Abandoned"));
        assert!(is_given_up || lies.count() == 0, "{told:?}");
        assert_eq!(counted(&servers), Ok(KEYS));
        let on_target = cluster.owners().iter().filter(|owner| **owner == 1).count();
        assert_eq!(on_target, 8, "{told:?}");
        drop(cluster);
        run(&mut open_again(&servers)).unwrap();
        assert_eq!(servers.check_rows(), KEYS + 200);
    }
}

#[test]
fn a_target_that_has_lost_a_bucket_is_shown_and_the_source_s_rows_are_kept() {
    let mut servers = Servers::start(2);
    let mut cluster = servers.create(1);
    servers.fill();
    cluster.add(&servers.node(1)).unwrap();
    let old = copy(&mut servers.nodes[1]);
    assert!(run_and_die_when(cluster, &mut |event| matches!(event, Event::Switched { .. })));
    restore(&mut servers.nodes[1], &old);
    let status = Status::of(&servers.conninfo()).unwrap();
    assert!(status.is_undecided, "{status:?}");
    let error = lab::wait_until(std::time::Duration::from_secs(10), || {
        Ok::<_, String>(match Cluster::open(&servers.conninfo()) {
            Err(Error::Busy { .. }) => None,
            other => Some(other.err().expect("neither is certain")),
        })
    });
    let error = error.unwrap().unwrap();
    let text = error.to_string();
    assert!(matches!(error, Error::Undecided { .. }) && error.hint().is_some(), "{text}");
    for words in ["node 1 by the mapping since version 2", "gone on node 0", "not on node 1"] {
        assert!(text.contains(words), "{text}");
    }
    let call = "SELECT count(add(key)) FROM generate_series(1, $1::bigint) key";
    assert!(connect(&servers.conninfo()).execute(call, &[&KEYS]).is_err(), "not served");
    // As the page says: the source's copy is the one to keep.
    let keep = "UPDATE pgrig_shard.bucket SET state = 'owned', version = 3 WHERE state = 'gone'";
    connect(&servers.node(0).conninfo).batch_execute(keep).unwrap();
    let mut cluster = open_again(&servers);
    run(&mut cluster).unwrap();
    connect(&servers.conninfo()).execute(call, &[&KEYS]).unwrap();
    assert_eq!(servers.check_rows(), 2 * KEYS);
}

/// The source refuses, the target does not serve yet, and the tool is gone: the source takes the buckets back.
#[test]
fn a_switch_that_is_cut_short_before_the_target_serves_returns_to_the_source() {
    let servers = Servers::start(2);
    let mut cluster = servers.create(1);
    servers.fill();
    cluster.add(&servers.node(1)).unwrap();
    assert!(run_and_die_at(cluster, "left the source"));
    let mut cluster = open_again(&servers);
    let mut abandoned = 0;
    let mut tell =
        |event: &Event<'_>| abandoned += i32::from(matches!(event, Event::Abandoned { .. }));
    Moves::new(&mut cluster, options(), &mut tell, &never).abandon().unwrap();
    assert!(abandoned > 0);
    let call = "SELECT count(add(key)) FROM generate_series(1, $1::bigint) key";
    connect(&servers.conninfo()).execute(call, &[&KEYS]).unwrap();
    run(&mut cluster).unwrap();
    assert_eq!(servers.check_rows(), 2 * KEYS);
}
