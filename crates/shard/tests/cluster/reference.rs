//! Small tables that every node holds whole.

use std::time::Duration;

use shard::{Error, Event, Moves, Options, Status};

use crate::common::{Servers, connect, open_again, options};
use crate::crashes::never;

const TABLES: &str = "
    CREATE TABLE {reference}.country (code text PRIMARY KEY, name text NOT NULL);
    INSERT INTO {reference}.country VALUES ('no', 'Norway');
    CREATE FUNCTION {reference}.country_name(code text) RETURNS text LANGUAGE plpgsql STABLE AS $$
    BEGIN RETURN (SELECT name FROM {reference}.country c WHERE c.code = country_name.code); END $$;";

#[test]
fn every_node_has_the_rows_that_the_proxy_has_and_new_nodes_get_them() {
    let servers = Servers::start(3);
    let mut cluster = servers.create(2);
    for (sql, expected) in [
        (TABLES.replace("STABLE", ""), "country_name changes something"),
        (TABLES.replace(" PRIMARY KEY", ""), "neither a primary key"),
        (TABLES.replace("country_name", "value"), "the template has a function value already"),
        (TABLES.replace("NOT NULL", "NOT NIL"), "syntax error"),
    ] {
        let error = cluster.refer(&sql, &never).unwrap_err();
        assert!(error.to_string().contains(expected), "{error}");
    }
    assert_eq!(cluster.refer(TABLES, &never).unwrap(), ["country_name"]);
    // Once more, as after a crash; and no other tables in their place.
    cluster.refer(TABLES, &never).unwrap();
    assert!(matches!(cluster.refer("SELECT", &never), Err(Error::Refused { .. })));

    let mut proxy = connect(&servers.conninfo());
    proxy.execute("INSERT INTO pgrig_reference.country VALUES ('is', 'Iceland')", &[]).unwrap();
    let number = cluster.add(&servers.node(2)).unwrap();
    let all_have = |nodes: &[usize]| {
        let on = |node: &usize| {
            let mut client = connect(&servers.node(*node).conninfo);
            let sum = "SELECT count(*) FROM pgrig_reference.country";
            client.query_one(sum, &[]).unwrap().get::<_, i64>(0) == 2
        };
        lab::wait_until(Duration::from_secs(20), || {
            Ok::<_, String>(nodes.iter().all(on).then_some(()))
        })
    };
    assert_eq!(all_have(&[0, 1, 2]), Ok(Some(())));
    for _ in 0..20 {
        let row = proxy.query_one("SELECT country_name('is'), country_name('no')", &[]).unwrap();
        assert_eq!((row.get(0), row.get(1)), (Some("Iceland"), Some("Norway")));
    }
    let status = Status::of(&servers.conninfo()).unwrap();
    assert!(status.nodes.iter().all(|node| node.reference_lag_bytes.is_some()), "{status:?}");

    cluster.remove(number).unwrap();
    Moves::new(&mut cluster, options(), &mut |_| {}, &never).run().unwrap();
    let slots = "SELECT count(*) FROM pg_replication_slots";
    assert_eq!(proxy.query_one(slots, &[]).unwrap().get::<_, i64>(0), 2);
    let left = "SELECT to_regnamespace('pgrig_reference') IS NULL
                       AND NOT EXISTS (SELECT FROM pg_subscription)";
    let mut gone = connect(&servers.node(2).conninfo);
    assert!(gone.query_one(left, &[]).unwrap().get::<_, bool>(0));
}

/// What an interrupted command has left is not kept for ever: a slot keeps WAL.
#[test]
fn slots_and_nodes_of_interrupted_commands_do_not_stay() {
    let mut servers = Servers::start(2);
    let mut cluster = servers.create(1);
    cluster.refer(TABLES, &never).unwrap();
    let slots = |servers: &Servers| {
        let slots = "SELECT count(*) FROM pg_replication_slots WHERE slot_name ~ '^pgrig'";
        servers.proxy.value(slots).unwrap().unwrap()
    };
    let country = |servers: &Servers| {
        lab::wait_until(Duration::from_secs(20), || {
            let rows = servers.nodes[1].value("SELECT count(*) FROM pgrig_reference.country")?;
            Ok::<_, lab::Error>((rows.as_deref() == Some("2")).then_some(()))
        })
    };

    // An addition that was stopped in the copy.
    assert!(matches!(cluster.add_unless(&servers.node(1), &|| true), Err(Error::Stopped)));
    drop(cluster);
    assert_eq!(slots(&servers), "2");
    let mut cluster = open_again(&servers);
    Moves::new(&mut cluster, options(), &mut |_| {}, &never).abandon().unwrap();
    assert_eq!(slots(&servers), "1");
    // The subscription that it has left is of no use any more.
    servers.proxy.value("INSERT INTO pgrig_reference.country VALUES ('is', 'Iceland')").unwrap();
    assert_eq!(cluster.add(&servers.node(1)).unwrap(), 1);
    country(&servers).unwrap().expect("all rows arrive");

    // A node that is down when it leaves, which comes back, or does not.
    for comes_back in [true, false] {
        Moves::new(&mut cluster, options(), &mut |_| {}, &never).run().unwrap();
        cluster.remove(1).unwrap();
        let buckets = cluster.owners().iter().filter(|owner| **owner == 1).count();
        let (node, mut moved) = (&mut servers.nodes[1], 0);
        let mut tell = |event: &Event<'_>| {
            moved +=
                if let Event::Did { what: "dropped the old rows", .. } = event { 2 } else { 0 };
            if moved == buckets {
                moved += 1;
                node.kill9().unwrap();
            }
        };
        let short = Options { patience: Duration::from_secs(1), ..options() };
        Moves::new(&mut cluster, short.clone(), &mut tell, &never).run().unwrap_err();
        drop(cluster);
        let partition = "SELECT count(DISTINCT option_value) FROM pg_foreign_server,
                         pg_options_to_table(srvoptions) WHERE srvname = 'pgrig_shard'";
        assert_eq!(servers.proxy.value(partition).unwrap().as_deref(), Some("1"));
        assert_eq!(slots(&servers), "2");
        cluster = open_again(&servers);
        let mut left = Vec::new();
        let mut tell = |event: &Event<'_>| {
            if let Event::Left { number } = event {
                left.push(*number);
            }
        };
        let mut moves = Moves::new(&mut cluster, short, &mut tell, &never);
        match comes_back {
            true => {
                servers.nodes[1].start().unwrap();
                moves.run().unwrap();
                let nothing = "SELECT to_regnamespace('pgrig_reference') IS NULL
                               AND to_regnamespace('pgrig_shard') IS NULL
                               AND NOT EXISTS (SELECT FROM pg_subscription)";
                assert_eq!(servers.nodes[1].value(nothing).unwrap().as_deref(), Some("t"));
            }
            false => moves.abandon().unwrap(),
        }
        assert_eq!(left, [1]);
        assert_eq!(slots(&servers), "1");
        assert_eq!(cluster.nodes().len(), 1);
        if comes_back {
            cluster.add(&servers.node(1)).unwrap();
        }
    }
}
