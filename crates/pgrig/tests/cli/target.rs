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
        let password = endpoint.password.as_ref().expect("a password").reveal();
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
        "CREATE ROLE \"pgrig_RUN\" LOGIN PASSWORD",
        "CREATE SCHEMA \"pgrig\" AUTHORIZATION \"pgrig_RUN\";",
        "SET search_path TO \"pgrig\";\nCREATE TABLE t (a int);",
        "INSERT INTO t VALUES (1);",
        "pg_stat_activity",
        "DROP SCHEMA IF EXISTS \"pgrig\" CASCADE;",
        "DROP ROLE \"pgrig_RUN\";",
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

    // PostgreSQL refuses what reaches beyond the run's schema.
    for (sql, expected) in [
        ("ALTER SYSTEM SET work_mem = '1GB';", "permission denied to set parameter \"work_mem\""),
        ("SELECT 1\\; DROP SCHEMA public CASCADE;", "must be owner of schema public"),
        ("SELECT 1 AS a INTO public.x;", "permission denied for schema public"),
        ("DO $$ BEGIN EXECUTE 'CREATE ROLE x'; END $$;", "permission denied to create role"),
    ] {
        desk.write("mine/init.sql", &format!("CREATE TABLE t (a int);\n{sql}\n"));
        let said = run().ended(1);
        assert!(said.err.contains(expected) && said.err.contains("init.sql:2"), "{}", said.err);
        assert!(said.err.contains("--may-change-database"), "{}", said.err);
        assert!(dump(&node) == before, "{sql} changed something");
    }
    let mut client = node.connect().expect("a connection");
    client.batch_execute("CREATE TABLE public.orders (a int)").expect("a table");
    desk.write("mine/insert.sql", "INSERT INTO public.orders VALUES (1);\n");
    desk.write("mine/init.sql", "CREATE TABLE t (a int);\n");
    let said = run().ended(2);
    assert!(said.err.contains("permission denied for table orders"), "{}", said.err);
    desk.pgrig(&["run", "mine", "--target", &target, "--may-change-database"]).ended(0);
    let rows = node.value("SELECT count(*) > 0 FROM public.orders").expect("an answer");
    assert_eq!(rows.as_deref(), Some("t"), "the study meant to");
    client.batch_execute("DROP TABLE public.orders").expect("dropped");
    desk.write("mine/insert.sql", "INSERT INTO t VALUES (1);\n");
    // A login with rights elsewhere that may make no role is no boundary.
    client
        .batch_execute("CREATE ROLE owner LOGIN CREATEDB PASSWORD 'x'; GRANT CREATE ON DATABASE postgres TO owner")
        .expect("a role");
    let mut endpoint = node.endpoint();
    (endpoint.user, endpoint.password) = ("owner".to_owned(), Some("x".into()));
    let as_owner = endpoint.to_string();
    let said = desk.pgrig(&["run", "mine", "--target", &as_owner]).ended(1);
    assert!(said.err.contains("role \"owner\" has rights elsewhere"), "{}", said.err);
    assert!(said.err.contains("--may-change-database"), "{}", said.err);
    desk.pgrig(&["run", "mine", "--target", &as_owner, "--may-change-database"]).ended(0);
    client.batch_execute("DROP OWNED BY owner; DROP ROLE owner").expect("dropped");
    assert!(dump(&node) == before, "something stays");

    // What a kill left is removed at once, too.
    let left = "CREATE SCHEMA pgrig; COMMENT ON SCHEMA pgrig IS 'made by pgrig, run 1; dropped'";
    client.batch_execute(left).expect("what a killed run has left");
    let said = desk.pgrig(&["clean", "--target", &target]).ended(0);
    assert!(said.out.contains("removed schema pgrig from"), "{}", said.out);
    assert!(dump(&node) == before, "something stays");
    let said = desk.pgrig(&["clean", "--target", &target]).ended(0);
    assert!(said.err.contains("nothing left"), "{}", said.err);

    for (line, instead, expected) in [
        (
            "[topologies.one.nodes.primary]",
            "[topologies.one.nodes.primary]\ninitdb = [\"--wal-segsize=64\"]",
            "a data directory of initdb --wal-segsize=64 for primary",
        ),
        (
            "[topologies.one.nodes.primary]",
            "[topologies.one.nodes.primary]\nswallow_fsync = \"all\"",
            "flushes of primary that do nothing",
        ),
        (
            "[topologies.one.nodes.primary]",
            "[topologies.one.nodes.primary]\narchive = true",
            "an archive of the WAL of primary",
        ),
    ] {
        desk.write("mine/study.toml", &study.replace(line, instead));
        let said = run().ended(3);
        assert!(said.err.contains(expected), "{expected}: {}", said.err);
    }
    assert!(dump(&node) == before, "a study that was refused changed something");
}

