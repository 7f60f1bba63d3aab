//! Files of data, loaded into one server by its own psql and pg_restore.

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Command;
use std::time::Instant;

use import::{BuildCache, BuildKey, Error, ImportSource, ScriptVariables};
use lab::{Endpoint, Lab, Node, StopMode};
use tempfile::TempDir;

fn server() -> (Node, Lab) {
    testing::servers::server(&[("fsync", "off"), ("shared_buffers", "16MB")])
}

/// A directory into which the servers' user may look.
fn open_directory() -> TempDir {
    let permissions = Permissions::from_mode(0o755);
    tempfile::Builder::new().permissions(permissions).tempdir_in("/var/tmp").expect("a directory")
}

const SCRIPT: &str = "\
\\if :{?rows}
\\else
  \\set rows 7
\\endif
CREATE TABLE copied (id int PRIMARY KEY, name text);
COPY copied FROM stdin;
1\tAnn
2\tBob; 'x'
\\.
CREATE TABLE made AS SELECT i, random() AS x FROM generate_series(1, :rows) i;
CREATE INDEX CONCURRENTLY ON made (i);
VACUUM (ANALYZE) made;
";

fn load(node: &Node, source: &ImportSource, values: ScriptVariables<'_>) -> Result<(), Error> {
    source.fits(node.installation())?;
    source.load(node, values, &|| false)
}

fn count(node: &Node, table: &str) -> String {
    let text = node.value(&format!("SELECT count(*) FROM {table}")).expect("rows");
    text.expect("a count")
}

#[test]
fn scripts_and_dumps_are_loaded_kept_and_taken_again() {
    let (mut node, _lab) = server();
    // Where this is root's, the servers' user may not read it.
    let desk = tempfile::tempdir().expect("a directory");
    let at = |name: &str| desk.path().join(name);
    fs::write(at("script.sql"), SCRIPT).expect("a file");
    let look = |name: &str| ImportSource::look(&at(name)).expect("it can be read");

    let seeded = ScriptVariables { seed: Some(0.5), ..ScriptVariables::default() };
    load(&node, &look("script.sql"), seeded).expect("loaded");
    assert_eq!([count(&node, "copied"), count(&node, "made")], ["2", "7"]);
    let sum = |node: &Node| node.value("SELECT sum(x)::text FROM made").expect("a sum");
    let first = sum(&node);
    node.value("DROP TABLE copied, made").expect("dropped");
    load(&node, &look("script.sql"), seeded).expect("loaded");
    assert_eq!(sum(&node), first, "random() is seeded");
    node.value("DROP TABLE copied, made").expect("dropped");
    let variables = [("rows".to_owned(), "9".to_owned())];
    let text = ImportSource::text("study.sql", SCRIPT).expect("a script");
    load(&node, &text, ScriptVariables { variables: &variables, seed: None }).expect("loaded");
    assert_eq!(count(&node, "made"), "9");

    // The formats of pg_dump, one of them through a pipe where its user may not open the file.
    let dumps = open_directory();
    let formats = [("custom", "custom.dump"), ("tar", "tar.dump"), ("directory", "directory")];
    for (format, name) in formats {
        let path = dumps.path().join(name);
        let file = path.display().to_string();
        let arguments = ["--format", format, "--file", &file];
        let (code, _, stderr) = node.run_client("pg_dump", &arguments, &[]).expect("pg_dump runs");
        assert_eq!(code, Some(0), "{stderr}");
        if format == "directory" {
            fs::set_permissions(&path, Permissions::from_mode(0o755)).expect("it is ours");
            for entry in fs::read_dir(&path).expect("a directory").flatten() {
                fs::set_permissions(entry.path(), Permissions::from_mode(0o644)).expect("ours");
            }
        }
        node.value("DROP TABLE copied, made").expect("dropped");
        let source = ImportSource::look(&path).expect("a dump");
        load(&node, &source, ScriptVariables::default())
            .unwrap_or_else(|error| panic!("{name}: {error}"));
        assert_eq!([count(&node, "copied"), count(&node, "made")], ["2", "9"], "{name}");
    }

    // It stops at the first error, and says where that is.
    let check = |script: &str, expected: &[&str]| {
        fs::write(at("bad.sql"), script).expect("a file");
        let error = load(&node, &look("bad.sql"), ScriptVariables::default()).expect_err(script);
        let said = format!("{error} {}", error.hint().unwrap_or_default());
        for part in expected {
            assert!(said.contains(part), "{script}: {said}");
        }
        let after = node.value("SELECT 1 FROM pg_class WHERE relname = 'after'").expect("asked");
        assert_eq!(after, None, "{script}");
    };
    check("SELECT 1;\n\nSELEC 2;\nCREATE TABLE after ();", &["bad.sql:3: ERROR:", "first error"]);
    check("ALTER TABLE copied OWNER TO app;", &["bad.sql:1:", "role \"app\"", "--no-owner"]);
    check("SET no_such = 1;", &["bad.sql:1:", "no_such", "of the older side"]);
    check("\\i missing.sql\nCREATE TABLE after ();", &["missing.sql: No such file"]);
    check("CREATE EXTENSION no_such;", &["no_such is not installed"]);
    check("-- Dumped from database version 99.1\nSELECT 1;", &["PostgreSQL 99.1", "as new"]);

    // A load that is interrupted ends.
    fs::write(at("long.sql"), "SELECT pg_sleep(60);").expect("a file");
    let began = Instant::now();
    let is_late = || began.elapsed().as_millis() > 300;
    let ended = look("long.sql").load(&node, ScriptVariables::default(), &is_late);
    assert!(matches!(ended, Err(Error::Interrupted)) && began.elapsed().as_secs() < 10);

    // Kept data are those of their key, and of no other.
    let kept = open_directory();
    let cache = BuildCache::at(kept.path().join("data"));
    assert_eq!(cache.password().expect("a password"), cache.password().expect("the same"));
    let key = |more: &str| {
        let mut key = BuildKey::new(node.installation());
        key.add_source(&look("script.sql")).expect("a file");
        key.add(more);
        key
    };
    let (own, other) = (key("1"), key("2"));
    node.stop(StopMode::Fast).expect("stopped");
    cache.keep(&own, &node).expect("kept");
    cache.keep(&own, &node).expect("kept already");
    assert!(!cache.take(&other, &mut node).expect("none"));
    node.init().expect("an empty server");
    assert!(cache.take(&own, &mut node).expect("taken"));
    node.start().expect("started");
    assert_eq!(count(&node, "made"), "9");
    let removed = cache.clean().expect("removed");
    assert!(removed.count == 1 && removed.bytes > 1 << 20, "{removed:?}");
    assert!(fs::read_dir(cache.directory()).expect("a directory").next().is_none());
}

