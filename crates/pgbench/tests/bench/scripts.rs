//! What scripts do when they run, beside the real pgbench: every line of output, every message.
//!
//! Which pgbench that is, is the machine's matter: `$PGRIG_PGBENCH`, else the server's own.
//! `scripts/versions` runs this with each major.

use std::fs;

use crate::common::{Ended, Server};

/// What is compared: the code, the lines of the result, the messages.
type Told = (i32, Vec<String>, Vec<String>);

fn told(ended: &Ended) -> Told {
    let mut messages: Vec<String> = Vec::new();
    for line in ended.err.lines().filter(|line| !line.starts_with("pgrig: ")) {
        // How often a program looks before an answer is complete is a matter of time.
        let is_receiving = line.ends_with(" receiving");
        if !(is_receiving && messages.last().is_some_and(|last| last == line)) {
            messages.push(line.to_owned());
        }
    }
    let lines = ended.out.lines().skip(1).filter(|line| !line.starts_with("pgrig: "));
    (ended.code, lines.map(without_times).collect(), messages)
}

/// Times differ from run to run.
fn without_times(line: &str) -> String {
    let timed = ["latency ", "initial connection ", "average connection ", "tps = "];
    match line.split_once("= ") {
        Some((name, rest)) if timed.iter().any(|prefix| line.starts_with(prefix)) => {
            let unit = rest.split_once(' ').map_or("", |(_, unit)| unit);
            format!("{name}= N {unit}")
        }
        _ => match line.trim_start().split_once(' ') {
            // `         0.123           0 SELECT 1;`
            Some((number, rest)) if line.starts_with("     ") && number.contains('.') => {
                rest.to_owned()
            }
            _ => line.to_owned(),
        },
    }
}

struct Beside {
    server: Server,
    folder: tempfile::TempDir,
}

impl Beside {
    fn start() -> Beside {
        Beside { server: Server::start(&[]), folder: tempfile::tempdir().expect("a folder") }
    }

    /// Runs `script` with both programs; the same must come of it.
    fn check(&self, script: &str, options: &str) {
        let (ours, theirs) = self.run(script, options);
        assert_eq!(ours, theirs, "ours is left: {script:?} with {options}");
    }

    /// The same, without the results.
    fn check_messages(&self, script: &str, options: &str) {
        let (ours, theirs) = self.run(script, options);
        assert_eq!(
            (ours.0, ours.2),
            (theirs.0, theirs.2),
            "ours is left: {script:?} with {options}"
        );
    }

    fn run(&self, script: &str, options: &str) -> (Told, Told) {
        let path = self.folder.path().join("script.sql");
        fs::write(&path, script).expect("a script");
        let line = format!("-n -f {} {options}", path.display());
        let theirs = self.server.theirs("postgres", &line);
        let ours = self.server.ours_alike("postgres", &line);
        (told(&ours), told(&theirs))
    }
}

const FAILS: &str = "do $$begin raise serialization_failure; end$$;\n";

#[test]
fn what_scripts_do_is_told_in_the_same_words() {
    let beside = Beside::start();
    let scripts = [
        // Shell commands.
        "\\shell echo hello\nselect 1;\n",
        "\\shell false\nselect 1;\n",
        "\\shell echo :nosuch\nselect 1;\n",
        "\\setshell x echo 7\nselect :x;\n",
        "\\setshell x echo foo\nselect 1;\n",
        "\\setshell x true\nselect 1;\n",
        "\\setshell x echo\nselect :x;\n",
        "\\setshell x echo 99999999999999999999999\nselect :x;\n",
        "\\setshell x echo 5 apples\nselect :x;\n",
        "\\setshell 1x echo 5\nselect 1;\n",
        // Mistakes that are found when a command runs.
        "\\set 1x 1\nselect 1;\n",
        "\\SET 1x 1\nselect 1;\n",
        "\\set x 1/0\nselect 1;\n",
        "\\set x :nosuch\nselect 1;\n",
        "\\set x least(1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17)\nselect 1;\n",
        "\\set x greatest(1/0,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17)\nselect 1;\n",
        "\\set x least(1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16)\nselect :x;\n",
        "\\sleep :nosuch\nselect 1;\n",
        "\\sleep 1ms\n\\sleep 1 us\nselect 1;\n",
        "\\if true\nselect 1;\n\\else\nselect 2;\n\\endif\n",
        "\\if false\n\\set 1x 5\n\\elif true\nselect 2;\n\\else\nselect 3;\n\\endif\nselect 4;\n",
        // Statements that fail.
        "select * from nonexistent;\nselect 1;\n",
        "selec 1;\nselect 1/0;\n",
        "begin;\nselec 1;\nend;\n",
        "select\n\t1 + nosuch\nfrom t;\n",
        "do $$begin raise exception 'x' using detail = 'd', hint = 'h'; end$$;\n",
        "do $$begin perform nosuch(); end$$;\n",
        "do $$begin raise notice 'hi'; end$$;\n",
        "set standard_conforming_strings=off;\nselect 'a\\'b';\n",
        "select pg_terminate_backend(pg_backend_pid());\n",
        "copy pg_class to stdout;\n",
        "begin;\nselect 1;\n",
        "discard all;\nselect 1;\n",
        "set search_path = x;\nselect * from pgbench_accounts;\n",
        // Results that are kept.
        "select 1 as x \\gset p_\nselect :p_x;\n",
        "select 1 as x where false \\gset\n",
        "select 1 as \"?x\" \\gset\n",
        "select 1 as x \\; select 2 as y \\aset\nselect :x, :y;\n",
        "select 1 as x \\; begin \\; commit \\gset\nselect :x;\n",
        "select 1 as \"?x\" \\aset\n",
        "select 9223372036854775808 as x \\gset\n\\set y :x\n",
        // Pipelines.
        "\\startpipeline\nselect 1;\n",
        "\\startpipeline\nselect 1;\nselec 2;\nselect 3;\n\\endpipeline\n",
        "\\startpipeline\nselect 1 as x \\gset\n\\endpipeline\n",
        "\\endpipeline\n",
    ];
    for script in scripts {
        for options in ["-t 2", "-t 2 -M extended", "-t 2 -M prepared", "-t 2 -M prepared -C"] {
            beside.check(script, options);
        }
        beside.check(script, "-t 1 --failures-detailed -r --verbose-errors");
    }
}

