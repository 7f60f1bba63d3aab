//! `pgrig shard`, as the owner of a cluster uses it.

use lab::{Lab, Node, NodeConfig};
use serde_json::{Value, json};

use crate::{Desk, Said};

const TEMPLATE: &str = "
    CREATE TABLE {bucket}.item (id int PRIMARY KEY, note text);
    CREATE FUNCTION {bucket}.put(key int, note text) RETURNS void LANGUAGE plpgsql AS $$
    BEGIN INSERT INTO {bucket}.item VALUES (key, put.note); END $$;
    CREATE FUNCTION {bucket}.find(key int) RETURNS text LANGUAGE plpgsql STABLE AS $$
    BEGIN RETURN (SELECT i.note FROM {bucket}.item i WHERE i.id = key); END $$;";

/// A proxy and three servers that can be data nodes.
fn servers() -> (Lab, Vec<Node>) {
    let lab = testing::servers::lab();
    let settings = [("shared_buffers", "16MB"), ("wal_level", "logical")];
    let start = |name: &str| {
        testing::servers::start(&lab, name, NodeConfig::new(settings.into_iter().collect()))
    };
    let nodes = ["proxy", "a", "b", "c"].map(start).into();
    (lab, nodes)
}

#[test]
fn nodes_are_added_and_removed_and_every_step_says_what_it_does() {
    let (_lab, nodes) = servers();
    let desk = Desk::new();
    desk.write("bucket.sql", TEMPLATE);
    let place: Vec<String> = nodes.iter().map(|node| node.endpoint().to_string()).collect();
    let (proxy, a, b, c) = (&*place[0], &*place[1], &*place[2], &*place[3]);
    let shard = |arguments: &[&str]| -> Said {
        let mut all = vec!["shard"];
        all.extend_from_slice(arguments);
        all.extend_from_slice(&["--proxy", proxy]);
        desk.pgrig(&all)
    };

    let create =
        ["create", "--node", a, "--node", b, "--template", "bucket.sql", "--buckets", "16"];
    let said = shard(&create).ended(0);
    assert_eq!(said.out, "16 buckets on 2 nodes; the proxy offers find, put\n");
    nodes[0].value("SELECT count(put(key, 'note')) FROM generate_series(1, 100) key").unwrap();

    let said = shard(&["add", c, "--dry-run"]).ended(0);
    assert!(
        said.out.starts_with("plan: 5 of 16 buckets, 2 batches\n  node 0 → node 2 "),
        "{}",
        said.out
    );
    assert!(said.err.contains("nothing else: no DDL"), "{}", said.err);
    let said = shard(&["add", c, "--dry-run", "--json"]).ended(0);
    let plan: Value = serde_json::from_str(&said.out).unwrap();
    assert_eq!((&plan["buckets"], &plan["begun"]), (&json!(16), &json!([])), "{plan}");
    assert_eq!((&plan["planned"][1]["from"], &plan["planned"][1]["to"]), (&json!(1), &json!(2)));
    let said = shard(&["status"]).ended(0);
    assert!(said.out.starts_with("mapping version 1, 16 buckets on 2 nodes\n"), "{}", said.out);
    let host = format!("  {}\n", host_of(a));
    assert!(said.out.contains(&host), "no {host} in {}", said.out);
    assert!(said.err.contains("mapped: buckets that the proxy sends to the node"), "{}", said.err);
    check_json(&shard(&["status", "--json"]).ended(0), |status| {
        assert_eq!((&status["version"], &status["nodes"][1]["mapped"]), (&json!(1), &json!(8)));
        assert_eq!(status["nodes"][0]["place"], host_of(a));
    });

    let said = shard(&["add", c, "--grace", "0"]).ended(0);
    assert!(said.out.starts_with("5 buckets, "), "{}", said.out);
    assert!(said.out.contains(" moved in 2 batches; longest fence "), "{}", said.out);
    let said = shard(&["rebalance"]).ended(0);
    assert_eq!(said.out, "nothing had to move; mapping version 3\n");
    let totals = |arguments: &[&str], code: i32| -> Value {
        let said = shard(&[arguments, &["--json"]].concat()).ended(code);
        serde_json::from_str(&said.out).unwrap()
    };
    let nothing = totals(&["rebalance"], 0);
    assert_eq!((&nothing["version"], &nothing["buckets"]), (&json!(3), &json!(0)), "{nothing}");

    let said = shard(&["abandon"]).ended(0);
    assert_eq!(said.out, "no move was under way\n");
    let begun = "INSERT INTO pgrig_shard.batch (source, target, buckets, step)
                 VALUES (0, 1, '{0}', 'planned'), (0, 1, '{2}', 'switching')";
    nodes[0].connect().unwrap().batch_execute(begun).unwrap();
    let said = shard(&["status"]).ended(2);
    assert!(said.err.contains("`pgrig-shard abandon` gives it up"), "{}", said.err);
    assert!(said.out.contains("  not served: batch "), "{}", said.out);
    let given_up = totals(&["abandon"], 0);
    assert_eq!((&given_up["abandoned"], &given_up["kept"]), (&json!(2), &json!(0)), "{given_up}");
    assert_eq!(shard(&["abandon"]).ended(0).out, "no move was under way\n");

    // A node that was restored to before a switch.
    let older = "UPDATE pgrig_shard.node SET version = 1;
                 INSERT INTO pgrig_shard.bucket (bucket, state, version) VALUES (15, 'owned', 1)";
    let mapped = "SELECT node FROM pgrig_shard.bucket WHERE bucket = 15";
    assert_eq!(nodes[0].value(mapped).unwrap().as_deref(), Some("2"));
    nodes[2].connect().unwrap().batch_execute(older).unwrap();
    let said = shard(&["status"]).ended(2);
    let expected = "out of step: bucket 15: node 2 by the mapping since version";
    assert!(said.out.contains(expected), "{}", said.out);
    assert!(said.err.contains("`pgrig-shard rebalance` brings them into step"), "{}", said.err);
    check_json(&shard(&["status", "--json"]).ended(2), |status| {
        assert_eq!(status["is_undecided"], json!(false));
        assert_eq!(status["out_of_step"].as_array().map(Vec::len), Some(2), "{status}");
    });
    let said = shard(&["remove", "0"]).ended(1);
    assert!(said.err.contains("nodes are not where version 3 of the mapping"), "{}", said.err);
    assert!(totals(&["rebalance"], 0)["mended"].as_u64() > Some(2));
    shard(&["status"]).ended(0);

    // A slot that came back with a server.
    let slot = "SELECT slot_name::text FROM pg_create_logical_replication_slot(
        (SELECT format('pgrig_shard_%s_7', left(cluster, 8)) FROM pgrig_shard.node), 'pgoutput')";
    let slot = format!("slot {} on node 1", nodes[2].value(slot).unwrap().unwrap());
    let said = shard(&["status"]).ended(2);
    assert!(said.out.contains(&format!("  of no move: {slot}\n")), "{}", said.out);
    assert!(said.err.contains("a slot of no move keeps WAL for ever"), "{}", said.err);
    check_json(&shard(&["status", "--json"]).ended(2), |status| {
        assert_eq!(status["remnants"], json!([slot]));
    });
    assert_eq!(totals(&["rebalance"], 0)["mended"], 1);
    shard(&["status"]).ended(0);

    // Two servers that say that they are the same node.
    let renumber = |number| {
        let sql = format!("UPDATE pgrig_shard.node SET number = {number}");
        nodes[3].connect().unwrap().batch_execute(&sql).unwrap();
    };
    renumber(1);
    let same = "the servers of node 1 and node 2 both say that they are node 1";
    let said = shard(&["status"]).ended(2);
    assert!(said.out.contains(&format!("  out of step: {same}\n")), "{}", said.out);
    check_json(&shard(&["status", "--json"]).ended(2), |status| {
        assert_eq!(
            (&status["out_of_step"], &status["is_undecided"]),
            (&json!([same]), &json!(true))
        );
    });
    let said = shard(&["rebalance"]).ended(1);
    assert!(
        said.err.contains(same) && said.err.contains("conninfo of pgrig_shard.node"),
        "{}",
        said.err
    );
    renumber(2);

    let moved = totals(&["remove", "0", "--grace", "0"], 0);
    assert!(moved["rows"].as_u64() > Some(0), "{moved}");
    assert!(moved["longest_fence_ms"].as_f64() > Some(0.0), "{moved}");
    let said = shard(&["status"]).ended(0);
    assert!(said.out.contains(" 16 buckets on 2 nodes\n"), "{}", said.out);
    let all = "SELECT count(find(key)) FROM generate_series(1, 100) key";
    assert_eq!(nodes[0].value(all).unwrap().as_deref(), Some("100"));
}

