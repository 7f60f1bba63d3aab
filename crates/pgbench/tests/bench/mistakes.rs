//! What bad input gets: one clear message, pgbench's phrase in it, and what to do next.

use std::fs;
use std::io::{Read as _, Write as _};
use std::net::TcpListener;

use crate::common::{Ended, Server, ours};
use lab::Listen;
use load::LoadControl;

fn environment(pairs: &[(&str, &str)]) -> Vec<(String, String)> {
    pairs.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
}

fn assert_says(ended: &Ended, code: i32, phrases: &[&str]) {
    assert_eq!(ended.code, code, "{ended:?}");
    for phrase in phrases {
        assert!(ended.err.contains(phrase), "no {phrase:?} in {ended:?}");
    }
}

#[test]
fn an_unreachable_server() {
    let socket = environment(&[("PGHOST", "/nowhere"), ("PGPORT", "5433"), ("PGUSER", "me")]);
    let missing = "connection to server on socket \"/nowhere/.s.PGSQL.5433\" failed: No such file \
                   or directory\n\tIs the server running locally and accepting connections on that \
                   socket?";
    assert_says(&ours(&socket, "-S"), 1, &[missing, "could not create connection for setup"]);
    assert_says(
        &ours(&socket, "-i"),
        1,
        &[missing, "could not create connection for initialization"],
    );
    let refused = environment(&[("PGHOST", "127.0.0.1"), ("PGPORT", "1"), ("PGUSER", "me")]);
    assert_says(
        &ours(&refused, "-S"),
        1,
        &["connection to server at \"127.0.0.1\", port 1 failed: Connection refused\n\tIs the \
             server running on that host and accepting TCP/IP connections?"],
    );
    let both =
        environment(&[("PGHOST", "127.0.0.1,127.0.0.1"), ("PGPORT", "1,1"), ("PGUSER", "me")]);
    let told = ours(&both, "-S").err;
    assert_eq!(told.matches("Connection refused").count(), 2, "every attempt is told: {told}");
    let unknown = environment(&[("PGHOST", "no-such-host.invalid"), ("PGUSER", "me")]);
    assert_says(
        &ours(&unknown, "-S"),
        1,
        &["could not translate host name \"no-such-host.invalid\" to address: "],
    );
}

#[test]
fn a_wrong_password_or_none() {
    let server = Server::start_on(&[], Listen::Loopback);
    let good = server.environment("postgres");
    assert_eq!(ours(&good, "-i -q").code, 0);
    assert_eq!(ours(&good, "-S -n -c 3").code, 0);
    let with = |password: Option<&str>| {
        let mut environment = good.clone();
        environment.retain(|(name, _)| name != "PGPASSWORD");
        environment.extend(password.map(|text| ("PGPASSWORD".to_owned(), text.to_owned())));
        environment
    };
    assert_says(
        &ours(&with(Some("wrong")), "-S"),
        1,
        &["FATAL:  password authentication failed for user", "pgrig: hint: give the password"],
    );
    assert_says(&ours(&with(None), "-S"), 1, &["fe_sendauth: no password supplied"]);
}

#[test]
fn what_the_server_lacks() {
    let server = Server::start(&[("max_connections", "10")]);
    assert_says(
        &server.ours("nodb", "-S"),
        1,
        &[
            "FATAL:  database \"nodb\" does not exist",
            "pgrig: hint: create that database (createdb)",
        ],
    );
    assert_says(
        &server.ours("postgres", "-S"),
        1,
        &[
            "could not count number of branches: ERROR:  relation \"pgbench_branches\" does not \
             exist\nLINE 1: select count(*) from pgbench_branches\n                             ^",
            "Perhaps you need to do initialization (\"pgbench -i\") in database \"postgres\".",
        ],
    );
    let unbound = server.ours("channel_binding=require", "-S");
    let words = "channel binding required, but server authenticated client without channel binding";
    assert_says(&unbound, 1, &[words]);
    assert_eq!(server.ours("postgres", "-i -q").code, 0);
    let full = server.ours("postgres", "-S -n -c 20");
    assert_says(
        &full,
        1,
        &[
            "too many clients already",
            "could not create connection for client",
            "of 20 clients were \
           connected",
            "max_connections",
        ],
    );
    assert_eq!(full.out.lines().count(), 1, "no block without a run: {full:?}");
}

