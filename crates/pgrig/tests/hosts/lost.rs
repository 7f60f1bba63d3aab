//! A host of clients that is lost in a study: what it took along is no violation by the database, and the run
//! goes on without it.

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use testing::until;

use crate::desk::{LEDGER_INIT, LEDGER_WRITE, PGRIG, doing, inventory, run, write};
use crate::study::{LABS, expect_nothing, pgrig};

const STUDY: &str = r#"
question = "Is everything there?"
rounds = 2
window = "3s"
warmup = "100ms"
[settings]
shared_buffers = "16MB"
shared_preload_libraries = "pg_stat_statements"
[data]
script = "init.sql"
[topologies.one.nodes.primary]
listen = "tcp"
[variants.one]
topology = "one"
[workloads.writes]
script = "write.sql"
clients = 6
ledger = { insert = "log", update = "state" }
[scenarios.load]
run = ["writes"]
steady = false
checks = ["ledger", "counts"]
[[claims]]
says = "nothing is lost"
every = "ledger_anomalies == 0"
kind = "invariant"
[[claims]]
says = "both count the same"
every = "count_difference == 0"
kind = "invariant"
[[claims]]
says = "it is fast"
every = "transactions >= 100_000_000"
"#;

/// The same with a history in the place of a ledger.
const HISTORIES: &str = r#"
question = "Is everything in order?"
rounds = 2
window = "3s"
warmup = "100ms"
[settings]
shared_buffers = "16MB"
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
[scenarios.load]
run = ["lists"]
steady = false
checks = [{ history = "read committed" }]
[[claims]]
says = "no history shows what read committed forbids"
every = "history_forbidden == 0"
kind = "invariant"
"#;

const LISTS_INIT: &str =
    "CREATE TABLE history_lists (key bigint PRIMARY KEY, elements bigint[] NOT NULL);";

/// The trials of a record that have come to an end. One that is being written is not there yet.
pub(crate) fn trials(folder: &Path) -> Vec<Value> {
    let found = fs::read_dir(folder.join("out/trials")).into_iter().flatten().flatten();
    let mut paths: Vec<_> = found.map(|entry| entry.path().join("trial.json")).collect();
    paths.retain(|path| path.exists());
    paths.sort();
    let read = |path: &std::path::PathBuf| {
        serde_json::from_str(&fs::read_to_string(path).expect("a trial")).ok()
    };
    paths.iter().filter_map(read).collect()
}

/// The processes `pgrig host` that have a generator and no lab below them.
fn generator_hosts() -> Vec<i32> {
    let table = os::processes::all().expect("/proc");
    let (generators, labs) = (doing("generator"), doing("lab"));
    let has = |host: i32, roles: &[i32]| {
        let tree = os::processes::tree(&table, host);
        roles.iter().any(|pid| tree.contains(pid))
    };
    doing("host").into_iter().filter(|host| has(*host, &generators) && !has(*host, &labs)).collect()
}

fn begin(folder: &Path, words: &str) -> std::process::Child {
    begin_study(folder, STUDY, words)
}

fn begin_study(folder: &Path, study: &str, words: &str) -> std::process::Child {
    write(folder, "study.toml", study);
    write(folder, "init.sql", &format!("{LEDGER_INIT}\n{LISTS_INIT}"));
    write(folder, "write.sql", LEDGER_WRITE);
    write(folder, "lab.toml", &inventory(&["load1", "load2"]));
    let mut command: Command = pgrig(folder, &format!("run . --hosts lab.toml --out out {words}"));
    command.stdin(Stdio::null()).stderr(Stdio::piped()).stdout(Stdio::piped());
    command.spawn().expect("pgrig starts")
}

/// Ledgers of hosts that have come home in part in the trial under way: so many have clients at work.
pub(crate) fn ledgers_begun(folder: &Path) -> u64 {
    files_begun(folder, "ledger")
}

/// The files of a kind in the record that say something of a client.
pub(crate) fn files_begun(folder: &Path, kind: &str) -> u64 {
    let mut found = 0;
    let mut below = vec![folder.join("out")];
    while let Some(path) = below.pop() {
        for entry in fs::read_dir(path).into_iter().flatten().flatten() {
            let is_it = entry.path().extension().is_some_and(|end| end == kind);
            match entry.metadata() {
                Ok(one) if one.is_dir() => below.push(entry.path()),
                Ok(one) if is_it => found += u64::from(one.len() > 200),
                _ => {}
            }
        }
    }
    found
}

