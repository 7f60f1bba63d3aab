//! Nodes come and go while clients write.

use std::time::Duration;

use shard::{Cluster, Error, Event, Moves, NodeChange, Options, Status};

use crate::common::{KEYS, Servers, TEMPLATE, Writer, connect, options};

fn never() -> bool {
    false
}

#[test]
fn two_nodes_become_three_and_two_again_and_nothing_is_lost() {
    let servers = Servers::start(3);
    let mut cluster = servers.create(2);
    servers.fill();
    let writer = Writer::start(&servers.conninfo());

    let number = cluster.add(&servers.node(2)).unwrap();
    assert_eq!(number, 2);
    let (begun, new) = cluster.planned(&options(), NodeChange::None).unwrap();
    assert!(begun.is_empty());
    assert_eq!(new.iter().map(|batch| batch.buckets.len()).sum::<usize>(), 5, "16 ÷ 3 each");
    let mut fences = Vec::new();
    let mut tell = |event: &Event<'_>| {
        if let Event::Switched { fence_ms, rows, bytes, .. } = event {
            assert!(*rows > 0 && *bytes > 0);
            fences.push(*fence_ms);
        }
    };
    Moves::new(&mut cluster, options(), &mut tell, &never).run().unwrap();
    let holds = |cluster: &Cluster, node| cluster.owners().iter().filter(|o| **o == node).count();
    assert_eq!([holds(&cluster, 0), holds(&cluster, 1), holds(&cluster, 2)], [6, 5, 5]);

    cluster.remove(0).unwrap();
    let mut tell = |_: &Event<'_>| {};
    Moves::new(&mut cluster, options(), &mut tell, &never).run().unwrap();
    assert_eq!([holds(&cluster, 1), holds(&cluster, 2)], [8, 8]);
    assert!(cluster.nodes().iter().all(|node| node.number != 0));

    let written = writer.finish();
    assert_eq!(written.errors, Vec::<String>::new());
    assert!(written.acknowledged > 100, "{written:?}");
    assert_eq!(servers.check_rows(), KEYS + written.acknowledged, "{written:?}");
    assert!(fences.iter().all(|ms| *ms > 0.0), "{fences:?}");
    // Balanced already: nothing to do.
    assert_eq!(cluster.planned(&options(), NodeChange::None).unwrap().1, []);
}

#[test]
fn an_old_mapping_cannot_write_to_the_wrong_node() {
    let servers = Servers::start(2);
    let mut cluster = servers.create(1);
    servers.fill();
    cluster.add(&servers.node(1)).unwrap();
    let greedy = Options { keep_free_bytes: i64::MAX, ..options() };
    let error = cluster.check_room(&greedy, NodeChange::None, None).unwrap_err();
    let text = error.to_string();
    assert!(text.starts_with("node 1 is too full: 8 buckets with ") && error.hint().is_some());
    assert!(cluster.check_room(&options(), NodeChange::None, None).unwrap().is_empty());
    // What an old proxy would call.
    let mut old = connect(&servers.node(0).conninfo);
    let mut tell = |_: &Event<'_>| {};
    Moves::new(&mut cluster, options(), &mut tell, &never).run().unwrap();
    let mut refused = 0;
    for key in 1..=100_i64 {
        match old.query_one("SELECT add($1)", &[&key]) {
            Ok(_) => {}
            Err(error) => {
                assert_eq!(error.code().unwrap().code(), "40001");
                refused += 1;
            }
        }
    }
    assert!((25..75).contains(&refused), "half of the buckets have left: {refused}");
    // Nor can one that asks all nodes under another version get half an answer.
    let asked = old.query("SELECT * FROM pgrig_shard.counters(1)", &[]);
    assert_eq!(asked.unwrap_err().code().unwrap().code(), "40001");
    assert_eq!(servers.check_rows(), KEYS + 100 - refused);
}

#[test]
fn a_transaction_that_does_not_end_lifts_the_fence() {
    let servers = Servers::start(2);
    let mut cluster = servers.create(1);
    servers.fill();
    cluster.add(&servers.node(1)).unwrap();
    let mut long = None;
    let source = servers.node(0).conninfo;
    // Replication itself waits for transactions that are open when it begins.
    let mut tell = |event: &Event<'_>| {
        if let Event::Did { what: "copied", .. } = event {
            let mut client = connect(&source);
            client.batch_execute("BEGIN; SELECT add(1)").unwrap();
            long = Some(client);
        }
    };
    let short = Options { fence_max: Duration::from_millis(300), ..options() };
    let error = Moves::new(&mut cluster, short, &mut tell, &never).run().unwrap_err();
    assert!(matches!(error, Error::Fence { .. }), "{error}");
    assert!(error.to_string().contains("add(1)"), "it names who is in the way: {error}");
    let status = Status::of(&servers.conninfo()).unwrap();
    let first = status.nodes[0].says.clone().unwrap();
    assert_eq!((first.owned, first.fenced), (16, 0));
    long.unwrap().batch_execute("COMMIT").unwrap();

    let mut tell = |_: &Event<'_>| {};
    Moves::new(&mut cluster, options(), &mut tell, &never).run().unwrap();
    assert_eq!(servers.check_rows(), KEYS + 1);
}

