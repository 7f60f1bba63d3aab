//! `--target`: the user's server, as encrypted as its address asks for.

use std::fs;
use std::os::unix::fs::{PermissionsExt, chown};
use std::path::Path;

use lab::{Lab, Listen, Node, NodeConfig, Settings};
use testing::servers::server;

use crate::Desk;

/// A server that lets no client in over the network without TLS, and its lab.
fn encrypted() -> (Node, Lab) {
    let lab = testing::servers::lab();
    let settings: Settings = [("fsync", "off"), ("shared_buffers", "16MB")].into_iter().collect();
    let config = NodeConfig { listen: Listen::Loopback, ..NodeConfig::new(settings) };
    let mut node = lab.node("server", config).expect("a node is made");
    node.init().expect("initdb works");
    let made = rcgen::generate_simple_self_signed(["localhost".to_owned()]).expect("a certificate");
    let data = node.data();
    let write = |name: &str, text: &str| {
        let path = data.join(name);
        fs::write(&path, text).expect("written");
        chown(&path, Some(lab.user().uid), Some(lab.user().gid)).expect("owner");
        fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).expect("mode");
    };
    write("server.crt", &made.cert.pem());
    write("server.key", &made.signing_key.serialize_pem());
    let rules = fs::read_to_string(data.join("pg_hba.conf")).expect("pg_hba.conf");
    write("pg_hba.conf", &format!("hostnossl all all all reject\n{rules}"));
    node.append_conf("ssl = on");
    node.start().expect("the server starts with TLS");
    (node, lab)
}

/// The names of the metrics that a run's first trial has samples of.
fn sampled(record: &Path) -> String {
    let trials = record.join("trials");
    let first = crate::names(&trials).into_iter().next().expect("a trial");
    fs::read_to_string(trials.join(first).join("samples.csv")).expect("samples")
}

#[test]
fn everything_that_goes_to_a_target_is_encrypted_as_its_address_asks() {
    let (node, _lab) = encrypted();
    let root = node.data().join("server.crt").display().to_string();
    let endpoint = node.endpoint();
    let desk = Desk::new();
    desk.write_study("mine", "");
    let run = |options: &str, out: &str| {
        let password = endpoint.password.as_deref().expect("a password");
        let (port, user) = (endpoint.port, &endpoint.user);
        let target = format!("host=localhost port={port} user={user} dbname=postgres {options}");
        let arguments = ["run", "mine", "--rounds", "1", "--target", &target, "--out", out];
        let mut command = desk.command(&arguments);
        crate::Said::of(&command.env("PGPASSWORD", password).output().expect("pgrig runs"))
    };
    let verified = format!("sslmode=verify-full sslrootcert={root}");
    for (options, out) in [("sslmode=require", "encrypted"), (&verified, "verified")] {
        run(options, out).ended(0);
        assert!(sampled(&desk.path(out)).contains("db_backends"), "{options}: nothing was probed");
    }
    let other = rcgen::generate_simple_self_signed(["localhost".to_owned()]).expect("made");
    desk.write("other.crt", &other.cert.pem());
    for (options, expected) in [
        ("sslmode=disable", "rejects connection"),
        ("sslmode=verify-full sslrootcert=other.crt", "certificate"),
        ("sslmode=verify-full sslrootcert=missing.crt", "missing.crt"),
    ] {
        let said = run(options, "refused").ended(1);
        assert!(said.err.contains(expected), "{options}: {}", said.err);
        assert!(!desk.path("refused").exists(), "{options} left a record");
    }
    let left = node.value("SELECT count(*) FROM pg_namespace WHERE nspname = 'pgrig'");
    assert_eq!(left.expect("an answer").as_deref(), Some("0"));
}