#[test]
fn scripts_that_fail() {
    let server = Server::start(&[]);
    let folder = tempfile::tempdir().expect("a directory");
    let script = |name: &str, text: &str| {
        let path = folder.path().join(name).display().to_string();
        fs::write(&path, text).expect("written");
        path
    };
    let misspelt = script("misspelt.sql", "\\set a randon(1, 5)\nselect :a;\n");
    assert_says(
        &server.ours("postgres", &format!("-n -f {misspelt}")),
        1,
        &[
            "misspelt.sql:1: unexpected function name (randon) in command \"set\"",
            "error found here",
            "did you mean \"random\"?",
        ],
    );
    let failing = script("failing.sql", "select 1;\nselect 1/0;\n");
    let (ours, theirs) = (
        server.ours("postgres", &format!("-n -f {failing}")),
        server.theirs("postgres", &format!("-n -f {failing}")),
    );
    assert_eq!(ours.code, theirs.code);
    assert_eq!(ours.err, theirs.err);
    assert_says(&ours, 2, &["ERROR:  division by zero", "Run was aborted; the above results are"]);
    let place = format!("pgrig: errors             22012 × 1 (first at {failing}:2)\n");
    assert!(ours.out.contains(&place), "{}", ours.out);
    let goes_on = server
        .ours("postgres", &format!("-n -f {failing} -t 7 --continue-on-error --failures-detailed"));
    assert_says(&goes_on, 0, &[]);
    for line in [
        "number of transactions actually processed: 0/7",
        "number of failed transactions: 7 (100.000%)",
        "number of other failures: 7 (100.000%)",
        "pgrig: errors             22012 × 7",
    ] {
        assert!(goes_on.out.contains(line), "no {line:?} in {goes_on:?}");
    }
}

/// Each kind of error has its own count and its own first place; what `\expect` says is checked in every
/// protocol.
#[test]
fn errors_are_told_by_kind() {
    let server = Server::start(&[]);
    server.execute("postgres", "create table u as select 1 as x");
    let folder = tempfile::tempdir().expect("a directory");
    let path = folder.path().join("a.sql").display().to_string();
    let check = |text: &str, options: &str, code: i32, out: &str, err: &str| {
        fs::write(&path, text).expect("written");
        let ended = server.ours("postgres", &format!("-n -f {path} -t 2 {options}"));
        let (out, err) = (out.replace("FILE", &path), err.replace("FILE", &path));
        assert_eq!(ended.code, code, "{text}: {ended:?}");
        assert!(ended.out.contains(&out), "{text}: no {out:?} in {ended:?}");
        assert!(ended.err.contains(&err), "{text}: no {err:?} in {ended:?}");
        assert_eq!(ended.out.contains("pgrig: errors"), !out.is_empty(), "{text}: {ended:?}");
    };
    for protocol in ["simple", "extended", "prepared"] {
        let options = format!("-M {protocol}");
        let good = "select 1 \\expect rows 1\nselect 2 as x \\gset\n\\expect :x = 2 and true\n\
                    update u set x = 1 \\expect rows 1\nselect :x \\expect value 2\n";
        check(good, &options, 0, "", "");
        check(
            "select 1;\nselect generate_series(1, 3) \\expect rows 1..2\n",
            &options,
            2,
            "pgrig: errors             \\expect × 2 (first at FILE:2)\n",
            "FILE:2: client 0: expected 1 to 2 rows, got 3\n\
             pgbench: error: 2 results were not as \\expect says, the first at FILE:2\n",
        );
    }
    check("update u set x = 1 \\expect rows 0\n", "", 2, "\\expect × 2", "expected 0 rows, got 1");
    check("select 'a' \\expect value b\n", "", 2, "\\expect × 2", "the value \"b\", got \"a\"");
    let told = "client 0: this is not true: \\expect :a < 5\n";
    check("\\set a 5\n\\expect :a < 5\nselect 1;\n", "", 2, "\\expect × 2 (first at FILE:2)", told);
    check("select 1 where false \\gset\n", "", 2, "\\gset × 1 (first at FILE:1)", "got 0");
    check("select 1;\n\\set a 1/0\n", "", 2, "\\set × 1 (first at FILE:2)", "division by zero");
    check("select 1;\n\\sleep :b\n", "", 2, "\\sleep × 1 (first at FILE:2)", "");
    let two = "\\if :client_id = 0\nselect 1/0;\n\\else\nselect 'x'::int;\n\\endif\n";
    let both = "22012 × 1 (first at FILE:2), 22P02 × 1 (first at FILE:4)\n";
    check(two, "-c 2", 2, both, "");
    let old = "pgrig: hint: SQL ends at a semicolon, not at the newline; for a script of pgbench 9.5 or \
               older: --syntax 9.x\n";
    check("\\setrandom a 1 5\nselect :a\nselect 2\n", "", 2, "42601 × 1 (first at FILE:2)", old);
    let refused = |text: &str, why: &str| {
        fs::write(&path, text).expect("written");
        let ended = ours(&[], &format!("-n -f {path}"));
        assert_says(&ended, 1, &[why]);
    };
    refused("\\timing\nselect 1;\n", "pgrig: hint: \\timing is a command of psql");
    refused("\u{feff}select 1;\n", "a.sql:1: script begins with a byte order mark");
    refused("select 1 \\expect rows x\n", "expecting a number of rows");
    refused("\\expect rows 1\n", "must follow an SQL command");
}