#[test]
fn what_is_no_data_is_refused_when_it_is_looked_at() {
    let desk = tempfile::tempdir().expect("a directory");
    let check = |content: &[u8], why: &str| {
        let path = desk.path().join("file");
        fs::write(&path, content).expect("a file");
        let error = ImportSource::look(&path).expect_err(why);
        assert!(error.to_string().contains(why) && error.hint().is_some(), "{error}");
    };
    check(b"", "it is empty");
    check(b" \n", "it is empty");
    check(b"\x1f\x8b\x08x", "compressed with gzip");
    check(b"\x7fELF\0\0", "neither a script nor a dump");
    check(b"--\n-- PostgreSQL database cluster dump\n--\n", "a dump of all databases");
    check(b"\\connect shop\nSELECT 1;\n", "connects to another database");
    assert!(matches!(ImportSource::look(Path::new("/nowhere/x")), Err(Error::Read { .. })));
    let error = ImportSource::look(desk.path()).expect_err("a directory");
    assert!(error.to_string().contains("without toc.dat"), "{error}");
}

/// A dump made with `--create` is loaded into the database that is there, with the settings of its own; each format says
/// the locale that it had.
#[test]
fn dumps_of_a_database_bring_its_locale_and_its_settings() {
    let (node, _lab) = server();
    let make = [
        "CREATE DATABASE \"my \"\"shop\" TEMPLATE template0 LOCALE 'C.UTF-8'",
        "COMMENT ON DATABASE \"my \"\"shop\" IS 'of mine'",
        "ALTER DATABASE \"my \"\"shop\" SET work_mem = '7MB'",
        "REVOKE ALL ON DATABASE \"my \"\"shop\" FROM PUBLIC",
    ];
    let mut client = node.connect().expect("a connection");
    make.iter().for_each(|one| client.batch_execute(one).expect(one));
    let mut shop = node.connect_to("my \"shop").expect("a connection");
    shop.batch_execute("CREATE TABLE t AS SELECT generate_series(1, 5) AS i").expect("a table");
    let desk = open_directory();
    for (name, format) in [("plain.sql", "plain"), ("one.dump", "custom"), ("many", "directory")] {
        let file = desk.path().join(name);
        let shop = Endpoint { database: "my \"shop".to_owned(), ..node.endpoint() }.to_string();
        let format = format!("--format={format}");
        let mut dump = Command::new(node.installation().program("pg_dump"));
        dump.args(["--create", &format, "--dbname", &shop, "--file"]).arg(&file);
        assert!(dump.status().expect("pg_dump").success());
        let readable = Command::new("chmod").args(["-R", "a+rX"]).arg(&file).status();
        assert!(readable.expect("chmod").success());

        let (fresh, _other) = server();
        let source = ImportSource::look(&file).expect(name);
        let locale = source.database_locale(fresh.installation()).expect(name).expect(name);
        assert_eq!(
            (locale.words().as_str(), locale.encoding.as_deref()),
            ("C.UTF-8 (libc)", Some("UTF8"))
        );
        load(&fresh, &source, ScriptVariables::default()).expect(name);
        assert_eq!(count(&fresh, "t"), "5", "{name}");
        let seen =
            fresh.connect_to("postgres").expect("a connection").query_one("SHOW work_mem", &[]);
        assert_eq!(seen.expect("a row").get::<_, String>(0), "7MB", "{name}");
    }
}