/// Look-alikes of what the studies make, in every schema that a session of this database looks
/// through.
const LOOK_ALIKES: &str = r#"
    CREATE SCHEMA app;
    CREATE SCHEMA pgrig_other;
    DO $$ DECLARE place text; name text; BEGIN
        EXECUTE format('CREATE SCHEMA %I', current_user);
        FOREACH place IN ARRAY ARRAY['public', 'app', 'pgrig_other', current_user] LOOP
            FOREACH name IN ARRAY ARRAY['pgbench_accounts', 'pgbench_branches',
                'pgbench_tellers', 'pgbench_history', 'test_sync', 'writes_log', 'writes_state',
                'user_info', 'user_login_rec', 'user_logout_rec', 'written', 'last_written',
                'counter', 't'] LOOP
                EXECUTE format('CREATE TABLE %I.%I (id int PRIMARY KEY, mine text)', place, name);
                EXECUTE format('INSERT INTO %I.%I VALUES (1, %L)', place, name, place);
            END LOOP;
            EXECUTE format('CREATE FUNCTION %I.transfer(int, int, int, int) RETURNS int
                LANGUAGE sql AS $f$ SELECT 1 $f$', place);
        END LOOP;
        EXECUTE format('ALTER DATABASE postgres SET search_path = app, %I, public', current_user);
    END $$;"#;

/// What a database holds, as SQL; the keys that pg_dump makes up each time are left out.
pub(crate) fn dump(node: &Node) -> String {
    dump_database(node, "postgres")
}

/// The same of another database.
fn dump_database(node: &Node, database: &str) -> String {
    let endpoint = node.endpoint().with_database(database);
    let output = std::process::Command::new(node.installation().program("pg_dump"))
        .args(["--create", "--dbname", &endpoint.to_string()])
        .output()
        .expect("pg_dump runs");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let text = String::from_utf8(output.stdout).expect("UTF-8");
    let is_key = |line: &&str| line.starts_with(r"\restrict") || line.starts_with(r"\unrestrict");
    text.lines().filter(|line| !is_key(line)).collect::<Vec<_>>().join("\n")
}

#[test]
fn nothing_on_a_target_is_touched_that_pgrig_has_not_made() {
    let (node, _lab) = server(&[]);
    let mut client = node.connect().expect("a connection");
    client.batch_execute(LOOK_ALIKES).expect("look-alikes are made");
    let before = dump(&node);
    let target = node.endpoint().to_string();
    let desk = Desk::new();
    desk.pgrig(&["new", "mine"]).ended(0);
    for study in ["mine", "pgbench", "fsync", "pool", "replication", "sharding"] {
        let arguments = ["run", study, "--profile", "smoke", "--target", &target];
        let said = desk.pgrig(&arguments);
        let is_expected = match study {
            "mine" | "pgbench" | "fsync" => said.code == Some(0),
            _ => matches!(said.code, Some(0 | 2 | 3)),
        };
        assert!(is_expected, "{study}: {said:?}");
        assert!(dump(&node) == before, "{study} changed something: {said:?}");
    }

    // A schema of that name is dropped only where pgrig has made it and nothing else needs it.
    let run = || desk.pgrig(&["run", "mine", "--profile", "smoke", "--target", &target]);
    let left = "CREATE SCHEMA pgrig; COMMENT ON SCHEMA pgrig IS 'made by pgrig, run 1; dropped';
        CREATE TABLE pgrig.old (id int);";
    client.batch_execute(left).expect("what a killed run has left");
    run().ended(0);
    assert!(dump(&node) == before, "a killed run's schema stays");
    client.batch_execute(left).expect("what a killed run has left");
    client.batch_execute("CREATE VIEW public.mine AS SELECT * FROM pgrig.old").expect("a view");
    let said = run().ended(1);
    assert!(said.err.contains("view mine depends on"), "{}", said.err);
    client.batch_execute("DROP VIEW public.mine").expect("dropped");
    client.batch_execute("COMMENT ON SCHEMA pgrig IS 'mine'").expect("commented");
    let theirs = dump(&node);
    let said = run().ended(1);
    assert!(said.err.contains("that pgrig did not make"), "{}", said.err);
    assert!(dump(&node) == theirs, "a schema without the mark was touched");
}

/// `--node` takes a database that is otherwise empty, and leaves it so. One that has anything is
/// refused, whatever its tables are called.
#[test]
fn nothing_on_a_node_is_touched_that_pgrig_has_not_made() {
    // Buckets move by logical replication.
    let (node, _lab) = server(&[("wal_level", "logical")]);
    let place = |database: &str| node.endpoint().with_database(database).to_string();
    for database in ["one", "two", "theirs"] {
        node.value(&format!("CREATE DATABASE {database}")).expect("a database is made");
    }
    let mut theirs = node.connect_to("theirs").expect("a connection");
    theirs
        .batch_execute("CREATE SCHEMA app; CREATE TABLE app.userinfo (id int); INSERT INTO app.userinfo VALUES (1)")
        .expect("a table is made");
    let desk = Desk::new();
    let run = |first: &str, second: &str, out: &str| {
        let [first, second] = [first, second].map(place);
        let [first, second] = [format!("shard1={first}"), format!("shard2={second}")];
        let only = ["run", "sharding", "--profile", "smoke", "--only", "p2/query_pk"];
        desk.pgrig(&[&only[..], &["--node", &first, "--node", &second, "--out", out]].concat())
    };
    let dumps = || ["one", "two", "theirs"].map(|database| dump_database(&node, database));
    let before = dumps();
    run("one", "two", "made").ended(0);
    assert!(dumps() == before, "a run left something, or took it");
    let said = run("one", "theirs", "refused").ended(1);
    assert!(said.err.contains("there is schema app"), "{}", said.err);
    assert!(dumps() == before, "a run that was refused changed something");
}

#[test]
fn a_target_is_not_asked_what_it_cannot_answer() {
    let (node, _lab) = server(&[]);
    let target = node.endpoint().to_string();
    let desk = Desk::new();
    let study = r#"
question = "Does it matter?"
window = "1s"
warmup = "100ms"
rounds = 1
[data]
script = "init.sql"
[workloads.write]
script = "insert.sql"
[topologies.one.nodes.primary]
[variants.on]
topology = "one"
settings = { synchronous_commit = "on" }
[variants.off]
topology = "one"
settings = { synchronous_commit = "off" }
[scenarios.all]
run = ["write"]
[[claims]]
value = "tps('off/all') / tps('on/all')"
expect = "> 1"
"#;
    desk.write("mine/study.toml", study);
    desk.write("mine/init.sql", "CREATE TABLE t (a int);\n");
    desk.write("mine/insert.sql", "INSERT INTO t VALUES (1);\n");
    let run = || desk.pgrig(&["run", "mine", "--target", &target]);
    let before = dump(&node);
    let said = desk.pgrig(&["run", "mine", "--target", &target, "--dry-run"]).ended(0);
    for expected in [
        "CREATE SCHEMA \"pgrig\";",
        "SET search_path TO \"pgrig\";\nCREATE TABLE t (a int);",
        "INSERT INTO t VALUES (1);",
        "pg_stat_activity",
        "DROP SCHEMA \"pgrig\" CASCADE;",
    ] {
        assert!(said.out.contains(expected), "{expected}: {}", said.out);
    }
    let said = desk.pgrig(&["run", "pgbench", "--target", &target, "--dry-run"]).ended(0);
    assert!(said.out.contains("create table \"pgrig\".pgbench_accounts("), "{}", said.out);
    assert!(said.out.contains("copy \"pgrig\".pgbench_accounts from stdin"), "{}", said.out);
    assert!(dump(&node) == before && !desk.path("runs").exists(), "a dry run changed something");
    let said = run().ended(0);
    let told = said.err.clone() + &said.out;
    assert!(told.contains("needs synchronous_commit = off"), "{told}");
    assert!(!told.contains("does not hold"), "{told}");

    for (sql, expected) in [
        ("ALTER SYSTEM SET work_mem = '1GB';", "the server's settings"),
        ("DROP SCHEMA public CASCADE;", "schemas that are not the rig's"),
        ("SET search_path = public;", "the session's search path"),
    ] {
        desk.write("mine/init.sql", &format!("CREATE TABLE t (a int);\n{sql}\n"));
        let said = run().ended(3);
        assert!(said.err.contains(expected) && said.err.contains("init.sql:2"), "{}", said.err);
    }
}

#[test]
fn an_owner_without_privileges_gets_what_can_be_measured() {
    let (node, _lab) = server(&[]);
    let mut client = node.connect().expect("a connection");
    let password = node.endpoint().password.clone().unwrap_or_default();
    client
        .batch_execute(&format!("CREATE ROLE plain LOGIN PASSWORD '{password}'"))
        .expect("a role");
    client.batch_execute("CREATE DATABASE theirs OWNER plain").expect("a database");
    let target = |database: &str| {
        let mut endpoint = node.endpoint().with_database(database);
        endpoint.user = "plain".to_owned();
        endpoint.to_string()
    };
    let desk = Desk::new();
    let arguments = ["run", "pgbench", "--profile", "smoke", "--out", "record", "--target"];
    let said = desk.pgrig(&[&arguments[..], &[&target("theirs")]].concat()).ended(0);
    assert!(said.out.contains("pairs need servers of pgrig's own"), "{}", said.out);
    assert!(said.out.contains("has no count_difference"), "{}", said.out);
    let record = fs::read_to_string(desk.path("record/record.json")).expect("a record");
    assert!(record.contains("extension pg_stat_statements is not in"), "{record}");
    assert!(record.contains("settings of the target"), "{record}");
    let said = desk.pgrig(&["run", "pgbench", "--target", &target("postgres")]).ended(1);
    assert!(said.err.contains("GRANT CREATE ON DATABASE"), "{}", said.err);
}
