//! Passwords of data nodes are for the owner of the cluster only.

use std::fs;

use shard::{Cluster, NodeConfig};

use crate::common::{BUCKETS, Servers, TEMPLATE, connect};

/// Everything that a role sees of the connection strings.
fn seen_by(role: &str, proxy: &str) -> String {
    let mut client = connect(proxy);
    client.batch_execute(&format!("SET ROLE {role}")).unwrap();
    let mut text = String::new();
    for query in [
        "SELECT srvoptions::text FROM pg_foreign_server",
        "SELECT umoptions::text FROM pg_user_mappings",
        "SELECT umoptions::text FROM pg_user_mapping",
        "SELECT n::text FROM pgrig_shard.node n",
        "SELECT route FROM pgrig_shard.node",
    ] {
        // What is forbidden is not seen.
        let rows = client.query(query, &[]).unwrap_or_default();
        text.extend(rows.iter().filter_map(|row| row.get::<_, Option<String>>(0)));
    }
    text
}

fn execute(conninfo: &str, sql: &str) {
    connect(conninfo).batch_execute(sql).unwrap();
}

/// Addresses with a password for the tool, and routes with a role and a password for the proxy.
fn guarded(servers: &Servers, number: usize) -> NodeConfig {
    let conninfo = servers.node(number).conninfo;
    let route = conninfo.replace("user=postgres", "user=app");
    assert_ne!(route, conninfo, "the role of the lab's servers has changed");
    NodeConfig {
        conninfo: format!("{conninfo} password=topsecret"),
        route: Some(format!("{route} password=hushhush")),
    }
}

#[test]
fn an_unprivileged_role_serves_calls_and_nobody_else_sees_its_password() {
    let servers = Servers::start(2);
    let proxy = servers.conninfo();
    let logged = "ALTER SYSTEM SET log_statement = 'all';
        ALTER SYSTEM SET log_min_duration_statement = 0";
    for server in [&proxy, &servers.node(0).conninfo, &servers.node(1).conninfo] {
        for one in logged.split(';') {
            execute(server, one);
        }
        execute(server, "SELECT pg_reload_conf()");
        execute(server, "CREATE ROLE app LOGIN PASSWORD 'x'; CREATE ROLE visitor");
        execute(server, "ALTER DEFAULT PRIVILEGES GRANT SELECT ON TABLES TO PUBLIC, visitor");
    }
    let template = format!(
        "{TEMPLATE};
         CREATE FUNCTION {{bucket}}.who(key bigint) RETURNS text LANGUAGE sql STABLE
             AS 'SELECT session_user::text';
         GRANT USAGE ON SCHEMA {{bucket}} TO app;
         GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA {{bucket}} TO app"
    );
    let nodes = [guarded(&servers, 0)];
    let mut cluster = Cluster::create(&proxy, &nodes, BUCKETS, &template, shard::KEY).unwrap();
    cluster.add(&guarded(&servers, 1)).unwrap();
    let mut tell = |_: &shard::Event<'_>| {};
    shard::Moves::new(&mut cluster, crate::common::options(), &mut tell, &|| false).run().unwrap();
    drop(cluster);

    execute(
        &proxy,
        "GRANT USAGE ON FOREIGN SERVER pgrig_shard TO visitor;
         GRANT USAGE ON SCHEMA pgrig_shard TO visitor",
    );
    let seen = seen_by("visitor", &proxy);
    assert!(seen.contains("port="), "the options are read at all: {seen}");
    assert!(!seen.contains("topsecret") && !seen.contains("hushhush"), "{seen}");
    assert!(seen_by("postgres", &proxy).contains("hushhush"), "the owner sees it");

    let mut visitor = connect(&proxy);
    visitor.batch_execute("SET ROLE visitor").unwrap();
    for key in 1..=20_i64 {
        let value: i64 = visitor.query_one("SELECT add($1)", &[&key]).unwrap().get(0);
        assert_eq!(value, 1);
        let who: String = visitor.query_one("SELECT who($1)", &[&key]).unwrap().get(0);
        assert_eq!(who, "app");
    }
    for node in servers.nodes.iter().chain([&servers.proxy]) {
        let log = fs::read_to_string(node.log()).unwrap();
        assert!(log.contains("statement: "), "statements are logged");
        for secret in ["topsecret", "hushhush"] {
            let line = log.lines().find(|line| line.contains(secret));
            assert_eq!(line, None, "the log of {}", node.name());
        }
    }
}

#[test]
fn what_is_no_connection_string_is_not_repeated() {
    let servers = Servers::start(1);
    let check = |conninfo: &str, route: Option<&str>| {
        let node = NodeConfig { conninfo: conninfo.into(), route: route.map(str::to_owned) };
        let error =
            Cluster::create(&servers.conninfo(), &[node], 16, TEMPLATE, shard::KEY).err().unwrap();
        let text = format!("{error} {:?}", error.hint());
        assert!(text.contains("is no connection string"), "{text}");
        assert!(!text.contains("hushhush"), "{text}");
    };
    check("host=a password='hushhush", None);
    check("postgres://u:hushhush@[::1/d", None);
    let good = servers.node(0).conninfo;
    check(&good, Some("postgres://u:hushhush@[::1/d"));
    check(&good, Some("host=a password='hushhush"));
}
