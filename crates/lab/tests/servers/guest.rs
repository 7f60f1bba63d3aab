//! SQL of a study on a server of the user's: PostgreSQL keeps it to the run's schema.

use lab::guest::{OwnSchema, StudyRights, remove_left, set_path};
use lab::{BoundaryFault, Endpoint, Error, GuestError, Node, TARGET_SCHEMA, Target, TargetConfig};
use server::Limits;
use testing::servers::server;

/// What is there before a run, and belongs to an application.
const APPLICATION: &str = r"
    CREATE ROLE app_owner LOGIN PASSWORD 'x';
    CREATE ROLE limited LOGIN PASSWORD 'x';
    CREATE ROLE maker LOGIN CREATEROLE NOINHERIT PASSWORD 'x';
    CREATE DATABASE app OWNER app_owner;
    GRANT CREATE ON DATABASE app TO limited, maker;";

const TABLES: &str = r"
    SET ROLE app_owner;
    CREATE SCHEMA app_schema;
    CREATE TABLE app_schema.orders (id int PRIMARY KEY, mine text);
    INSERT INTO app_schema.orders SELECT i, 'mine' FROM generate_series(1, 100) i;
    DELETE FROM app_schema.orders WHERE id % 2 = 0;
    CREATE MATERIALIZED VIEW app_schema.totals AS SELECT count(*) FROM app_schema.orders;
    INSERT INTO app_schema.orders VALUES (1000, 'after the view');
    CREATE SEQUENCE app_schema.numbers;
    CREATE FUNCTION app_schema.touch() RETURNS void LANGUAGE sql AS
        $$ UPDATE app_schema.orders SET mine = 'touched' $$;
    CREATE PROCEDURE app_schema.touch_all() LANGUAGE sql AS
        $$ UPDATE app_schema.orders SET mine = 'touched' $$;
    GRANT USAGE ON SCHEMA app_schema TO PUBLIC;
    RESET ROLE;
    CREATE EXTENSION postgres_fdw;
    CREATE SERVER elsewhere FOREIGN DATA WRAPPER postgres_fdw;
    CREATE TABLE public.orders (id int);
    SELECT lo_create(4711);
    CREATE PUBLICATION published FOR ALL TABLES;";