/// pgbench takes the database from the environment by itself, and names itself behind it.
#[test]
fn a_database_may_be_a_connection_string() {
    let server = Server::start(&[]);
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("script.sql");
    let who = "current_database() || ' ' || current_setting('application_name')";
    fs::write(&path, format!("do $$begin raise notice '%', {who}; end$$;\n")).expect("a script");
    let line = format!("-n -t 1 -f {}", path.display());
    for (database, expected) in [
        ("template1", "template1 pgbench"),
        ("dbname=template1", "template1 pgbench"),
        ("postgresql:///template1?application_name=a", "template1 a"),
        ("dbname=template1 fallback_application_name=a", "template1 pgbench"),
    ] {
        let (ours, theirs) = (server.ours_alike(database, &line), server.theirs(database, &line));
        assert_eq!(told(&ours), told(&theirs), "{database}");
        assert_eq!(ours.err, format!("NOTICE:  {expected}\n"), "{database}");
    }
}

#[test]
fn debugging_tells_the_same() {
    let beside = Beside::start();
    let in_block = format!("begin;\n{FAILS}end;\n");
    let pipeline = "\\startpipeline\nselect 1;\nselect 2;\n\\endpipeline\n";
    for script in [
        "\\set x 1 + 1\n\\sleep 1ms\nselect :x, 'a';\n",
        "\\shell true :client_id\n\\setshell x echo 7\nselect :x;\n",
        "\\if false\nselect 1;\n\\elif true\nselect 2;\n\\else\nselect 3;\n\\endif\nselect 4;\n",
        "selec 1;\n",
        FAILS,
        &in_block,
        pipeline,
    ] {
        for protocol in ["simple", "extended", "prepared"] {
            // Up to 16 pgbench did not count the syncs.
            if script == pipeline && crate::common::theirs_major() < 17 {
                continue;
            }
            beside.check_messages(script, &format!("-t 1 --debug -M {protocol}"));
            let verbose = "-t 1 --debug --verbose-errors --max-tries=2";
            beside.check_messages(script, &format!("{verbose} -M {protocol}"));
        }
    }
}

/// pgbench 17 and later leave at once, and name the thread.
#[test]
fn the_first_abort_may_be_the_last() {
    let server = Server::start(&[]);
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("script.sql");
    fs::write(&path, "\\if :client_id = 3\nselect 1/0;\n\\endif\nselect pg_sleep(0.01);\n")
        .unwrap();
    let line = format!("-n -f {} -T 60 -c 4 -j 2 --exit-on-abort", path.display());
    let ours = server.ours("postgres", &line);
    assert_eq!(ours.code, 2);
    let expected = "pgbench: error: client 3 script 0 aborted in command 1 query 0: ERROR:  \
                    division by zero\npgbench: error: Run was aborted due to an error in thread 1\n";
    assert_eq!(ours.err, expected);
    assert_eq!(ours.out.lines().count(), 1, "{}", ours.out);
    if crate::common::theirs_major() >= 17 {
        let ours = server.ours_alike("postgres", &line);
        assert_eq!(told(&ours), told(&server.theirs("postgres", &line)));
    }
}