#[test]
fn a_server_that_dies_in_mid_run() {
    let mut server = Server::start(&[]);
    assert_eq!(server.ours("postgres", "-i -q").code, 0);
    let environment = server.environment("postgres");
    let arguments = ["-S", "-n", "-c", "4", "-T", "30"].map(str::to_owned);
    let began = std::time::Instant::now();
    let ended = std::thread::scope(|scope| {
        let run = scope
            .spawn(|| crate::common::ours_until(&environment, &arguments, &LoadControl::new()));
        // A session is listed before its client hears that it is connected.
        let there = "select count(*) >= 4 from pg_stat_activity
            where application_name = 'pgbench' and query ilike 'select abalance%'";
        let soon = std::time::Duration::from_secs(20);
        server.node.poll_query_until(there, "t", soon).expect("clients connect");
        server.node.kill9().expect("killed");
        run.join().expect("no panic")
    });
    assert!(began.elapsed().as_secs() < 25, "it does not wait for its end");
    assert_says(&ended, 2, &["Run was aborted"]);
    // A backend that outlives its postmaster for a moment says so itself.
    let told = ["perhaps the backend died while processing", "unexpected postmaster exit"];
    assert!(told.iter().any(|why| ended.err.contains(why)), "{ended:?}");
    assert!(ended.out.contains("number of transactions actually processed: "), "{ended:?}");
}

#[test]
fn what_is_no_server() {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let port = listener.local_addr().expect("an address").port().to_string();
    let place = [("PGHOST", "127.0.0.1"), ("PGPORT", port.as_str()), ("PGUSER", "me")];

    // Nobody accepts, nobody answers.
    let patient = environment(&[&place[..], &[("PGCONNECT_TIMEOUT", "2")][..]].concat());
    assert_says(&crate::common::ours(&patient, "-n -t 1"), 1, &[" failed: timeout expired"]);
    let control = LoadControl::new();
    control.interrupt();
    let ended = crate::common::ours_until(&environment(&place), &["-n".to_owned()], &control);
    assert_says(&ended, 1, &[" failed: interrupted"]);

    std::thread::spawn(move || {
        // Until the program ends; those above wait in the queue.
        for mut stream in listener.incoming().flatten() {
            // What is left unread would reset the connection.
            let _ = stream.read(&mut [0; 1024]);
            let _ = stream.write_all(b"HTTP/1.1 400 Bad Request\r\n\r\n");
        }
    });
    let ended = crate::common::ours(&environment(&place), "-n -t 1");
    assert_says(&ended, 1, &[" failed: ", "does not speak PostgreSQL's protocol"]);
}