/// Two variants at the settings of the target, whatever else they are.
fn two_variants(first: &str, second: &str) -> String {
    format!(
        r#"
question = "Does it matter?"
window = "1s"
warmup = "100ms"
rounds = 1
[data]
script = "init.sql"
rows = 10
[workloads.read]
script = "read.sql"
[topologies.one.nodes.primary]
[topologies.checked.nodes.primary]
checksums = true
[topologies.tcp.nodes.primary]
listen = "tcp"
[variants.first]
{first}
[variants.second]
{second}
[scenarios.all]
run = ["read"]
checks = [{{ sql = "SELECT count(*) FROM t", as = "rows", expect = "10" }}]
timeline = [{{ at = "200ms", sql = "VACUUM (ANALYZE)" }}, {{ at = "300ms", checkpoint = "primary" }}]
[[claims]]
value = "tps('first/all')"
expect = "> 0"
"#
    )
}

#[test]
fn variants_that_a_target_cannot_tell_apart_are_left_out() {
    let lab = testing::servers::lab();
    let config = NodeConfig { listen: Listen::Loopback, ..NodeConfig::new(Settings::new()) };
    let node = testing::servers::start(&lab, "server", config);
    node.value("CREATE TABLE theirs AS SELECT 1 AS a").expect("a table of the user's");
    let target = node.endpoint().to_string();
    let desk = Desk::new();
    desk.write("mine/init.sql", "CREATE TABLE t AS SELECT generate_series(1, :rows) AS a;\n");
    desk.write("mine/read.sql", "SELECT count(*) FROM t;\n");
    let (one, other) = ("topology = \"one\"", "topology = \"one\"\ndata = { rows = 20 }");
    for (first, second, expected) in [
        (one, other, Some("needs data of its own, has one schema with the data of first")),
        (one, "topology = \"checked\"", Some("needs data_checksums = on")),
        ("topology = \"tcp\"", one, Some("needs no clients by TCP")),
        // As much as two that ask for the same.
        (one, "topology = \"one\"\nsettings = { work_mem = \"4MB\" }", None),
    ] {
        desk.write("mine/study.toml", &two_variants(first, second));
        let said = desk.pgrig(&["run", "mine", "--target", &target]).ended(0);
        let told = said.err.clone() + &said.out;
        match expected {
            Some(words) => assert!(told.contains(words), "{words}: {told}"),
            None => assert!(!told.contains("has a target"), "{told}"),
        }
    }
    let said = desk.pgrig(&["run", "mine", "--target", &target, "--dry-run"]).ended(0);
    for expected in [
        "VACUUM (ANALYZE);",
        "-- check rows\nSET search_path TO \"pgrig\";\nSELECT count(*) FROM t;",
    ] {
        assert!(said.out.contains(expected), "{expected}: {}", said.out);
    }
    let vacuumed = "SELECT count(last_vacuum) FROM pg_stat_all_tables WHERE relname = 'theirs'";
    assert_eq!(node.value(vacuumed).expect("an answer").as_deref(), Some("0"));
}

#[test]
fn an_owner_without_privileges_gets_what_can_be_measured() {
    let (node, _lab) = server(&[]);
    let mut client = node.connect().expect("a connection");
    client.batch_execute("CREATE ROLE plain LOGIN").expect("a role");
    client.batch_execute("CREATE DATABASE theirs OWNER plain").expect("a database");
    let target = |database: &str| {
        let mut endpoint = node.endpoint().with_database(database);
        endpoint.user = "plain".to_owned();
        endpoint.to_string()
    };
    let desk = Desk::new();
    // It owns a database, and is no boundary for a study.
    let may = "--may-change-database";
    let arguments = ["run", "pgbench", "--profile", "smoke", "--out", "record", may, "--target"];
    let said = desk.pgrig(&[&arguments[..], &[&target("theirs")]].concat()).ended(0);
    assert!(said.out.contains("has no count_difference"), "{}", said.out);
    let record = fs::read_to_string(desk.path("record/record.json")).expect("a record");
    assert!(record.contains("extension pg_stat_statements is not in"), "{record}");
    assert!(record.contains("settings of the target"), "{record}");
    let said = desk.pgrig(&["run", "pgbench", may, "--target", &target("postgres")]).ended(1);
    assert!(said.err.contains("GRANT CREATE ON DATABASE"), "{}", said.err);

    // What is free is told by the sessions of everybody, and by the role's own limit.
    let run =
        || desk.pgrig(&["run", "pgbench", "--profile", "smoke", "--target", &target("theirs")]);
    client.batch_execute("ALTER ROLE plain CONNECTION LIMIT 5").expect("a limit");
    let said = run().ended(3);
    assert!(said.err.contains("4 free on the target"), "{}", said.err);
    client.batch_execute("ALTER ROLE plain CONNECTION LIMIT -1").expect("no limit");
    let most: usize = node.value("SHOW max_connections").ok().flatten().unwrap().parse().unwrap();
    // Three of what is left are reserved for superusers.
    let sessions: Vec<_> = (9..most).map(|_| node.connect().expect("a session")).collect();
    let said = run().ended(3);
    assert!(said.err.contains(" free on the target"), "{}", said.err);
    drop(sessions);
    let said =
        desk.pgrig(&["run", "pgbench", "--keep-data", "--target", &target("theirs")]).ended(1);
    assert!(said.err.contains("with --target there are none"), "{}", said.err);
}
