//! The program pgrig-guard, as an operator and a monitor use it.

use std::process::{Child, Command, Stdio};
use std::time::Duration;

fn program() -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_pgrig-guard"));
    command.env("NO_COLOR", "1").stdin(Stdio::null());
    command
}

/// A guard that is ended with its test, also by a failure.
struct Guard(Child);

impl Drop for Guard {
    fn drop(&mut self) {
        // It may have ended already.
        let _ = self.0.kill();
        self.0.wait().unwrap();
    }
}

fn run(words: &[&str]) -> (Option<i32>, String) {
    testing::program::output(program().args(words))
}

#[test]
fn mistakes_have_a_reason_and_an_exit_code() {
    let check = |words: &[&str], code: i32, expected: &[&str]| {
        let (seen, said) = run(words);
        assert_eq!(seen, Some(code), "{words:?}: {said}");
        for text in expected {
            assert!(said.contains(text), "{words:?}: no {text:?} in\n{said}");
        }
    };
    check(&["--version"], 0, &[concat!("pgrig-guard ", env!("CARGO_PKG_VERSION"))]);
    check(
        &["--help"],
        0,
        &["--grace", "--no-automatic-failover", "it has guarded, and cannot go on"],
    );
    check(&["status", "--help"], 0, &["5    standby: the server has no commits"]);
    check(&["--state", "s"], 1, &["--no-automatic-failover", "split brain"]);
    check(&["host=/nonexistent"], 1, &["--state"]);
    check(&["--grace", "10"], 1, &["\"10\" is not a duration", "10s or 500ms"]);
    check(&["--grace", "1ms", "--state", "s"], 1, &["the least is"]);
    check(&["--help"], 0, &["Keeps commits going while synchronous standbys cannot confirm them"]);
    // A monitor does not take a mistake for an exposure.
    check(&["status", "host=/nonexistent"], 2, &["/nonexistent"]);
    check(&["status", "--nonsense"], 2, &["--nonsense"]);
    // A password is not shown.
    let (code, said) = run(&["postgres://u:planted@h/", "--nonsense"]);
    assert!(code == Some(1) && !said.contains("planted"), "{said}");
}

#[test]
fn commits_go_on_after_the_grace_and_a_signal_ends_the_guard() {
    let (primary, _lab) = testing::servers::server(&[]);
    let mut client = primary.connect().unwrap();
    for statement in [
        "CREATE TABLE t (i bigint)",
        "ALTER SYSTEM SET synchronous_standby_names = 'gone'",
        "SELECT pg_reload_conf()",
    ] {
        client.batch_execute(statement).unwrap();
    }
    let place = tempfile::tempdir().unwrap();
    let (state, address) = (place.path().join("state"), primary.endpoint().to_string());
    let state = state.display().to_string();
    let said = place.path().join("said");
    let file = || std::fs::File::options().create(true).append(true).open(&said).unwrap();
    let guard = program()
        .args([&address, "--state", &state, "--grace", "2s", "--no-automatic-failover", "--json"])
        .stdout(file())
        .stderr(file())
        .spawn()
        .unwrap();
    let mut guard = Guard(guard);
    // Commits wait for a standby that is not there, from the moment in which the checkpointer has read its name until
    // the guard acts. The guard acts only where one waits.
    let (says, is_over) = std::sync::mpsc::channel::<()>();
    let commits = std::thread::spawn(move || {
        let over = || is_over.try_recv() != Err(std::sync::mpsc::TryRecvError::Empty);
        while !over() {
            client.batch_execute("INSERT INTO t VALUES (1)").unwrap();
            std::thread::sleep(Duration::from_millis(20));
        }
    });
    let said_until_now = || std::fs::read_to_string(&said).unwrap();
    testing::until("the guard has let commits go on", || {
        assert_eq!(guard.0.try_wait().unwrap(), None, "{}", said_until_now());
        said_until_now().contains("\"in_force\"")
    });
    drop(says);
    commits.join().unwrap();
    let events = said_until_now();
    assert!(events.contains("guarding"), "{events}");
    let (code, said) = run(&["status", &address, "--state", &state]);
    assert!(code == Some(1) && said.contains("exposed"), "{said}");

    let pid = rustix::process::Pid::from_child(&guard.0);
    rustix::process::kill_process(pid, rustix::process::Signal::TERM).unwrap();
    let mut ended = None;
    testing::until("the guard has ended", || {
        ended = guard.0.try_wait().unwrap();
        std::thread::sleep(Duration::from_millis(50));
        ended.is_some()
    });
    assert_eq!(ended.and_then(|status| status.code()), Some(0));
}

/// The unit is one that systemd takes, and its command is one that the guard takes.
#[test]
fn the_unit_is_valid() {
    let unit = include_str!("../pgrig-guard.service");
    let start = unit.lines().find_map(|line| line.strip_prefix("ExecStart=/usr/bin/pgrig-guard "));
    let place = tempfile::tempdir().unwrap();
    let start = start.expect("a command").replace("/run/postgresql", "/nowhere");
    let start = start.replace("%S", &place.path().display().to_string()).replace(":9188", ":0");
    let (code, said) = run(&start.split_whitespace().collect::<Vec<_>>());
    assert!(code == Some(1) && said.contains("connecting to /nowhere:5432"), "{said}");

    let file = place.path().join("pgrig-guard.service");
    std::fs::write(&file, unit.replace("/usr/bin/pgrig-guard", "/bin/true")).unwrap();
    let Ok(output) = Command::new("systemd-analyze").arg("verify").arg(&file).output() else {
        return testing::skip::because("there is no systemd-analyze");
    };
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success() && said.is_empty(), "{said}");
}