#[test]
fn rows_that_differ_are_not_given_away() {
    let servers = Servers::start(2);
    let mut cluster = servers.create(1);
    servers.fill();
    cluster.add(&servers.node(1)).unwrap();
    let target = servers.node(1).conninfo;
    let mut spoiled = false;
    let mut tell = |event: &Event<'_>| {
        if let Event::Did { what: "copied", .. } = event
            && !spoiled
        {
            spoiled = true;
            let spoil = "SELECT bucket FROM pgrig_shard.bucket WHERE state = 'arriving' LIMIT 1";
            let mut client = connect(&target);
            let bucket: i32 = client.query_one(spoil, &[]).unwrap().get(0);
            let schema = shard::bucket_schema(bucket);
            client.batch_execute(&format!("INSERT INTO {schema}.counter VALUES (-1, 1)")).unwrap();
        }
    };
    let error = Moves::new(&mut cluster, options(), &mut tell, &never).run().unwrap_err();
    assert!(matches!(error, Error::Differs { .. }), "{error}");
    assert!(cluster.owners().iter().all(|owner| *owner == 0));
    let mut proxy = connect(&servers.conninfo());
    proxy.execute("SELECT add(key) FROM generate_series(1, 100::bigint) key", &[]).unwrap();
}

/// Equal rows cancel each other in an exclusive or.
#[test]
fn pairs_of_equal_rows_that_differ_are_not_given_away() {
    let servers = Servers::start(2);
    let template = "CREATE TABLE {bucket}.word (word text);
        ALTER TABLE {bucket}.word REPLICA IDENTITY FULL;
        CREATE FUNCTION {bucket}.words() RETURNS bigint LANGUAGE sql STABLE
            AS 'SELECT count(*) FROM {bucket}.word'";
    let nodes = [servers.node(0)];
    let mut cluster =
        Cluster::create(&servers.conninfo(), &nodes, 2, template, shard::KEY).unwrap();
    let rows = "INSERT INTO bucket_0001.word VALUES ('same'), ('same')";
    servers.nodes[0].value(rows).unwrap();
    cluster.add(&servers.node(1)).unwrap();
    let target = servers.node(1).conninfo;
    let mut tell = |event: &Event<'_>| {
        if let Event::Did { what: "copied", .. } = event {
            let spoil = "UPDATE bucket_0001.word SET word = 'other'";
            connect(&target).batch_execute(spoil).unwrap();
        }
    };
    let error = Moves::new(&mut cluster, options(), &mut tell, &never).run().unwrap_err();
    assert!(
        matches!(error, Error::Differs { source_rows: 2, target_rows: Some(2), .. }),
        "{error}"
    );
}

/// The fence holds whatever a function is declared to be.
#[test]
fn a_function_that_writes_although_it_is_stable_does_not_write_through_the_fence() {
    let servers = Servers::start(2);
    let template = format!(
        "{TEMPLATE};
         CREATE FUNCTION {{bucket}}.peek(key bigint) RETURNS bigint LANGUAGE plpgsql STABLE AS $$
         BEGIN RETURN {{bucket}}.add(key); END $$"
    );
    let nodes = [servers.node(0)];
    let mut cluster =
        Cluster::create(&servers.conninfo(), &nodes, 16, &template, shard::KEY).unwrap();
    servers.fill();
    cluster.add(&servers.node(1)).unwrap();
    let mut proxy = connect(&servers.conninfo());
    let (mut written, mut refused) = (0, 0);
    let mut tell = |event: &Event<'_>| {
        // Behind the comparison a row that is written is lost.
        if let Event::Did { what: "fenced" | "compared", .. } = event {
            for key in 1..=40_i64 {
                match proxy.query_one("SELECT peek($1)", &[&key]) {
                    Ok(_) => written += 1,
                    Err(error) => {
                        assert_eq!(error.code().unwrap().code(), "40001", "{error}");
                        refused += 1;
                    }
                }
                let read: i64 = proxy.query_one("SELECT value($1)", &[&key]).unwrap().get(0);
                assert!(read > 0);
            }
        }
    };
    Moves::new(&mut cluster, options(), &mut tell, &never).run().unwrap();
    assert!(refused > 0, "{written}");
    assert_eq!(servers.check_rows(), KEYS + written);
    proxy.query_one("SELECT peek(1)", &[]).unwrap();
}

#[test]
fn a_transaction_that_is_prepared_behind_the_fence_is_waited_for() {
    let mut servers = Servers::start(2);
    servers.nodes[0].append_conf("max_prepared_transactions = 4");
    servers.nodes[0].restart().unwrap();
    let mut cluster = servers.create(1);
    servers.fill();
    cluster.add(&servers.node(1)).unwrap();
    let mut writer = connect(&servers.node(0).conninfo);
    let (mut seen, mut preparing) = (0, None);
    let source = servers.node(0).conninfo;
    let mut tell = |event: &Event<'_>| match event {
        Event::Did { what: "copied", .. } if seen == 0 => {
            seen = 1;
            // One row of each bucket, so that it belongs to the batch.
            let write = "BEGIN; SELECT add(key) FROM generate_series(1, 200::bigint) key";
            writer.batch_execute(write).unwrap();
        }
        Event::Did { what: "fenced", .. } if seen == 1 => {
            seen = 2;
            let mut writer = std::mem::replace(&mut writer, connect(&source));
            preparing = Some(std::thread::spawn(move || {
                // The drain has seen it by then.
                std::thread::sleep(Duration::from_millis(500));
                writer.batch_execute("PREPARE TRANSACTION 'late'").unwrap();
            }));
        }
        _ => {}
    };
    let short = Options { fence_max: Duration::from_secs(3), ..options() };
    let error = Moves::new(&mut cluster, short, &mut tell, &never).run().unwrap_err();
    preparing.expect("the fence went up").join().unwrap();
    let text = error.to_string();
    assert!(text.contains("did not end (prepared transaction 'late')"), "{text}");
    servers.nodes[0].value("COMMIT PREPARED 'late'").unwrap();
    Moves::new(&mut cluster, options(), &mut |_| {}, &never).run().unwrap();
    assert_eq!(servers.check_rows(), KEYS + 200);
}
