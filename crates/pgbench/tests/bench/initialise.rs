//! `-i`, beside the real pgbench's on the same server: the same definitions, the same rows.

use crate::common::Server;

/// Everything about pgbench's tables that a dump would show.
const DEFINITIONS: &str = "
    select relname, relkind, relpersistence, reloptions::text, attname, attnotnull,
           format_type(atttypid, atttypmod), pg_get_partkeydef(c.oid),
           pg_get_expr(relpartbound, c.oid),
           (select spcname from pg_tablespace where oid = reltablespace)
    from pg_class c join pg_attribute a on a.attrelid = c.oid and attnum > 0
    where relnamespace = 'public'::regnamespace
    order by relname, attnum";

const CONSTRAINTS: &str = "
    select conname, conrelid::regclass, pg_get_constraintdef(oid) from pg_constraint
    where connamespace = 'public'::regnamespace order by 1, 2::text";

/// All rows in any order; the padding of `filler` is part of it.
fn contents(table: &str) -> String {
    format!("select count(*), sum(hashtextextended(t::text, 0)) from {table} t")
}

/// Durations differ from run to run.
fn without_times(text: &str) -> String {
    let mut result = String::new();
    let mut rest = text;
    while let Some(at) = rest.find(|c: char| c.is_ascii_digit()) {
        let number = rest[at..].find(|c: char| !c.is_ascii_digit() && c != '.');
        let end = at + number.unwrap_or(rest.len() - at);
        result.push_str(&rest[..at]);
        let seconds = rest[end..].starts_with(" s");
        result.push_str(if seconds { "T" } else { &rest[at..end] });
        rest = &rest[end..];
    }
    result + rest
}

#[test]
fn tables_and_rows_are_pgbenchs() {
    let server = Server::start(&[]);
    for (number, line) in [
        "-i",
        "-i -s 2 -F 90 --foreign-keys",
        "-i -s 2 -q -n --unlogged-tables",
        "-i -s 2 --partitions=3",
        "-i -s 1 --partitions=7 --partition-method=hash --fillfactor 80",
        "-i -s 2 -I dtGvp",
        "-i -I dtpgv",
        "-i --index-tablespace=pg_default --tablespace=pg_default",
    ]
    .into_iter()
    .enumerate()
    {
        let (ours, theirs) = (format!("ours{number}"), format!("theirs{number}"));
        server.create_database(&ours);
        server.create_database(&theirs);
        let our_end = server.ours_alike(&ours, line);
        let their_end = server.theirs(&theirs, line);
        assert_eq!((our_end.code, &*our_end.out), (0, ""), "{line}: {our_end:?}");
        assert_eq!(their_end.code, 0, "{line}: {their_end:?}");
        assert_eq!(without_times(&our_end.err), without_times(&their_end.err), "{line}");
        let contents = ["accounts", "branches", "tellers", "history"]
            .map(|table| contents(&format!("pgbench_{table}")));
        for sql in [DEFINITIONS, CONSTRAINTS].into_iter().chain(contents.iter().map(|s| &**s)) {
            assert_eq!(server.rows(&ours, sql), server.rows(&theirs, sql), "{line}: {sql}");
        }
    }
}

/// The rows are the same as pgbench's; rows that exist are kept.
#[test]
fn several_connections_load_the_same_and_go_on_after_a_crash() {
    let server = Server::start(&[]);
    let tables = ["accounts", "branches", "tellers"];
    let all = |database: &str| -> Vec<String> {
        let contents = tables.map(|table| contents(&format!("pgbench_{table}")));
        let sqls = contents.iter().map(|sql| &**sql).chain([CONSTRAINTS]);
        sqls.flat_map(|sql| server.rows(database, sql)).collect()
    };
    for database in ["one", "several", "cut", "cut_on_server"] {
        server.create_database(database);
    }
    let line = "-i -q -s 5 --foreign-keys";
    for (database, line) in [("one", line), ("several", &format!("{line} --connections=3"))] {
        let ended = server.ours(database, line);
        assert_eq!(ended.code, 0, "{ended:?}");
    }
    assert_eq!(all("one"), all("several"));

    for (database, generate, connections) in
        [("cut", "g", "--connections=2"), ("cut_on_server", "G", "")]
    {
        // As a crash leaves it: some pieces, some keys.
        let begun = format!("-i -q -s 5 -I dt{generate} {connections}");
        assert_eq!(server.ours(database, &begun).code, 0);
        server.execute(database, "delete from pgbench_accounts where bid in (2, 5)");
        server.execute(database, "alter table pgbench_tellers add primary key (tid)");
        server.execute(
            database,
            "create table kept as select ctid as place from pgbench_accounts where bid = 3",
        );
        let wrong = server.ours(database, &format!("-i -q -s 6 -I dt{generate} --resume"));
        assert_eq!(wrong.code, 1, "{wrong:?}");
        let why = "cannot resume: the tables were begun at scale 5, not 6";
        assert!(wrong.err.contains(why), "{wrong:?}");
        for connections in [connections, ""] {
            let line = format!("{line} -I dt{generate}vp --resume {connections}");
            let ended = server.ours(database, &line);
            assert_eq!(ended.code, 0, "{ended:?}");
            assert_eq!(all("one"), all(database), "{line}");
        }
        let moved = "select count(*) from kept left join pgbench_accounts a on a.ctid = kept.place
                     and a.bid = 3 where a.aid is null";
        assert_eq!(server.value(database, moved), "0", "what was there is kept");
    }
    let empty = server.ours("postgres", "-i -q -s 2 --resume");
    assert_eq!(empty.code, 0, "nothing to go on with is the beginning: {empty:?}");
}

