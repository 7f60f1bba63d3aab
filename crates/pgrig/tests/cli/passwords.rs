//! Passwords planted in commands and their mistakes: none is in what is printed, in a file, or in the
//! arguments of a process.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};

use lab::{Listen, NodeConfig};
use testing::servers::{lab, settings, start};

use crate::{Desk, Said};

/// Parts of the planted passwords that are nowhere else.
const PLANTED: [&str; 2] = ["Pl4nted", "s3cret"];

fn has_planted(text: &str) -> bool {
    PLANTED.iter().any(|part| text.contains(part))
}

/// What a command says, and the processes whose arguments had a password while it ran; the command itself,
/// to which the test gives it, is none.
fn watched(desk: &Desk, arguments: &[&str], environment: &[(&str, &str)]) -> (Said, Vec<String>) {
    let mut command = desk.command(arguments);
    command.envs(environment.iter().copied()).env("TMPDIR", desk.path("tmp"));
    let mut child = command.spawn().expect("pgrig runs");
    let own = child.id();
    let is_over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let watcher = scope.spawn(|| {
            let mut seen = BTreeSet::new();
            while !is_over.load(Ordering::Relaxed) {
                seen.extend(processes_with_planted(own));
                std::thread::sleep(std::time::Duration::from_millis(3));
            }
            seen
        });
        child.stdin.take();
        let output = child.wait_with_output().expect("pgrig ends");
        is_over.store(true, Ordering::Relaxed);
        let seen = watcher.join().expect("a watcher");
        (Said::of(&output), seen.into_iter().collect())
    })
}

/// The arguments of processes below `own` that have a password.
fn processes_with_planted(own: u32) -> Vec<String> {
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    let numbers = entries.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
    numbers
        .filter(|pid| *pid != own && descends_from(*pid, own))
        .filter_map(|pid| fs::read(format!("/proc/{pid}/cmdline")).ok())
        .map(|words| String::from_utf8_lossy(&words).replace('\0', " "))
        .filter(|words| has_planted(words))
        .collect()
}

fn descends_from(pid: u32, ancestor: u32) -> bool {
    let parent = |pid: u32| -> Option<u32> {
        let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
        stat.rsplit_once(") ")?.1.split(' ').nth(1)?.parse().ok()
    };
    let mut at = pid;
    while let Some(next) = parent(at) {
        // A child between fork and exec still has its parent's arguments.
        if next == ancestor {
            let program = |pid| fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
            return program(pid) != program(ancestor);
        }
        at = next;
    }
    false
}

/// The files of a desk in which a password is.
fn files_with_planted(directory: &Path) -> Vec<String> {
    let mut found = Vec::new();
    for entry in fs::read_dir(directory).into_iter().flatten().flatten() {
        let path = entry.path();
        if path.is_dir() {
            found.extend(files_with_planted(&path));
        } else if path.is_file()
            && fs::read(&path).is_ok_and(|bytes| has_planted(&String::from_utf8_lossy(&bytes)))
        {
            found.push(path.display().to_string());
        }
    }
    found
}

#[track_caller]
fn shows_nothing(desk: &Desk, arguments: &[&str], environment: &[(&str, &str)]) -> Said {
    let (said, processes) = watched(desk, arguments, environment);
    assert!(!has_planted(&said.out), "{arguments:?} prints {}", said.out);
    assert!(!has_planted(&said.err), "{arguments:?} says {}", said.err);
    assert!(processes.is_empty(), "{arguments:?} runs {processes:?}");
    let files = files_with_planted(&desk.path(""));
    assert!(files.is_empty(), "{arguments:?} writes {files:?}");
    said
}

/// The words of a command, and what the environment has.
type Asked<'a> = (Vec<String>, &'a [(&'a str, &'a str)]);

/// Connection strings that are wrong in one way or another, or lead nowhere.
const MISTAKES: [&str; 9] = [
    "postgres://u:Pl4nted%zz@localhost:1/db",
    "postgres://u:Pl4nted s3cret@localhost:1/db",
    "postgres://u:Pl4nted@s3cret@localhost:1/db",
    "postgres://u:Pl4nted/s3cret@localhost:1/db",
    "host=localhost port=1 user=u password=Pl4nted s3cret",
    "host=localhost port=1 user=u password=Pl4nted connect_timeout=2",
    "postgres://localhost:1/db?user=u&password=Pl4nted&s3cret=1",
    "mysql://u:Pl4nted@localhost/db",
    "u:Pl4nted@localhost/db",
];