/// What a user has in the databases of a cluster stays as it is while nodes come and go.
#[test]
fn tables_that_are_no_part_of_a_cluster_stay_as_they_are() {
    let (_lab, nodes) = servers();
    let look_alikes = "CREATE SCHEMA app;
        CREATE TABLE app.item (id int PRIMARY KEY, mine text);
        CREATE TABLE public.item (id int PRIMARY KEY, mine text);
        CREATE TABLE public.bucket (bucket int PRIMARY KEY, node int);
        INSERT INTO app.item VALUES (1, 'app'); INSERT INTO public.item VALUES (1, 'public');
        INSERT INTO public.bucket VALUES (0, 7);";
    for node in &nodes {
        node.connect().unwrap().batch_execute(look_alikes).unwrap();
    }
    let theirs = || -> Vec<String> {
        let all = "SELECT string_agg(line, chr(10) ORDER BY line) FROM (
            SELECT 'app.item' || i::text AS line FROM app.item i
            UNION ALL SELECT 'item' || i::text FROM public.item i
            UNION ALL SELECT 'bucket' || b::text FROM public.bucket b
            UNION ALL SELECT attrelid::regclass::text || attname || atttypid FROM pg_attribute
            WHERE attrelid IN ('app.item'::regclass, 'public.item'::regclass,
                               'public.bucket'::regclass)) AS lines";
        nodes.iter().map(|node| node.value(all).unwrap().unwrap_or_default()).collect()
    };
    let before = theirs();
    let desk = Desk::new();
    desk.write("bucket.sql", TEMPLATE);
    let place: Vec<String> = nodes.iter().map(|node| node.endpoint().to_string()).collect();
    let shard = |arguments: &[&str]| {
        let command = [&["shard"], arguments, &["--proxy", &place[0]]].concat();
        desk.pgrig(&command).ended(0)
    };
    let create = ["create", "--node", &place[1], "--node", &place[2], "--template", "bucket.sql"];
    shard(&[&create[..], &["--buckets", "4"]].concat());
    shard(&["add", &place[3], "--grace", "0"]);
    shard(&["remove", "0", "--grace", "0"]);
    assert_eq!(theirs(), before);
}