/// Each connection loads a partition with FREEZE, and builds its key; what is there already is kept.
#[test]
fn several_connections_load_partition_by_partition() {
    let server = Server::start(&[]);
    let check = |partitions: &str, steps: &str, frozen: bool| {
        for database in ["plain", "apart"] {
            server.create_database(database);
        }
        let line = format!("-i -q -s 3 {partitions} {steps}");
        let plain = server.ours("plain", &line);
        assert_eq!(plain.code, 0, "{line}: {plain:?}");
        let all = |database: &str| -> Vec<String> {
            let contents = contents("pgbench_accounts");
            let indexes = "select conname, indisprimary, indisvalid, conislocal, coninhcount
                           from pg_index join pg_constraint on conindid = indexrelid
                           where conname ~ '^pgbench' order by 1";
            let sqls = [DEFINITIONS, CONSTRAINTS, indexes, &contents];
            sqls.iter().flat_map(|sql| server.rows(database, sql)).collect()
        };
        // Steps one by one, so that the rows are read before a vacuum freezes them.
        for step in steps.trim_start_matches("-I ").chars() {
            let line = format!("-i -q -s 3 {partitions} -I {step} --connections=2");
            let ended = server.ours("apart", &line);
            assert_eq!(ended.code, 0, "{line}: {ended:?}");
            if step == 'g' {
                let visible = "select bool_and(relallvisible > 0.9 * relpages and relpages > 0)
                               from pg_class where relkind = 'r' and relispartition";
                server.execute("apart", "analyze pgbench_accounts");
                let expected = if frozen { "t" } else { "f" };
                assert_eq!(server.value("apart", visible), expected, "{line}");
            }
        }
        assert_eq!(all("plain"), all("apart"), "{line}");

        // As a crash leaves it: one partition and one key are missing.
        server
            .execute("apart", "alter table pgbench_accounts drop constraint pgbench_accounts_pkey");
        server.execute("apart", "alter table pgbench_accounts_1 add primary key (aid)");
        server.execute("apart", "delete from pgbench_accounts_2");
        let kept = "select pg_relation_filenode('pgbench_accounts_1')";
        let before = server.value("apart", kept);
        let line = format!("-i -q -s 3 {partitions} -I dtgp --resume --connections=2");
        let ended = server.ours("apart", &line);
        assert_eq!(ended.code, 0, "{line}: {ended:?}");
        assert_eq!(server.value("apart", kept), before, "{line}");
        if frozen {
            assert_eq!(all("plain"), all("apart"), "{line}");
        }
        for database in ["plain", "apart"] {
            server.execute("postgres", &format!("drop database {database}"));
        }
    };
    check("--partitions=2", "-I dtgp", true);
    check("--partitions=7", "-I dtgp", true);
    check("--partitions=3 --partition-method=hash", "-I dtgp", false);

    // With foreign keys, a partition cannot be emptied by itself.
    assert_eq!(server.ours("postgres", "-i -q --partitions=2 --foreign-keys").code, 0);
    let again = server.ours("postgres", "-i -q -I g --partitions=2 --connections=2");
    assert_eq!(again.code, 0, "{again:?}");
    assert_eq!(server.value("postgres", "select count(*) from pgbench_accounts"), "100000");
}

/// No rows can be there before the last table and the last partition are.
#[test]
fn resume_creates_the_tables_again_unless_all_are_there() {
    let server = Server::start(&[]);
    let check = |begun: &str, options: &str, expected: &str| {
        server.create_database("shop");
        server.execute("shop", begun);
        let ended = server.ours("shop", &format!("-i -q {options} --resume"));
        assert_eq!(ended.code, 0, "{begun}: {ended:?}");
        let found = "select count(*), count(distinct tableoid) from pgbench_accounts";
        assert_eq!(server.rows("shop", found), [expected], "{begun}");
        server.execute("postgres", "drop database shop");
    };
    check("create table pgbench_accounts (aid int)", "", "100000|1");
    let tables = "create table pgbench_history (aid int); create table pgbench_tellers (tid int);
                  create table pgbench_accounts (aid int) partition by range (aid);
                  create table pgbench_accounts_1 partition of pgbench_accounts default;
                  create table pgbench_branches (bid int);";
    check(tables, "--partitions=2", "100000|2");

    // Rows are kept, and other partitions are refused.
    assert_eq!(server.ours("postgres", "-i -q --partitions=2").code, 0);
    assert_eq!(server.ours("postgres", "-i -q --resume").code, 0);
    let other = server.ours("postgres", "-i -q --partitions=3 --resume");
    assert_eq!(other.code, 1, "{other:?}");
    let why = "cannot resume: pgbench_accounts was begun with 2 partitions, not 3";
    assert!(other.err.contains(why), "{other:?}");
    let parts = "select count(*) from pg_inherits where inhparent = 'pgbench_accounts'::regclass";
    assert_eq!(server.value("postgres", parts), "2");
}

