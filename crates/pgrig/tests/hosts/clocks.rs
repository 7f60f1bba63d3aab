//! Clocks of hosts that are known to some milliseconds only, because the answers of one host come late.

use std::io::{Read, Write};
use std::process::{Command, ExitCode, Stdio};
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::desk::{PGRIG, run, write};
use crate::study::{expect_nothing, pgrig};

/// The word by which this program is a launcher whose answers come so many milliseconds late.
pub(crate) const LATE_ANSWERS: &str = "late-answers";

/// Runs a command; what it says is passed on so many milliseconds later. A line that the rig sends is not delayed.
pub(crate) fn answer_late(words: &[String]) -> ExitCode {
    let [delay, command @ ..] = words else { return ExitCode::FAILURE };
    let delay = Duration::from_millis(delay.parse().expect("milliseconds"));
    let (program, arguments) = command.split_first().expect("a command");
    let mut child =
        Command::new(program).args(arguments).stdout(Stdio::piped()).spawn().expect("it starts");
    let mut said = child.stdout.take().expect("a pipe");
    let (sender, receiver) = mpsc::channel();
    thread::spawn(move || {
        let mut bytes = [0; 65536];
        while let Ok(count @ 1..) = said.read(&mut bytes) {
            if sender.send((Instant::now() + delay, bytes[..count].to_vec())).is_err() {
                return;
            }
        }
    });
    let mut out = std::io::stdout();
    for (due, bytes) in receiver {
        thread::sleep(due.saturating_duration_since(Instant::now()));
        if out.write_all(&bytes).and_then(|()| out.flush()).is_err() {
            break;
        }
    }
    let code = child.wait().ok().and_then(|status| status.code());
    code.map_or(ExitCode::FAILURE, |code| ExitCode::from(code as u8))
}

const STUDY: &str = r#"
question = "Is the server blamed for the clocks?"
rounds = 1
window = "2s"
warmup = "200ms"
[settings]
shared_buffers = "16MB"
default_transaction_isolation = "serializable"
max_pred_locks_per_transaction = 256
[data]
script = "init.sql"
[topologies.one.nodes.primary]
listen = "tcp"
[variants.one]
topology = "one"
[workloads.lists]
builtin = "list-append"
clients = 6
history = true
expect_failures = true
[scenarios.load]
run = ["lists"]
steady = false
checks = [{ history = "strict serializable" }]
[[claims]]
says = "nothing is forbidden"
every = "history_forbidden == 0"
kind = "invariant"
[[claims]]
says = "every history could be judged"
every = "history_unjudged == 0"
kind = "invariant"
"#;

const INIT: &str =
    "CREATE TABLE history_lists (key bigint PRIMARY KEY, elements bigint[] NOT NULL);\n";

pub(crate) fn clocks_that_are_not_known_well_are_no_violation() {
    let folder = tempfile::tempdir().expect("a folder");
    let folder = folder.path();
    let own = std::env::current_exe().expect("this program's own path");
    let late = format!("{} {LATE_ANSWERS} 40", own.display());
    let host = |(number, launch): (u32, &str)| {
        format!(
            "[hosts.node{number}]\nlaunch = \"{launch}\"\naddress = \"127.0.0.{}\"\nprogram = \"{PGRIG}\"\n",
            number + 1
        )
    };
    let hosts: String = (1..).zip(["env", "env", &late]).map(host).collect();
    let place = "[place]\nprimary = \"node1\"\ngenerators = [\"node2\", \"node3\"]\n";
    write(folder, "study.toml", STUDY);
    write(folder, "init.sql", INIT);
    write(folder, "lab.toml", &(hosts + place));
    let ended = run(&mut pgrig(folder, "run . --hosts lab.toml --out out --profile quick --gate"));
    let told = "the clocks of these hosts are not known well enough to tell which transaction of one host came";
    let line = ended.err.lines().chain(ended.out.lines()).find(|line| line.contains(told));
    let line = line.unwrap_or_else(|| panic!("{ended:?}"));
    assert!(line.contains("node3 (±") && !line.contains("node2 (±"), "{line}");
    let shown = run(&mut pgrig(folder, "show out --json"));
    let shown: Value = serde_json::from_str(&shown.out).unwrap_or_else(|_| panic!("{shown:?}"));
    let claims = shown["claims"].as_array().expect("claims");
    let verdict = |at: usize| claims[at]["verdict"].as_str().expect("a verdict");
    assert_eq!([verdict(0), verdict(1)], ["cannot tell", "holds"], "{claims:#?}");
    let why = claims[0]["why"].as_str().expect("a reason");
    assert!(why.contains("the clock of host node3 is known to ± "), "{why}");
    assert_eq!(ended.code, Some(5), "{ended:?}");
    expect_nothing(folder);
}