/// Statements that change something outside of the run's schema, or stop those who use it.
const REACHING: [&str; 62] = [
    // The issue's.
    "SELECT 1 AS a INTO public.x",
    "EXPLAIN ANALYZE CREATE TABLE public.y AS SELECT 1 AS a",
    "IMPORT FOREIGN SCHEMA public FROM SERVER elsewhere INTO public",
    "REFRESH MATERIALIZED VIEW app_schema.totals",
    "SECURITY LABEL ON TABLE app_schema.orders IS 'x'",
    "VACUUM FULL app_schema.orders",
    "VACUUM FULL",
    "LOCK TABLE app_schema.orders IN ACCESS EXCLUSIVE MODE",
    "LOCK TABLE app_schema.orders IN ACCESS SHARE MODE",
    "DO $$ BEGIN CREATE TABLE public.z (a int); END $$",
    "DO $$ BEGIN EXECUTE 'DROP TABLE app_schema.orders'; END $$",
    "CREATE FUNCTION f() RETURNS void LANGUAGE sql AS $$ UPDATE app_schema.orders SET mine = 'f' $$; SELECT f()",
    "CREATE FUNCTION g() RETURNS void LANGUAGE plpgsql SECURITY DEFINER AS $$ BEGIN EXECUTE 'TRUNCATE app_schema.orders'; END $$; SELECT g()",
    "SELECT app_schema.touch()",
    "CALL app_schema.touch_all()",
    // Rows.
    "UPDATE app_schema.orders SET mine = 'not yours'",
    "DELETE FROM app_schema.orders",
    "INSERT INTO app_schema.orders VALUES (-1, 'not yours')",
    "TRUNCATE app_schema.orders",
    "COPY app_schema.orders FROM PROGRAM 'echo 5000'",
    "WITH x AS (DELETE FROM app_schema.orders RETURNING 1) SELECT count(*) FROM x",
    "MERGE INTO app_schema.orders o USING (SELECT 1) s ON o.id = 1 WHEN MATCHED THEN DELETE",
    "SELECT * FROM app_schema.orders FOR UPDATE",
    "SELECT nextval('app_schema.numbers')",
    "SELECT setval('app_schema.numbers', 1000)",
    "SELECT lo_put(4711, 0, 'x')",
    "SELECT lo_unlink(4711)",
    // Definitions.
    "DROP TABLE app_schema.orders CASCADE",
    "DROP SCHEMA app_schema CASCADE",
    "DROP OWNED BY app_owner CASCADE",
    "REASSIGN OWNED BY app_owner TO CURRENT_USER",
    "ALTER TABLE app_schema.orders ADD COLUMN x int",
    "ALTER TABLE app_schema.orders SET SCHEMA pgrig",
    "CREATE INDEX ON app_schema.orders (mine)",
    "REINDEX TABLE app_schema.orders",
    "CLUSTER app_schema.orders USING orders_pkey",
    "CREATE TRIGGER t BEFORE INSERT ON app_schema.orders EXECUTE FUNCTION suppress_redundant_updates_trigger()",
    "CREATE RULE r AS ON INSERT TO app_schema.orders DO INSTEAD NOTHING",
    "CREATE POLICY p ON app_schema.orders",
    "COMMENT ON TABLE app_schema.orders IS 'x'",
    "GRANT ALL ON app_schema.orders TO PUBLIC",
    "REVOKE ALL ON SCHEMA app_schema FROM PUBLIC",
    "ANALYZE app_schema.orders",
    "CREATE SCHEMA elsewhere",
    "CREATE EXTENSION hstore SCHEMA public",
    "CREATE PUBLICATION more FOR ALL TABLES",
    "DROP PUBLICATION published",
    "CREATE EVENT TRIGGER e ON ddl_command_start EXECUTE FUNCTION app_schema.touch()",
    "ALTER DEFAULT PRIVILEGES FOR ROLE app_owner GRANT ALL ON TABLES TO PUBLIC",
    // The server and its roles.
    "ALTER SYSTEM SET work_mem = '1GB'",
    "ALTER DATABASE app SET search_path = nowhere",
    "CREATE DATABASE more",
    "DROP DATABASE postgres",
    "ALTER ROLE app_owner PASSWORD 'y'",
    "DROP ROLE app_owner",
    "CREATE ROLE more",
    "SET ROLE app_owner; DROP TABLE app_schema.orders",
    "RESET ROLE; RESET SESSION AUTHORIZATION; SET ROLE NONE; DROP TABLE app_schema.orders",
    "SET SESSION AUTHORIZATION app_owner; DROP TABLE app_schema.orders",
    "SELECT pg_reload_conf()",
    "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename <> current_user",
    "SELECT pg_stat_reset()",
];

/// A server with an application's data, as which `role` a run comes.
fn target(node: &Node, role: Option<&str>) -> Target {
    let mut endpoint: Endpoint = node.endpoint().with_database("app");
    if let Some(role) = role {
        role.clone_into(&mut endpoint.user);
        endpoint.password = Some("x".into());
    }
    let conninfo = server::own_conninfo(&endpoint.to_string()).expect("a conninfo");
    Target::open(TargetConfig { conninfo, limits: Limits::of_administration() })
        .expect("it is there")
}