/// A table, and a statement that fails on it.
const UNIQUE: &str = "create table u (x int primary key); insert into u values (1)";
const INSERT: &str = "insert into u values (1);\n";

/// Three transactions that may fail, and what is said of them.
const GOES_ON: &str =
    "-t 3 --continue-on-error --failures-detailed -r --max-tries=2 --verbose-errors";

/// pgbench 19's `--continue-on-error`.
#[test]
fn other_errors_need_not_end_a_client() {
    let beside = Beside::start();
    beside.server.execute("postgres", UNIQUE);
    let ours = {
        let path = beside.folder.path().join("block.sql");
        fs::write(&path, format!("begin;\n{INSERT}end;\n")).unwrap();
        let line = format!("-n -f {} {GOES_ON}", path.display());
        let refused = beside.server.ours("postgres", &format!("{line} --as=18"));
        let unknown = "pgbench: unrecognized option '--continue-on-error'\n\
                       pgbench: hint: Try \"pgbench --help\" for more information.\n";
        assert_eq!((refused.code, refused.err.as_str()), (1, unknown));
        beside.server.ours("postgres", &line)
    };
    assert_eq!(ours.code, 0, "{ours:?}");
    for line in [
        "number of transactions actually processed: 0/3\n",
        "number of failed transactions: 3 (100.000%)\n",
        "number of other failures: 3 (100.000%)\n",
    ] {
        assert!(ours.out.contains(line), "no {line:?} in {ours:?}");
    }
    let error = "pgbench: client 0 got an error in command 1 (SQL) of script 0; ERROR:  duplicate \
                 key value violates unique constraint \"u_pkey\"\nDETAIL:  Key (x)=(1) already \
                 exists.\npgbench: client 0 ends the failed transaction (try 1/2)\n";
    assert_eq!(ours.err, error.repeat(3));
}

#[test]
#[ignore = "needs pgbench 19; scripts/versions 19 runs it"]
fn other_errors_need_not_end_a_client_of_pgbench_either() {
    let beside = Beside::start();
    beside.server.execute("postgres", UNIQUE);
    let in_block = format!("begin;\n{INSERT}end;\n");
    let in_pipeline = format!("\\startpipeline\n{in_block}\\endpipeline\n");
    let half = format!("\\if random(1, 2) = 1\n{INSERT}\\endif\nselect 1;\n");
    for script in [INSERT, &in_block, &half, FAILS, "select 1 as x where false \\gset\n"] {
        beside.check(script, "-t 3 --continue-on-error --random-seed=5");
        beside.check(script, &format!("{GOES_ON} --random-seed=5"));
    }
    beside.check(&in_pipeline, &format!("{GOES_ON} -M extended"));
    beside.check(INSERT, "-t 2 --continue-on-error --exit-on-abort");
    beside.check("select pg_terminate_backend(pg_backend_pid());\n", "-t 2 --continue-on-error");
}

/// Since 19, whatever the options, an aggregated log has a column for other failures.
#[test]
fn an_aggregated_log_has_the_columns_of_its_version() {
    let beside = Beside::start();
    let path = beside.folder.path().join("script.sql");
    let columns = |options: &str, who: &str| -> (usize, u64) {
        let fails = if options.contains("continue") { "select 1/0;\n" } else { "" };
        fs::write(&path, format!("select pg_sleep(0.1);\n{fails}")).unwrap();
        let prefix = beside.folder.path().join(who);
        let line = format!(
            "-n -f {} -T 3 -l --aggregate-interval=1 --log-prefix={} {options}",
            path.display(),
            prefix.display()
        );
        let ended = match who {
            "theirs" => beside.server.theirs("postgres", &line),
            _ => beside.server.ours("postgres", &line),
        };
        assert_eq!(ended.code, 0, "{ended:?}");
        let entries = fs::read_dir(beside.folder.path()).unwrap().flatten();
        let logs = entries.filter(|entry| entry.file_name().to_string_lossy().starts_with(who));
        let text: String = logs.map(|log| fs::read_to_string(log.path()).unwrap()).collect();
        let lines: Vec<Vec<&str>> = text.lines().map(|line| line.split(' ').collect()).collect();
        let last = |line: &Vec<&str>| line.last().and_then(|n| n.parse::<u64>().ok());
        (lines[0].len(), lines.iter().filter_map(last).sum())
    };
    assert_eq!(columns("--as=18", "old").0, 15);
    assert_eq!(columns("", "plain").0, 16);
    let (count, others) = columns("--continue-on-error --failures-detailed", "detailed");
    assert_eq!(count, 16);
    assert!(others > 0, "other failures are in the last column");
    if crate::common::theirs_major() >= 18 {
        let expected = if crate::common::theirs_major() >= 19 { 16 } else { 15 };
        assert_eq!(columns("", "theirs").0, expected);
    }
}
