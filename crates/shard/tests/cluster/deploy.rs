//! What a cluster offers once it is made.

use crate::common::{BUCKETS, KEYS, Servers, TEMPLATE, connect};

#[test]
fn calls_go_to_the_key_s_bucket_to_all_nodes_or_to_any() {
    let servers = Servers::start(3);
    let cluster = servers.create(3);
    assert_eq!(cluster.functions().len(), 4);
    drop(cluster);
    servers.fill();
    assert_eq!(servers.check_rows(), KEYS);

    let mut proxy = connect(&servers.conninfo());
    // By key: the right node answers, whichever that is.
    for key in [1_i64, 2, 3, KEYS] {
        let value: i64 = proxy.query_one("SELECT value($1)", &[&key]).unwrap().get(0);
        assert_eq!(value, 1);
        let everywhere = proxy.query("SELECT * FROM value_everywhere($1)", &[&key]).unwrap();
        assert_eq!(everywhere.len(), 1, "one node has it");
    }
    // Without a key: every bucket gives a row.
    let counts = proxy.query("SELECT * FROM counters()", &[]).unwrap();
    assert_eq!(counts.len(), usize::try_from(BUCKETS).unwrap());
    assert_eq!(counts.iter().map(|row| row.get::<_, i64>(0)).sum::<i64>(), KEYS);
    // Nothing is returned by a function that gives nothing.
    proxy.execute("SELECT forget(5)", &[]).unwrap();
    let row = proxy.query_one("SELECT value(5)", &[]).unwrap();
    assert_eq!(row.get::<_, Option<i64>>(0), None);
    let node: i32 = proxy.query_one("SELECT pgrig_shard.some_node()", &[]).unwrap().get(0);
    assert!((0..3).contains(&node));

    // The data nodes refuse what is not theirs with an error that clients retry.
    let mut refused = 0;
    let mut direct = connect(&servers.node(0).conninfo);
    for key in 1..=30_i64 {
        if let Err(error) = direct.query_one("SELECT add($1)", &[&key]) {
            assert_eq!(error.code().unwrap().code(), "40001");
            refused += 1;
        }
    }
    assert!((10..30).contains(&refused), "a third is its own: {refused}");
    let error = direct.query_one("SELECT add(NULL)", &[]).unwrap_err();
    let message = error.as_db_error().unwrap().message().to_owned();
    assert_eq!(message, "a key that is null has no bucket");
}

#[test]
fn the_bucket_is_that_of_postgresql_s_hash_partitions() {
    let servers = Servers::start(1);
    drop(servers.create(1));
    let mut client = connect(&servers.conninfo());
    client.batch_execute("CREATE TABLE hashed (key bigint) PARTITION BY HASH (key)").unwrap();
    let wrong = "
        SELECT count(*) FROM (
            SELECT n * 7919 * CASE WHEN n % 3 = 0 THEN -1 ELSE 1 END FROM generate_series(0, 5000) n
            UNION ALL
            VALUES (0::bigint), (-1), (2147483648), (-2147483649),
                   (9223372036854775807), (-9223372036854775808)
        ) AS keys (key)
        WHERE NOT satisfies_hash_partition('hashed'::regclass, 16, pgrig_shard.bucket_of(key), key)";
    assert_eq!(client.query_one(wrong, &[]).unwrap().get::<_, i64>(0), 0);
    // Known values: a hash that changed would send every row to another place.
    let known = "SELECT array_agg(pgrig_shard.bucket_of(key) ORDER BY key)
                 FROM unnest('{0,1,42,2147483648}'::bigint[]) key";
    let known: Vec<i32> = client.query_one(known, &[]).unwrap().get(0);
    assert_eq!(known, [48 % 16, 56 % 16, 98 % 16, 118 % 16]);
}

#[test]
fn a_creation_that_failed_can_be_run_again() {
    let mut servers = Servers::start(2);
    let nodes: Vec<_> = (0..2).map(|number| servers.node(number)).collect();
    let proxy = servers.conninfo();
    // The second node has a bucket's name already, so the first one alone is deployed.
    let mut second = connect(&nodes[1].conninfo);
    second.batch_execute("CREATE SCHEMA bucket_0003").unwrap();
    let failed = shard::Cluster::create(&proxy, &nodes, 16, TEMPLATE, shard::KEY);
    assert!(failed.is_err());
    for (nodes, buckets, template, other) in [
        (&nodes[..1], 16, TEMPLATE.to_owned(), "other nodes or routes"),
        (&nodes, 32, TEMPLATE.to_owned(), "another number of buckets"),
        (&nodes, 16, TEMPLATE.replace("value bigint", "value numeric"), "another template"),
    ] {
        let error = shard::Cluster::create(&proxy, nodes, buckets, &template, shard::KEY)
            .err()
            .expect(other);
        assert!(error.to_string().contains(other), "{error}");
        assert!(error.hint().is_some());
    }
    second.batch_execute("DROP SCHEMA bucket_0003").unwrap();
    drop(second);
    servers.nodes[0].restart().unwrap();
    drop(servers.create(2));
    servers.fill();
    servers.check_rows();
}