pub(crate) fn a_lost_host_of_clients_is_no_violation_and_the_run_goes_on() {
    let folder = tempfile::tempdir().expect("a folder");
    let folder = folder.path();
    let child = begin(folder, "--on-host-loss go-on");
    until("two generators", || generator_hosts().len() == 2);
    // What they note leaves them while the load runs.
    until("the ledger of both to come home", || ledgers_begun(folder) >= 2);
    let victim = generator_hosts()[0];
    kill_process(Pid::from_raw(victim).unwrap(), Signal::KILL).expect("a process of ours");
    let output = child.wait_with_output().expect("it ends");
    let err = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{err}");
    let trials = trials(folder);
    assert_eq!(trials.len(), 2, "{err}");
    let [first, second] = &trials[..] else { unreachable!() };
    let figure = |trial: &Value, metric: &str| trial["metrics"][metric][""].as_f64();
    let why = |trial: &Value| format!("{} {}\n{err}", trial["ending"], trial["notes"]);
    assert_eq!(first["ending"]["why"]["kind"], "generator_host", "{}", why(first));
    let lost: Vec<&str> = first["hosts"]
        .as_array()
        .unwrap()
        .iter()
        .filter(|host| !host["lost"].is_null())
        .map(|host| host["name"].as_str().unwrap())
        .collect();
    assert!(matches!(lost[..], ["load1"] | ["load2"]), "{lost:?}");
    assert_eq!(figure(first, "ledger_anomalies"), Some(0.0), "{}", why(first));
    assert_eq!(figure(first, "ledger_unjudged"), Some(3.0), "{}", why(first));
    // What the lost host had told until then is judged: the half of all.
    assert!(figure(first, "ledger_acknowledged") > Some(0.0), "{}", why(first));
    assert_eq!(figure(first, "count_difference"), None);
    assert_eq!(second["ending"]["is"], "done", "{}", why(second));
    assert_eq!(figure(second, "ledger_unjudged"), Some(0.0), "{}", why(second));
    assert_eq!(figure(second, "ledger_anomalies"), Some(0.0), "{}", why(second));
    // Lines of hosts have the time of the window, so that they add up.
    let of_hosts = second["hosts"].as_array().unwrap().iter();
    let sum: f64 = of_hosts.filter_map(|host| host["load"]["tps"].as_f64()).sum();
    let tps = second["metrics"]["tps"]["writes"].as_f64().expect("a throughput");
    assert!((sum / tps - 1.0).abs() < 1e-3, "{sum} {tps}");
    let shown = run(&mut pgrig(folder, "show out --json"));
    let shown: Value = serde_json::from_str(&shown.out).expect("JSON");
    let verdict = |says: &str| {
        let claims = shown["claims"].as_array().expect("claims");
        let claim = claims.iter().find(|claim| claim["claim"] == says).expect(says);
        claim["verdict"].as_str().unwrap().to_owned()
    };
    assert_eq!(verdict("nothing is lost"), "cannot tell", "{shown:#}");
    assert_eq!(verdict("both count the same"), "cannot tell", "{shown:#}");
    // The second trial refutes it.
    assert_eq!(verdict("it is fast"), "does not hold", "{shown:#}");
    expect_nothing(folder);
}

/// What the clients of a lost host appended may have been read by others.
pub(crate) fn a_lost_host_of_clients_leaves_a_history_open() {
    let folder = tempfile::tempdir().expect("a folder");
    let folder = folder.path();
    let child = begin_study(folder, HISTORIES, "--on-host-loss go-on");
    until("two generators", || generator_hosts().len() == 2);
    until("the histories of both to come home", || files_begun(folder, "history") >= 2);
    let victim = generator_hosts()[0];
    kill_process(Pid::from_raw(victim).unwrap(), Signal::KILL).expect("a process of ours");
    let output = child.wait_with_output().expect("it ends");
    let err = String::from_utf8_lossy(&output.stderr);
    let trials = trials(folder);
    assert_eq!(trials.len(), 2, "{err}");
    assert_eq!(trials[0]["ending"]["why"]["kind"], "generator_host", "{err}");
    assert_eq!(trials[1]["ending"]["is"], "done", "{err}");
    for trial in &trials {
        let forbidden = &trial["metrics"]["history_forbidden"][""];
        assert!(forbidden.is_null() || forbidden == 0.0, "{forbidden} {}", trial["notes"]);
    }
    let shown = run(&mut pgrig(folder, "show out --json"));
    let shown: Value = serde_json::from_str(&shown.out).expect("JSON");
    assert_eq!(shown["claims"][0]["verdict"], "cannot tell", "{shown:#}");
    expect_nothing(folder);
}

/// After an interruption, the command that is printed goes on with the run on the same hosts.
pub(crate) fn a_run_that_was_interrupted_goes_on_as_it_said() {
    let folder = tempfile::tempdir().expect("a folder");
    let folder = folder.path();
    let child = begin(folder, "--profile quick");
    until("the second trial", || trials(folder).len() == 1 && generator_hosts().len() == 2);
    let pid = Pid::from_raw(child.id().cast_signed()).expect("a process id");
    kill_process(pid, Signal::INT).expect("a process of ours");
    let output = child.wait_with_output().expect("it ends");
    let text = |bytes: Vec<u8>| String::from_utf8_lossy(&bytes).into_owned();
    let said = text(output.stdout) + &text(output.stderr);
    assert_eq!(output.status.code(), Some(130), "{said}");
    let at = said.find("pgrig run --resume ").unwrap_or_else(|| panic!("{said}"));
    let printed = said[at..].lines().next().expect("a line").trim();
    assert!(printed.contains(" --hosts lab.toml"), "{printed}");
    // A shell runs it as it stands there, with this program in the path.
    let programs = Path::new(PGRIG).parent().expect("its folder").display().to_string();
    let mut command = Command::new("sh");
    command.args(["-c", printed]).current_dir(folder).env("TMPDIR", folder.join(LABS));
    command.env("PATH", format!("{programs}:{}", std::env::var("PATH").expect("a path")));
    let ended = run(&mut command);
    assert_eq!(ended.code, Some(0), "{printed}: {ended:?}");
    let trials = trials(folder);
    let done = trials.iter().filter(|trial| trial["ending"]["is"] == "done").count();
    assert_eq!(done, 2, "{printed}: {trials:#?}");
    expect_nothing(folder);
}
