//! Servers that have left the cluster or are not in the proxy's list, and come back.

use lab::Node;
use shard::{Cluster, Error, Event, Moves, Status};

use crate::common::{KEYS, Servers, connect, open_again, options};
use crate::crashes::{never, run_and_die_at, run_and_die_when};
use crate::restored::{copy, counted, restore, run};

/// What a server has of a move's replication.
pub(crate) const REPLICATION: &str = "
    SELECT string_agg(what, ', ') FROM (
        SELECT format('slot %s (active: %s)', slot_name, active) AS what FROM pg_replication_slots
        UNION ALL SELECT format('subscription %s', subname) FROM pg_subscription
        UNION ALL SELECT format('publication %s', pubname) FROM pg_publication) AS found";

fn replication(node: &Node) -> Option<String> {
    node.value(REPLICATION).unwrap()
}

#[test]
fn a_server_that_has_left_and_comes_back_from_a_move_keeps_no_slot() {
    let mut servers = Servers::start(2);
    let mut cluster = servers.create(2);
    servers.fill();
    cluster.remove(1).unwrap();
    // Node 1 is the source of moves, with a slot.
    assert!(run_and_die_at(cluster, "subscribed"));
    let old = copy(&mut servers.nodes[1]);
    run(&mut open_again(&servers)).unwrap();
    assert_eq!(replication(&servers.nodes[1]), None);
    restore(&mut servers.nodes[1], &old);
    let left = replication(&servers.nodes[1]).expect("the slot is back");
    assert!(left.contains("slot pgrig_shard_") && left.contains("publication"), "{left}");

    let status = Status::of(&servers.conninfo()).unwrap();
    // The copy may have been made while tables were copied: each has a slot of its own then.
    let expected = ["slot pgrig_shard_", "slot pg_", "publication pgrig_shard_"];
    let is_told = |what: &String| {
        let is_expected = expected.iter().any(|kind| what.starts_with(kind));
        is_expected && what.ends_with(", which has left as node 1")
    };
    assert!(status.remnants.iter().all(is_told), "{status:?}");
    for kind in [expected[0], expected[2]] {
        let count = status.remnants.iter().filter(|what| what.starts_with(kind)).count();
        assert_eq!(count, 1, "{kind}: {status:?}");
    }
    let mended = run(&mut open_again(&servers)).unwrap();
    assert_eq!(mended.len(), status.remnants.len(), "{mended:?}");
    assert_eq!(replication(&servers.nodes[1]), None);
    assert_eq!(Status::of(&servers.conninfo()).unwrap().remnants, Vec::<String>::new());

    // `abandon` does the same, and a server that does not answer stops nobody.
    restore(&mut servers.nodes[1], &old);
    servers.nodes[1].kill9().unwrap();
    assert_eq!(run(&mut open_again(&servers)).unwrap(), Vec::<String>::new());
    servers.nodes[1].start().unwrap();
    let mut cluster = open_again(&servers);
    Moves::new(&mut cluster, options(), &mut |_: &Event<'_>| {}, &never).abandon().unwrap();
    assert_eq!(replication(&servers.nodes[1]), None);
    drop(cluster);
    assert_eq!(counted(&servers), Ok(KEYS));

    // It still has buckets of then, and is taken back as what it was: the others have newer ones.
    let mut cluster = Cluster::open_to_add(&servers.conninfo(), &servers.node(1)).unwrap();
    let error = cluster.add(&servers.node(1)).unwrap_err();
    assert!(matches!(error, Error::OutOfStep { .. }), "{error}");
    run(&mut cluster).unwrap();
    drop(cluster);
    assert_eq!(counted(&servers), Ok(KEYS));
    assert_eq!(servers.check_rows(), KEYS);
}

#[test]
fn a_proxy_that_has_forgotten_a_node_does_not_call_its_buckets_back() {
    let mut servers = Servers::start(2);
    let cluster = servers.create(1);
    servers.fill();
    drop(cluster);
    let old = copy(&mut servers.proxy);
    let mut cluster = open_again(&servers);
    cluster.add(&servers.node(1)).unwrap();
    // The old rows are still on node 0, and clients write to node 1.
    assert!(run_and_die_when(cluster, &mut |event| matches!(event, Event::Switched { .. })));
    let call = "SELECT count(add(key)) FROM generate_series(1, $1::bigint) key";
    connect(&servers.conninfo()).execute(call, &[&KEYS]).unwrap();
    restore(&mut servers.proxy, &old);

    let status = Status::of(&servers.conninfo()).unwrap();
    assert!(status.is_undecided, "{status:?}");
    let line = status.out_of_step.first().map(String::as_str).unwrap_or_default();
    assert!(line.contains("went to node 1, which the proxy does not know"), "{status:?}");
    let error = lab::wait_until(std::time::Duration::from_secs(10), || {
        Ok::<_, String>(match Cluster::open(&servers.conninfo()) {
            Err(Error::Busy { .. }) => None,
            other => Some(other.err().expect("rows of node 1 are not seen")),
        })
    });
    let error = error.unwrap().unwrap();
    assert!(matches!(error, Error::Undecided { .. }), "{error}");

    let mut cluster = Cluster::open_to_add(&servers.conninfo(), &servers.node(1)).unwrap();
    run(&mut cluster).unwrap();
    assert_eq!(cluster.add(&servers.node(1)).unwrap(), 1);
    run(&mut cluster).unwrap();
    drop(cluster);
    assert_eq!(servers.check_rows(), 2 * KEYS);
    let left: Vec<_> = servers.nodes.iter().map(replication).collect();
    assert_eq!(left, [None, None]);
}

#[test]
fn a_node_of_the_list_that_holds_nothing_is_made_anew() {
    let mut servers = Servers::start(2);
    let mut cluster = servers.create(2);
    servers.fill();
    cluster.remove(1).unwrap();
    // The source's end of the last batch is reached: its old rows are dropped next.
    let mut ended = 0;
    assert!(run_and_die_when(cluster, &mut |event| {
        ended += usize::from(matches!(event, Event::Did { what: "dropped the old rows", .. }));
        ended == 4
    }));
    let old = copy(&mut servers.proxy);
    run(&mut open_again(&servers)).unwrap();
    restore(&mut servers.proxy, &old);
    let stay = "UPDATE pgrig_shard.node SET leaving = false";
    for is_leaving in [true, false] {
        if !is_leaving {
            restore(&mut servers.proxy, &old);
            connect(&servers.conninfo()).batch_execute(stay).unwrap();
        }
        let status = Status::of(&servers.conninfo()).unwrap();
        let line =
            "node 1 is in the list of the proxy, and its server holds nothing of the cluster";
        assert!(!status.is_undecided && status.out_of_step.contains(&line.into()), "{status:?}");
        let mut cluster = open_again(&servers);
        run(&mut cluster).unwrap();
        assert_eq!(cluster.nodes().len(), if is_leaving { 1 } else { 2 });
        drop(cluster);
        assert_eq!(counted(&servers), Ok(KEYS));
        assert_eq!(servers.check_rows(), KEYS);
    }
}

/// Servers that have left and come again in another order have other numbers.
#[test]
fn a_node_that_came_again_by_another_number_gets_that_of_the_proxy() {
    let mut servers = Servers::start(3);
    drop(servers.create(3));
    servers.fill();
    let old = copy(&mut servers.proxy);
    let mut cluster = open_again(&servers);
    for number in [1, 2] {
        cluster.remove(number).unwrap();
        run(&mut cluster).unwrap();
    }
    assert_eq!(cluster.add(&servers.node(2)).unwrap(), 1);
    run(&mut cluster).unwrap();
    drop(cluster);
    restore(&mut servers.proxy, &old);
    let status = Status::of(&servers.conninfo()).unwrap();
    let line = "node 2 says that it is node 1, as it was later than the proxy knows";
    assert!(!status.is_undecided && status.out_of_step.contains(&line.into()), "{status:?}");
    let mended = run(&mut open_again(&servers)).unwrap();
    assert!(mended.contains(&"node 2 knows its number".into()), "{mended:?}");
    assert_eq!(Status::of(&servers.conninfo()).unwrap().out_of_step, Vec::<String>::new());
    assert_eq!(counted(&servers), Ok(KEYS));
    assert_eq!(servers.check_rows(), KEYS);
}

/// A node that is to leave does not while a batch is on its way to it.
#[test]
fn the_target_of_a_batch_stays_until_the_batch_is_over() {
    let servers = Servers::start(3);
    let mut cluster = servers.create(1);
    servers.fill();
    cluster.add(&servers.node(1)).unwrap();
    assert!(run_and_die_at(cluster, "subscribed"));
    let mut cluster = open_again(&servers);
    cluster.remove(1).unwrap();
    assert_eq!(cluster.add(&servers.node(2)).unwrap(), 2);
    run(&mut cluster).unwrap();
    let numbers: Vec<i32> = cluster.nodes().iter().map(|node| node.number).collect();
    assert_eq!(numbers, [0, 2]);
    drop(cluster);
    assert_eq!(servers.check_rows(), KEYS);
}

/// A server that nobody knows, made by pg_basebackup from a node, may copy tables from another one: its slots have the
/// node's system identifier in their names.
#[test]
fn a_slot_that_is_in_use_by_a_server_that_nobody_knows_stays() {
    let servers = Servers::start(2);
    let mut cluster = servers.create(1);
    servers.fill();
    cluster.add(&servers.node(1)).unwrap();
    let system = "SELECT system_identifier FROM pg_control_system()";
    let system = servers.nodes[1].value(system).unwrap().unwrap();
    let slot = format!("pg_99999_sync_16385_{system}");
    let mut client = connect(&servers.node(0).conninfo);
    // A temporary slot is in use as long as its session lasts.
    let make = "SELECT pg_create_logical_replication_slot($1, 'pgoutput', true)";
    client.query_one(make, &[&slot]).unwrap();
    assert_eq!(Status::of(&servers.conninfo()).unwrap().remnants, Vec::<String>::new());
    run(&mut cluster).unwrap();
    drop(cluster);
    client.query_one("SELECT 1", &[]).expect("the session of the slot goes on");
    assert_eq!(replication(&servers.nodes[0]), Some(format!("slot {slot} (active: t)")));
    assert_eq!(servers.nodes[1].value(REPLICATION).unwrap(), None);
}