/// All that a run might change: the database's content, the roles and databases, and files of tables.
fn everything(node: &Node) -> String {
    let program = |name: &str, arguments: &[&str]| {
        let output = std::process::Command::new(node.installation().program(name))
            .args(["--dbname", &node.endpoint().with_database("app").to_string()])
            .args(arguments)
            .output()
            .expect("it runs");
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        let text = String::from_utf8(output.stdout).expect("UTF-8");
        let is_key =
            |line: &&str| line.starts_with(r"\restrict") || line.starts_with(r"\unrestrict");
        text.lines().filter(|line| !is_key(line)).collect::<Vec<_>>().join("\n")
    };
    let files = "SELECT string_agg(format('%s %s %s', oid::regclass, relfilenode, relacl), E'\\n' ORDER BY oid) \
        FROM pg_class WHERE relnamespace::regnamespace::text IN ('app_schema', 'public')";
    let mut client = node.connect_to("app").expect("a connection");
    let files: String = client.query_one(files, &[]).expect("files").get(0);
    let dump = program("pg_dump", &["--create", "--blobs"]);
    format!("{dump}\n{}\n{files}", program("pg_dumpall", &["--globals-only"]))
}

/// Runs each statement as a study does, and sees that nothing has changed when the run is over.
fn reaches_nothing(node: &Node, login: Option<&str>) {
    let before = everything(node);
    let target = target(node, login);
    let mut own = OwnSchema::make(&target, "1", StudyRights::OwnSchema).expect("a run begins");
    for statement in REACHING {
        // What the server does not refuse reaches nothing: VACUUM passes over tables of others.
        let mut client = own.guest().connect().expect("the study's login");
        client.batch_execute("SET lock_timeout = '5s'").expect("set");
        let _ = client.batch_execute(statement);
    }
    let mut client = own.guest().connect().expect("the study's login");
    let path = set_path(TARGET_SCHEMA);
    let work = [
        "CREATE TABLE t (a int)",
        "INSERT INTO t VALUES (1)",
        "VACUUM t",
        "CREATE TEMP TABLE u (a int)",
    ];
    for statement in [path.as_str()].into_iter().chain(work) {
        client.batch_execute(statement).unwrap_or_else(|error| panic!("{statement}: {error}"));
    }
    drop(client);
    own.leave().expect("the run ends");
    let after = everything(node);
    let lines = || before.lines().zip(after.lines()).find(|(one, other)| one != other);
    assert!(before == after, "as {login:?}: {:?}", lines());
}

/// A server with the application's data.
fn with_application() -> (Node, lab::Lab) {
    let (node, lab) = server(&[]);
    let mut client = node.connect().expect("a connection");
    for statement in APPLICATION.split(';').filter(|one| !one.trim().is_empty()) {
        client.batch_execute(statement).expect("roles and a database");
    }
    node.connect_to("app").expect("a connection").batch_execute(TABLES).expect("tables");
    (node, lab)
}

#[test]
fn sql_of_a_study_reaches_nothing_but_its_schema() {
    let (node, _lab) = with_application();
    // A superuser; a role that may create roles, and inherits nothing.
    for login in [None, Some("maker")] {
        reaches_nothing(&node, login);
    }
    // Up to PostgreSQL 14, everybody may create in schema public. What the run has made there goes with it.
    let mut client = node.connect_to("app").expect("a connection");
    client.batch_execute("GRANT CREATE ON SCHEMA public TO PUBLIC").expect("granted");
    reaches_nothing(&node, None);
    client.batch_execute("REVOKE CONNECT, TEMPORARY ON DATABASE app FROM PUBLIC").expect("revoked");
    reaches_nothing(&node, None);
}