#[test]
fn what_cannot_be_is_one_clear_message() {
    let (_lab, mut nodes) = servers();
    let desk = Desk::new();
    desk.write("bucket.sql", TEMPLATE);
    let place: Vec<String> = nodes.iter().map(|node| node.endpoint().to_string()).collect();
    let (proxy, a, b) = (&*place[0], &*place[1], &*place[2]);
    let check = |arguments: &[&str], code: i32, error: &str, hint: &str| {
        let said = desk.pgrig(arguments).ended(code);
        assert!(said.err.contains(error), "{}", said.err);
        assert!(said.err.contains(hint), "{}", said.err);
    };
    let create = ["shard", "create", "--proxy", proxy, "--node", a, "--template"];
    check(&[&create[..], &["none.sql"]].concat(), 1, "reading the template none.sql", "hint:");
    check(&["shard", "status", "--proxy", proxy], 1, "there is no cluster at", "shard create");
    desk.pgrig(&[&create[..], &["bucket.sql", "--buckets", "4"]].concat()).ended(0);
    check(&["shard", "remove", "0", "--proxy", proxy], 1, "node 0 is the last one", "add another");
    check(&["shard", "remove", "5", "--proxy", proxy], 1, "there is no node 5", "the nodes are 0");
    check(&["shard", "add", a, "--batch", "0", "--proxy", proxy], 1, "at least 1", "");

    // It is the proxy that refuses, and no node.
    nodes[0].connect().unwrap().batch_execute("CREATE ROLE visitor LOGIN").unwrap();
    let visitor = proxy.replace("user=postgres", "user=visitor");
    check(&["shard", "status", "--proxy", &visitor], 1, "permission denied", "");

    // A node that is down is a part of the status, and nothing begins without it.
    nodes[1].kill9().unwrap();
    let said = desk.pgrig(&["shard", "status", "--proxy", proxy]).ended(2);
    assert!(said.out.contains("connecting to node 0"), "{}", said.out);
    check_json(&desk.pgrig(&["shard", "status", "--json", "--proxy", proxy]).ended(2), |status| {
        assert_eq!(status["nodes"][0]["owned"], json!(null));
        assert!(status["nodes"][0]["error"].as_str().is_some_and(|why| why.contains("node 0")));
    });
    nodes[2].kill9().unwrap();
    check(&["shard", "add", b, "--proxy", proxy], 1, "connecting to node 1", "start that server");
}

/// The server and the database of a connection string, as the status shows them.
fn host_of(conninfo: &str) -> String {
    let resolved = server::resolve_conninfo(conninfo).unwrap();
    format!("{}/postgres", resolved.place())
}

/// Looks at a status in JSON, which keeps to its schema.
#[track_caller]
fn check_json(said: &Said, look: impl Fn(&Value)) {
    let status: Value = serde_json::from_str(&said.out).unwrap();
    crate::schemas::check("shard-status", &status);
    look(&status);
}