#[test]
fn files_that_cannot_be_written() {
    let server = Server::start(&[]);
    for option in ["--json", "--hdr"] {
        assert_says(
            &server.ours("postgres", &format!("-n -i -I d {option}=/nowhere/x")),
            1,
            &["cannot be used in initialization"],
        );
        let script = tempfile::NamedTempFile::new().expect("a file");
        fs::write(script.path(), "select 1;").expect("written");
        let line = format!("-n -f {} {option}=/nowhere/x", script.path().display());
        assert_says(
            &server.ours("postgres", &line),
            1,
            &["could not create file \"/nowhere/x\": No such file or directory"],
        );
        let line = format!("-n -f {} {option}=/dev/full", script.path().display());
        assert_says(
            &server.ours("postgres", &line),
            1,
            &["could not write file \"/dev/full\": No space left on device"],
        );
    }
}

/// pgbench empties pgbench_history before a run; a run that cannot begin must not.
#[test]
fn a_run_that_cannot_begin_leaves_the_history_alone() {
    let server = Server::start(&[]);
    assert_eq!(server.ours("postgres", "-i -q").code, 0);
    server.execute("postgres", "insert into pgbench_history (tid) values (1)");
    let folder = tempfile::tempdir().expect("a folder");
    let twice = format!("--json={0}/x --influx={0}/x", folder.path().display());
    for (options, why) in [
        ("--json=/nowhere/x", "could not create file \"/nowhere/x\""),
        ("--metrics=/nowhere/x", "could not write file \"/nowhere/x\""),
        ("--metrics=127.0.0.1", "invalid address for --metrics: \"127.0.0.1\""),
        ("--metrics=192.0.2.1:9", "give an address of this machine"),
        ("--hosts=/nowhere/x", "/nowhere/x"),
        (&*twice, "--json and --influx name the same file"),
    ] {
        let ended = server.ours("postgres", &format!("-S -t 1 {options}"));
        assert_says(&ended, 1, &[why]);
        let rows = server.value("postgres", "select count(*) from pgbench_history");
        assert_eq!(rows, "1", "{options}");
    }
    assert_eq!(server.ours("postgres", "-S -t 1").code, 0);
    assert_eq!(server.value("postgres", "select count(*) from pgbench_history"), "0");
}

#[test]
fn a_log_on_a_full_disk() {
    let server = Server::start(&[]);
    let script = tempfile::NamedTempFile::new().expect("a file");
    fs::write(script.path(), "select 1;").expect("written");
    let folder = tempfile::tempdir().expect("a folder");
    let log = folder.path().join(format!("log.{}", std::process::id()));
    std::os::unix::fs::symlink("/dev/full", &log).expect("a link");
    let prefix = folder.path().join("log");
    let (script, prefix) = (script.path().display(), prefix.display());
    let line = format!("-n -t 10 -f {script} -l --log-prefix={prefix}");
    let why = format!(
        "could not write to the transaction log \"{}\": No space left on device\n",
        log.display()
    );
    assert_says(&server.ours("postgres", &line), 2, &[&why, "the transaction log is incomplete"]);
}

#[test]
fn an_interruption_reports_what_there_is() {
    let server = Server::start(&[]);
    assert_eq!(server.ours("postgres", "-i -q").code, 0);
    let environment = server.environment("postgres");
    let arguments = ["-S", "-n", "-c", "2", "-T", "60"].map(str::to_owned);
    let control = LoadControl::new();
    let ended = std::thread::scope(|scope| {
        let run = scope.spawn(|| crate::common::ours_until(&environment, &arguments, &control));
        std::thread::sleep(std::time::Duration::from_millis(1500));
        control.interrupt();
        run.join().expect("no panic")
    });
    assert_says(&ended, 130, &["pgrig: interrupted"]);
    assert!(
        ended.out.contains("\ntps = ") && ended.out.contains("\npgrig: percentiles ms "),
        "{ended:?}"
    );
}