#[test]
fn without_a_boundary_no_run_begins_unless_it_may_change_more() {
    let (node, _lab) = with_application();
    let owner = target(&node, Some("app_owner"));
    let before = everything(&node);
    let error = OwnSchema::make(&owner, "1", StudyRights::OwnSchema).err().expect("refused");
    let is_expected = matches!(
        &error,
        Error::Guest(GuestError::NoBoundary { login, why: BoundaryFault::MayNotMakeRole }) if login == "app_owner"
    );
    assert!(is_expected, "{error}");
    assert!(error.hint().expect("a hint").contains("--may-change-database"));
    // A server that lets nobody in by password makes no boundary either, and keeps nothing of the attempt.
    let rules = node.value("SHOW hba_file").expect("an answer").expect("a file");
    let text = std::fs::read_to_string(&rules).expect("rules");
    let superuser = node.endpoint().user;
    let only = format!(
        "local all {superuser} trust\nhost all {superuser} all trust\nlocal all all reject\nhost all all all reject\n"
    );
    std::fs::write(&rules, only).expect("written");
    node.value("SELECT pg_reload_conf()").expect("an answer");
    testing::until("the rules", || {
        let refused = OwnSchema::make(&target(&node, None), "1", StudyRights::OwnSchema).err();
        matches!(
            refused,
            Some(Error::Guest(GuestError::NoBoundary { why: BoundaryFault::LoginRefused(_), .. }))
        )
    });
    std::fs::write(&rules, text).expect("written");
    node.value("SELECT pg_reload_conf()").expect("an answer");
    assert!(everything(&node) == before, "a run that was refused has left something");
    testing::until("the rules", || {
        server::connect(
            &server::own_conninfo(&node.endpoint().with_database("app").to_string()).unwrap(),
            &Limits::of_questions(),
        )
        .is_ok()
    });
    // With the rights of the login, the study changes what that may.
    let target = target(&node, Some("app_owner"));
    let mut own = OwnSchema::make(&target, "1", StudyRights::OfLogin).expect("a run begins");
    let mut client = own.guest().connect().expect("a connection");
    client.batch_execute("UPDATE app_schema.orders SET mine = 'changed'").expect("changed");
    own.leave().expect("the run ends");
}

#[test]
fn a_login_that_has_nothing_else_is_a_boundary() {
    let (node, _lab) = with_application();
    reaches_nothing(&node, Some("limited"));
    let mut client = node.connect_to("app").expect("a connection");
    let rights = ["GRANT SELECT ON app_schema.orders TO limited", "GRANT app_owner TO limited"];
    let takes =
        ["REVOKE SELECT ON app_schema.orders FROM limited", "REVOKE app_owner FROM limited"];
    for (give, take) in rights.iter().zip(takes) {
        client.batch_execute(give).expect("granted");
        let made = OwnSchema::make(&target(&node, Some("limited")), "1", StudyRights::OwnSchema);
        assert!(made.is_err(), "{give}");
        client.batch_execute(take).expect("revoked");
    }
    client.batch_execute("GRANT pg_monitor TO limited").expect("granted");
    reaches_nothing(&node, Some("limited"));
}

#[test]
fn what_a_kill_left_is_removed_by_those_who_may() {
    let (node, _lab) = with_application();
    let before = everything(&node);
    let left = || {
        let target = target(&node, None);
        let own = OwnSchema::make(&target, "1", StudyRights::OwnSchema).expect("a run begins");
        own.guest().connect().unwrap().batch_execute("CREATE TABLE t (a int)").expect("made");
        // As a kill does it: the session that holds the lock ends, nothing else happens.
        std::mem::forget(own);
        let end = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity \
            WHERE datname = 'app' AND pid <> pg_backend_pid()";
        node.value(end).expect("ended");
        testing::until("the lock", || {
            let locks = "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory'";
            node.value(locks).expect("an answer").as_deref() == Some("0")
        });
    };
    left();
    let error = remove_left(&target(&node, Some("app_owner"))).expect_err("it may not");
    let owner = node.endpoint().user;
    let is_expected = matches!(&error, Error::Guest(GuestError::NotYours { owner: whose, .. }) if *whose == owner);
    assert!(is_expected, "{error}");
    let removed = remove_left(&target(&node, None)).expect("a superuser may");
    assert_eq!(removed.len(), 2, "{removed:?}");
    assert!(removed[0] == "schema pgrig" && removed[1].starts_with("role pgrig_"), "{removed:?}");
    assert!(everything(&node) == before, "something stays");
    assert!(remove_left(&target(&node, None)).expect("nothing to do").is_empty());
    // The next run does the same.
    left();
    let mut own =
        OwnSchema::make(&target(&node, None), "2", StudyRights::OwnSchema).expect("a run");
    assert!(matches!(remove_left(&target(&node, None)), Err(Error::Guest(GuestError::TargetBusy))));
    own.leave().expect("the run ends");
    assert!(everything(&node) == before, "something stays");
}