#[test]
fn mistakes_show_no_password() {
    let desk = Desk::new();
    fs::create_dir(desk.path("tmp")).expect("a directory");
    desk.write_study("mine", "");
    let commands: &[&[&str]] = &[
        &["bench", "CONNINFO"],
        &["bench", "-i", "-d", "CONNINFO"],
        &["bench", "--dbname=CONNINFO", "--debug"],
        &["bench", "db", "CONNINFO"],
        &["bench", "--unknown=CONNINFO"],
        &["compare", "--a-conninfo", "CONNINFO", "--b-conninfo", "CONNINFO"],
        &["run", "mine", "--target", "CONNINFO"],
        &["run", "CONNINFO"],
        &["verify", "--target", "old=CONNINFO", "--target", "new=CONNINFO"],
        &["guard", "CONNINFO"],
        &["guard", "status", "CONNINFO"],
        &["shard", "status", "--proxy", "CONNINFO"],
        &["shard", "create", "--proxy", "CONNINFO", "--node", "CONNINFO", "--node", "CONNINFO"],
        &["show", "CONNINFO"],
        &["diff", "CONNINFO", "CONNINFO"],
        &["unknown", "CONNINFO"],
        &["check", "mine", "CONNINFO"],
    ];
    let mut tried = 0;
    for command in commands {
        for conninfo in MISTAKES {
            let words: Vec<String> =
                command.iter().map(|word| word.replace("CONNINFO", conninfo)).collect();
            let words: Vec<&str> = words.iter().map(String::as_str).collect();
            let said = shows_nothing(&desk, &words, &[]);
            assert_ne!(said.code, Some(0), "{words:?}");
            assert!(!said.err.contains("panicked"), "{}", said.err);
            tried += 1;
        }
    }
    assert!(tried >= 60, "{tried}");
}

#[test]
fn commands_that_work_show_no_password() {
    let lab = lab();
    // Over the network a password is asked for.
    let config = NodeConfig { listen: Listen::Loopback, ..NodeConfig::new(settings(&[])) };
    let node = start(&lab, "server", config);
    let mut client = node.connect().expect("a connection");
    client
        .batch_execute("CREATE ROLE planted LOGIN SUPERUSER PASSWORD 'Pl4nted/s3cret'")
        .expect("a role");
    let port = node.endpoint().port;
    let host = "127.0.0.1";
    let desk = Desk::new();
    fs::create_dir(desk.path("tmp")).expect("a directory");
    desk.write_study("mine", "");
    desk.write("one.sql", "SELECT 1;\n");
    let place = format!("host={host} port={port} user=planted dbname=postgres");
    let keywords = format!("{place} password=Pl4nted/s3cret");
    let uri = format!("postgres://planted:Pl4nted%2Fs3cret@{host}:{port}/postgres");
    let asked = [("PGPASSWORD", "Pl4nted/s3cret")];
    let wrong = [("PGPASSWORD", "Pl4nted-and-wrong")];
    let bench = |more: &[&'static str], conninfo: &str| {
        let mut words = vec!["bench", "-n", "-f", "one.sql", "-t", "5"];
        words.extend(more);
        let words: Vec<String> =
            words.into_iter().map(str::to_owned).chain([conninfo.to_owned()]).collect();
        words
    };
    let mut commands: Vec<Asked<'_>> = Vec::new();
    for more in [
        &["--debug"][..],
        &["-C"],
        &["-C", "--cache-keys"],
        &["--html", "page.html", "--json", "run.json", "--hdr", "run.hdr"],
        &["-l", "-c", "2", "-j", "2"],
        &["-c", "2", "--generators", "2"],
        &["-M", "prepared", "--reconnect"],
    ] {
        for (conninfo, environment) in
            [(&keywords, &[][..]), (&uri, &[]), (&place, &asked), (&place, &wrong)]
        {
            commands.push((bench(more, conninfo), environment));
        }
    }
    let words = |words: &[&str]| words.iter().map(|word| (*word).to_owned()).collect::<Vec<_>>();
    commands.push((words(&["bench", "-i", "-s", "1", &uri]), &[]));
    commands.push((words(&["guard", "status", &keywords]), &[]));
    commands.push((words(&["guard", "status", &place]), &asked));
    commands.push((words(&["shard", "status", "--proxy", &uri]), &[]));
    let run = ["run", "mine", "--rounds", "1", "--out"];
    let target = |out, conninfo| words(&[&run[..], &[out, "--target", conninfo]].concat());
    commands.push((target("first", &uri), &[]));
    commands.push((target("second", &place), &asked));
    commands.push((words(&["show", "first"]), &[]));
    commands.push((words(&["report", "first"]), &[]));
    for (words, environment) in &commands {
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        shows_nothing(&desk, &words, environment);
    }
    let page = fs::read_to_string(desk.path("page.html")).expect("a page");
    assert!(page.contains("pgrig bench"), "the page has the command line");
    assert!(desk.path("first/report.html").exists(), "the target was measured");
}
