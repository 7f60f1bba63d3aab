//! What cannot be, and what is said of it.

use std::time::Duration;

use shard::{Cluster, Error, NodeConfig};

use crate::common::{Servers, TEMPLATE, connect};

#[test]
fn a_tool_that_is_about_to_end_is_waited_for() {
    let servers = Servers::start(1);
    let first = servers.create(1);
    let ending = std::thread::spawn(move || {
        std::thread::sleep(Duration::from_millis(500));
        drop(first);
    });
    drop(Cluster::open(&servers.conninfo()).unwrap());
    ending.join().unwrap();
}

#[test]
fn a_cluster_that_cannot_be_is_refused_with_a_reason() {
    let servers = Servers::start(2);
    let proxy = servers.conninfo();
    let check = |nodes: &[NodeConfig], buckets, template: &str, expected: &str| {
        let error =
            Cluster::create(&proxy, nodes, buckets, template, shard::KEY).err().expect(expected);
        let (text, hint) = (error.to_string(), error.hint());
        assert!(text.contains(expected), "{text}");
        assert!(hint.is_some(), "{text}");
    };
    let node = servers.node(0);
    let away = NodeConfig { conninfo: node.conninfo.replace("port=", "port=1"), route: None };
    check(std::slice::from_ref(&node), 100, TEMPLATE, "a cluster cannot have 100 buckets");
    check(&[], 16, TEMPLATE, "a cluster without nodes");
    check(&[node.clone(), away], 16, TEMPLATE, "connecting to node 1");
    let nonsense = NodeConfig { conninfo: "host".into(), route: None };
    check(&[nonsense], 16, TEMPLATE, "is no connection string");

    drop(servers.create(1));
    check(&[node], 16, TEMPLATE, "the proxy has a cluster already");

    let mut cluster = Cluster::open(&proxy).unwrap();
    let check = |error: Option<Error>, expected: &str| {
        let error = error.expect(expected);
        assert!(error.to_string().contains(expected), "{error}");
        assert!(error.hint().is_some());
    };
    check(Cluster::open(&proxy).err(), "another pgrig-shard is at work");
    check(Cluster::open(&servers.node(1).conninfo).err(), "there is no cluster");
    check(cluster.remove(0).err(), "node 0 is the last one");
    check(cluster.remove(7).err(), "there is no node 7");
    let same = servers.node(0).conninfo + " application_name=other";
    check(
        cluster.add(&NodeConfig { conninfo: same, route: None }).err(),
        "is node 0 of this cluster",
    );

    // A mapping that was spoiled.
    let mut client = connect(&proxy);
    client.execute("UPDATE pgrig_shard.bucket SET node = 9 WHERE bucket = 5", &[]).unwrap();
    drop(cluster);
    let error = loop {
        match Cluster::open(&proxy).err() {
            Some(Error::Busy { .. }) => std::thread::yield_now(),
            other => break other,
        }
    };
    check(error, "the mapping has bucket 5 on node 9, which is not there");
}

#[test]
fn a_template_that_cannot_be_moved_is_refused() {
    let servers = Servers::start(1);
    let nodes = [servers.node(0)];
    let template = "CREATE TABLE {bucket}.plain (id int);
        CREATE FUNCTION {bucket}.by_name(key text) RETURNS int LANGUAGE sql AS 'SELECT 1';
        CREATE FUNCTION {bucket}.change(id int) RETURNS int LANGUAGE sql AS 'SELECT 1'";
    let error =
        Cluster::create(&servers.conninfo(), &nodes, 16, template, shard::KEY).err().unwrap();
    let text = error.to_string();
    for part in [
        "{bucket}.by_name(text) has a key of type text",
        "table {bucket}.plain has neither a primary key nor another replica identity",
        "change changes something in no bucket in particular",
    ] {
        assert!(text.contains(part), "{text}");
    }
}

#[test]
fn a_function_that_the_cluster_has_not_made_is_not_replaced() {
    for is_on_proxy in [true, false] {
        let servers = Servers::start(1);
        let (proxy, node) = (servers.conninfo(), servers.node(0));
        let place = if is_on_proxy { &proxy } else { &node.conninfo };
        let mine = "CREATE FUNCTION public.add(key bigint) RETURNS bigint
            LANGUAGE sql AS 'SELECT 4711::bigint'";
        connect(place).batch_execute(mine).unwrap();
        let error = Cluster::create(&proxy, std::slice::from_ref(&node), 16, TEMPLATE, shard::KEY)
            .err()
            .unwrap();
        assert!(error.to_string().contains("add(bigint) that is not the cluster's"), "{error}");
        let value: i64 = connect(place).query_one("SELECT public.add(1)", &[]).unwrap().get(0);
        assert_eq!(value, 4711);
        // As the hint says.
        let renamed = TEMPLATE.replace("{bucket}.add(", "{bucket}.count_up(");
        Cluster::create(&proxy, &[node], 16, &renamed, shard::KEY).unwrap();
    }
}
