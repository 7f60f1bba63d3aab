//! `pgrig verify`: what is said before, the exit codes, and an end in the middle.

use rustix::process::Signal;
use serde_json::Value;
use testing::servers::server;

use crate::interruption::signal;
use crate::{Desk, Said, schemas};

#[test]
fn two_databases_are_compared_and_the_exit_code_says_whether_they_are_equal() {
    let (node, _lab) = server(&[]);
    let desk = Desk::new();
    let run = |database: &str, sql: &str| {
        node.connect_to(database).unwrap().batch_execute(sql).unwrap();
    };
    for name in ["old", "new"] {
        run("postgres", &format!("CREATE DATABASE {name}"));
        run(name, "CREATE TABLE orders (id serial PRIMARY KEY, note text)");
        run(
            name,
            "INSERT INTO orders (note) SELECT 'n' FROM generate_series(1, 100); ANALYZE orders",
        );
    }
    let target = |name: &str| format!("{name}={}", node.endpoint().with_database(name));
    let [old, new] = ["old", "new"].map(target);
    let verify = |more: &[&str], code: i32| -> Said {
        desk.pgrig(&[&["verify", "--target", &old, "--target", &new][..], more].concat())
            .ended(code)
    };
    let json = |more: &[&str], code: i32| -> Value {
        let document =
            serde_json::from_str(&verify(&[&["--json"], more].concat(), code).out).unwrap();
        schemas::check("verify", &document);
        document
    };
    let said = verify(&["--dry-run"], 0);
    for words in [
        "reads every row of 1 table",
        "ACCESS SHARE until it ends: ALTER TABLE, DROP and TRUNCATE wait",
        "holds the xmin of its snapshot",
        "takes about a second",
    ] {
        assert!(said.out.contains(words), "{words}: {}", said.out);
    }
    assert_eq!(json(&["--dry-run"], 0)["verdict"], Value::Null);
    let said = verify(&[], 0);
    assert!(
        said.err.contains("ACCESS SHARE") && said.err.contains("orders: 100 rows, the same"),
        "{}",
        said.err
    );
    assert!(said.out.starts_with("equal: 1 table, 100 rows, "), "{}", said.out);
    assert_eq!(json(&[], 0)["verdict"], "equal");

    run("new", "INSERT INTO orders (note) VALUES ('more')");
    assert!(verify(&["--extra", "new"], 0).out.contains("orders: the same, 1 more"));
    run(
        "new",
        "UPDATE orders SET note = 'other' WHERE id = 7; SELECT setval('orders_id_seq', 1); DROP INDEX IF EXISTS x",
    );
    let said = verify(&["--table", "orders"], 4);
    for words in [
        "orders (7): not the same",
        "orders (101): only on new",
        "sequence public.orders_id_seq has given 100 on old, and 1 on new",
        "different: 2 rows, 0 objects, 1 sequence behind",
    ] {
        assert!(said.out.contains(words), "{words}: {}", said.out);
    }
    let document = json(&[], 4);
    assert_eq!(
        (&document["verdict"], &document["rows"][0]["different"]),
        (&Value::from("different"), &Value::from(2))
    );

    let check = |arguments: &[&str], expected: &str| {
        let said = desk.pgrig(&[&["verify"], arguments].concat()).ended(1);
        assert!(said.err.contains(expected), "{arguments:?}: {}", said.err);
    };
    check(&["--target", &old], "1 database given, and two are compared");
    check(&["--target", &old, "--target", &old], "both databases are called old");
    check(&["--target", &old, "--target", &new, "--extra", "newer"], "no --target has that name");
    check(
        &["--target", &old, "--target", &new, "--table", "order"],
        "neither old nor new has no table order",
    );
    check(
        &["--target", &old, "--target", &new, "--schema", "app"],
        "neither old nor new has no table in schema app",
    );
    check(&["--target", "postgres://host/db"], "write NAME=CONNINFO");
    let nowhere = "new=host=/nowhere dbname=db";
    check(&["--target", &old, "--target", nowhere], "new: connection to server on socket");
}

#[test]
fn an_interruption_leaves_no_session() {
    let (node, _lab) = server(&[]);
    let desk = Desk::new();
    let mut client = node.connect().unwrap();
    client.batch_execute("CREATE TABLE orders (id int)").unwrap();
    client.batch_execute("CREATE DATABASE other").unwrap();
    node.connect_to("other").unwrap().batch_execute("CREATE TABLE orders (id int)").unwrap();
    let mut locker = node.connect_to("other").unwrap();
    let mut held = locker.transaction().unwrap();
    let [old, new] =
        ["postgres", "other"].map(|name| format!("{name}={}", node.endpoint().with_database(name)));
    // The second database is waited for.
    held.batch_execute("LOCK orders").unwrap();
    let mut child = desk.command(&["verify", "--target", &old, "--target", &new]).spawn().unwrap();
    let mut count = |sql: &str| client.query_one(sql, &[]).unwrap().get::<_, i64>(0);
    testing::until("it waits", || count("SELECT count(*) FROM pg_locks WHERE NOT granted") == 1);
    signal(&child, Signal::INT);
    assert_eq!(child.wait().unwrap().code(), Some(130));
    let sessions = "SELECT count(*) FROM pg_stat_activity WHERE application_name = 'pgrig verify'";
    testing::until("its sessions have ended", || count(sessions) == 0);
    assert_eq!(count("SELECT count(*) FROM pg_locks WHERE NOT granted"), 0);
}
