//! Clocks of hosts that are known to some milliseconds only, because the answers of one host come late.

use std::io::{BufRead, BufReader, Read, Write};
use std::path::Path;
use std::process::{Command, ExitCode, Stdio};
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

use serde_json::Value;
use testing::until;

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

/// The word by which this program is a launcher of a host whose clock goes so many milliseconds back as soon as a file is
/// there, as that of a virtual machine does that was suspended.
pub(crate) const JUMPING_CLOCK: &str = "jumping-clock";

/// Runs a command; the clock that its answers to pings show has jumped once there is the file.
pub(crate) fn jump(words: &[String]) -> ExitCode {
    let [file, back_ms, command @ ..] = words else { return ExitCode::FAILURE };
    let back_ns = 1_000_000 * back_ms.parse::<u64>().expect("milliseconds");
    let (program, arguments) = command.split_first().expect("a command");
    let mut child =
        Command::new(program).args(arguments).stdout(Stdio::piped()).spawn().expect("it starts");
    let said = BufReader::new(child.stdout.take().expect("a pipe"));
    let mut out = std::io::stdout();
    for line in said.lines().map_while(Result::ok) {
        let pong = line.strip_prefix("0 ").and_then(|text| serde_json::from_str(text).ok());
        let pong = pong.and_then(|message: Value| {
            Some((message["pong"][0].as_u64()?, message["pong"][1].as_u64()?))
        });
        let line = match pong {
            Some((number, there)) if Path::new(file).exists() => {
                format!("0 {{\"pong\":[{number},{}]}}", there - back_ns)
            }
            _ => line,
        };
        if writeln!(out, "{line}").and_then(|()| out.flush()).is_err() {
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

/// Writes a study whose third host is launched like that.
fn write_study(folder: &Path, study: &str, third: &str) {
    let host = |(number, launch): (u32, &str)| {
        format!(
            "[hosts.node{number}]\nlaunch = \"{launch}\"\naddress = \"127.0.0.{}\"\nprogram = \"{PGRIG}\"\n",
            number + 1
        )
    };
    let hosts: String = (1..).zip(["env", "env", third]).map(host).collect();
    let place = "[place]\nprimary = \"node1\"\ngenerators = [\"node2\", \"node3\"]\n";
    write(folder, "study.toml", study);
    write(folder, "init.sql", INIT);
    write(folder, "lab.toml", &(hosts + place));
}

/// A clock that jumps in the middle of a load: until that is seen, the moments of its clients are wrong by the whole of
/// it, and nothing that takes their order may be judged.
pub(crate) fn a_clock_that_jumps_is_no_violation() {
    let folder = tempfile::tempdir().expect("a folder");
    let folder = folder.path();
    let (own, file) =
        (std::env::current_exe().expect("this program's own path"), folder.join("jump"));
    let jumps = format!("{} {JUMPING_CLOCK} {} 700", own.display(), file.display());
    write_study(folder, &STUDY.replace("window = \"2s\"", "window = \"6s\""), &jumps);
    let mut command = pgrig(folder, "run . --hosts lab.toml --out out --profile quick --gate");
    let child = command.stdin(Stdio::null()).stderr(Stdio::piped()).stdout(Stdio::piped());
    let child = child.spawn().expect("pgrig starts");
    until("clients at work", || histories_begun(folder) >= 2);
    thread::sleep(Duration::from_millis(1_500));
    write(folder, "jump", "");
    let output = child.wait_with_output().expect("it ends");
    let err = String::from_utf8_lossy(&output.stderr);
    let shown = run(&mut pgrig(folder, "show out --json"));
    let shown: Value = serde_json::from_str(&shown.out).unwrap_or_else(|_| panic!("{shown:?}"));
    let claims = shown["claims"].as_array().expect("claims");
    for claim in claims {
        assert_ne!(claim["verdict"], "does not hold", "{claims:#?}\n{err}");
    }
    assert_eq!(claims[0]["verdict"], "cannot tell", "{claims:#?}\n{err}");
    let why = claims[0]["why"].as_str().expect("a reason");
    let (_, bound) =
        why.split_once("the clock of host node3 is known to ± ").unwrap_or_else(|| panic!("{why}"));
    let bound =
        bound.split('.').next().and_then(|ms| ms.parse::<u64>().ok()).expect("milliseconds");
    assert!((700..2_000).contains(&bound), "{why}");
    assert_eq!(output.status.code(), Some(5), "{err}");
    expect_nothing(folder);
}

/// Histories of hosts that have come home in part in the trial under way.
fn histories_begun(folder: &Path) -> u64 {
    crate::lost::files_begun(folder, "history")
}

pub(crate) fn clocks_that_are_not_known_well_are_no_violation() {
    let folder = tempfile::tempdir().expect("a folder");
    let folder = folder.path();
    let own = std::env::current_exe().expect("this program's own path");
    let late = format!("{} {LATE_ANSWERS} 40", own.display());
    write_study(folder, STUDY, &late);
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