#[test]
fn loaded_rows_are_frozen() {
    let server = Server::start(&[]);
    for partitions in ["", "--partitions=2"] {
        assert_eq!(server.ours("postgres", &format!("-i -I dtg -q {partitions}")).code, 0);
        // From 16 on the table may end in pages that were added ahead of need.
        let sql = "select bool_and(relallvisible > 0.9 * relpages and relpages > 0) from pg_class
                   where relname ~ '^pgbench_accounts' and relkind = 'r'";
        server.execute("postgres", "analyze pgbench_accounts");
        assert_eq!(server.value("postgres", sql), "t", "{partitions}");
    }
}

#[test]
fn a_step_that_fails_says_which_and_why() {
    let server = Server::start(&[]);
    for line in ["-i -I g", "-i -I v", "-i -I p", "-i -I t --tablespace=nowhere", "-i -I G"] {
        let (ours, theirs) = (server.ours("postgres", line), server.theirs("postgres", line));
        assert_eq!((ours.code, theirs.code), (1, 1), "{line}");
        let first = |text: &str| text.lines().take(3).collect::<Vec<_>>().join("\n");
        assert_eq!(first(&ours.err), first(&theirs.err), "{line}");
    }
}

#[test]
fn an_interruption_cancels_the_statements_under_way() {
    let server = Server::start(&[]);
    for (line, copies) in
        [("-i -s 200 -q", "1"), ("-i -s 200 -q --partitions=2 --connections=2", "2")]
    {
        let control = load::LoadControl::new();
        let arguments: Vec<String> = line.split(' ').map(str::to_owned).collect();
        let environment = server.environment("postgres");
        let ended = std::thread::scope(|scope| {
            let run = scope.spawn(|| crate::common::ours_until(&environment, &arguments, &control));
            let copying = "select count(*) from pg_stat_progress_copy";
            while server.value("postgres", copying) != copies {
                std::thread::sleep(std::time::Duration::from_millis(5));
            }
            control.interrupt();
            run.join().expect("no panic")
        });
        assert_eq!(ended.code, 1, "{line}: {ended:?}");
        // A server that is too busy to act on the request within seconds is left.
        let reasons = ["canceling statement due to user request", "interrupted"];
        assert!(reasons.iter().any(|why| ended.err.contains(why)), "{line}: {ended:?}");
    }
}

/// No disk has room for this. The old tables are not dropped for it.
#[test]
fn a_scale_that_does_not_fit_is_refused_before_anything_is_done() {
    // A scale that is not refused must not fill this machine's disk.
    let server = Server::start(&[("statement_timeout", "5s")]);
    server.execute("postgres", "create table pgbench_history (kept int)");
    for line in ["-i -s 2000000000", "-i -I dtG -s 1000000000", "-i -q -s 1000000000 -F 50"] {
        let ended = server.ours("postgres", line);
        assert_eq!(ended.code, 1, "{line}: {ended:?}");
        for words in [
            "pgbench: error: could not initialize at scale ",
            ": the tables take ",
            ", and the disk of the data directory \"",
            " for them\npgrig: hint: make room there, or use a smaller scale (-s)\n",
        ] {
            assert!(ended.err.contains(words), "{line}: no {words:?} in {}", ended.err);
        }
        assert!(!ended.err.contains("dropping"), "{line}: {}", ended.err);
    }
    let kept = "select attname from pg_attribute where attrelid = 'pgbench_history'::regclass \
                and attnum > 0";
    assert_eq!(server.rows("postgres", kept), ["kept"]);
    // What is not filled, and what cannot be known, is not refused.
    let ended = server.ours("postgres", "-i -I dtp -s 1000000");
    assert_eq!(ended.code, 0, "{ended:?}");
    server.execute(
        "postgres",
        "create role weak login; grant all on schema public to weak; \
        drop table pgbench_accounts, pgbench_branches, pgbench_history, pgbench_tellers",
    );
    let ended = server.ours("postgres", "-i -s 1 -U weak");
    assert_eq!(ended.code, 0, "{ended:?}");
}
