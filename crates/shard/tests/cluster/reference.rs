//! Small tables that every node holds whole.

use std::time::Duration;

use shard::{Error, Moves, Status};

use crate::common::{Servers, connect, options};
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
