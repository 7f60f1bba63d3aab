//! What a guard must not be stopped by: locks of commands that wait for the standby that is dead, and
//! connections that die without a word.

use std::time::{Duration, Instant};

use lab::{Direction, LinkBy, LinkConfig, Listen, NodeConfig, Settings};
use os::user::SystemUser;

use crate::rig::{Guard, PATIENCE, Rig};

/// The command keeps its lock on the shared catalog while its commit waits. Nobody can log in then.
#[test]
fn a_command_that_locks_a_shared_catalog_and_waits_is_released() {
    for command in ["VACUUM FULL pg_authid", "VACUUM FULL pg_database"] {
        let mut rig = Rig::new("s1", 1);
        let guard = rig.guard(&["--grace", "1s"]);
        let mut client = rig.primary.connect().unwrap();
        client.batch_execute("SELECT 1").unwrap();
        rig.standbys[0].kill9().unwrap();
        let (done, waits) = std::sync::mpsc::channel();
        std::thread::spawn(move || done.send(client.batch_execute(command)));
        waits.recv_timeout(PATIENCE).expect("the command is released").unwrap();
        let (_, changing) = guard.wait_for("changing");
        assert_eq!(changing["to"], "", "{command}");
        guard.wait_for("in_force");
        assert!(!guard.narration().contains("no connection"), "{}", guard.narration());
    }
}

/// The server's end of the session lives on: it has heard nothing.
#[test]
fn a_session_that_an_earlier_guard_has_left_is_ended() {
    let rig = Rig::new("", 0);
    let mut link = rig.link("l1");
    let first = rig.guard_of(&link.endpoint().to_string(), &[]);
    link.cut(Direction::Both).unwrap();
    first.kill9();
    let guard = rig.guard(&[]);
    guard.wait_for("nothing_asked");
    assert!(
        guard.narration().contains("ended the session that an earlier guard has left: process")
    );
    // One of another state directory is no earlier one, and is refused.
    let other = rig.state().with_extension("other").display().to_string();
    let mut second = Guard::start(rig.command(&["--state", &other]));
    let (code, said) = second.wait();
    assert!(code == Some(1) && said.contains("another guard is in charge"), "{said}");
}

/// Each connection lasts less than the grace.
#[test]
fn a_connection_that_breaks_again_and_again_does_not_begin_the_grace_anew() {
    let mut rig = Rig::new("s1", 1);
    let mut link = rig.link("l1");
    let guard = rig.guard_of(&link.endpoint().to_string(), &["--grace", "3s"]);
    rig.standbys[0].kill9().unwrap();
    let mut client = rig.primary.connect().unwrap();
    let began = Instant::now();
    let (done, waits) = std::sync::mpsc::channel();
    std::thread::spawn(move || done.send(client.batch_execute("INSERT INTO t VALUES (1)")));
    // Twice in a grace, and each time after the guard has taken charge again.
    while waits.try_recv().is_err() {
        assert!(began.elapsed() < PATIENCE, "no commit goes on:\n{}", guard.narration());
        std::thread::sleep(Duration::from_millis(1600));
        let _ = link.reset();
    }
    let narration = guard.narration();
    assert!(narration.contains("no connection"), "{narration}");
    let most = rig.lag.allow(Duration::from_secs(3 + 2 + 2));
    assert!(began.elapsed() <= most, "{:?}\n{narration}", began.elapsed());
}

/// Linux shows the timer of each connection: 02 is a keepalive, and the time is in hundredths of a second.
#[test]
fn the_server_asks_soon_whether_the_guard_is_there() {
    let rig = Rig::by_tcp("", 0);
    let endpoint = rig.primary.endpoint();
    let _guard = rig.guard_of(&endpoint.to_string(), &[]);
    let port = format!(":{:04X}", endpoint.port);
    // While bytes are under way, it is another timer.
    let deadline = Instant::now() + PATIENCE;
    let is_asked_soon = |row: &str| {
        let row: Vec<&str> = row.split_whitespace().collect();
        let timer = row[5].split_once(':').filter(|(kind, _)| *kind == "02");
        let soon = |when: &str| u64::from_str_radix(when, 16).is_ok_and(|when| when <= 500);
        row[1].ends_with(&port) && row[3] == "01" && timer.is_some_and(|(_, when)| soon(when))
    };
    loop {
        let table = std::fs::read_to_string("/proc/net/tcp").unwrap();
        if table.lines().skip(1).any(is_asked_soon) {
            return;
        }
        assert!(Instant::now() < deadline, "{table}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// An answer that is never acknowledged keeps a session for a quarter of an hour, whatever the keepalives are.
#[test]
fn the_server_ends_the_session_of_a_guard_that_vanishes_while_it_is_answered() {
    if !SystemUser::current().is_root() {
        return testing::skip::no_root();
    }
    let lab = testing::servers::lab();
    let apart = |name: &str| {
        let settings: Settings = [("shared_buffers", "16MB")].into_iter().collect();
        let config =
            NodeConfig { own_network: true, listen: Listen::Unix, ..NodeConfig::new(settings) };
        let mut node = lab.node(name, config).unwrap();
        node.init().unwrap();
        node.start().unwrap();
        node
    };
    // The guard is on the other machine.
    let (primary, other) = (apart("primary"), apart("other"));
    let version: u32 = primary.value("SHOW server_version_num").unwrap().unwrap().parse().unwrap();
    if version < 120_000 {
        return testing::skip::because("tcp_user_timeout came with PostgreSQL 12");
    }
    let [from, to] = [&other, &primary].map(|node| node.network().unwrap().clone());
    let (by, to) = (LinkBy::Namespace { from, to }, primary.endpoint());
    let (program, shape) =
        (env!("CARGO_BIN_EXE_pgrig").into(), fault::link::TrafficShape::default());
    let mut link = lab.link("wan", LinkConfig { program, by, to, shape }).unwrap();
    let state = tempfile::tempdir().unwrap();
    let network = format!("--net=/proc/{}/ns/net", other.host_pid().unwrap());
    let mut command = std::process::Command::new("nsenter");
    command.args([&network, env!("CARGO_BIN_EXE_pgrig"), "guard", "--json"]);
    command.args(["--no-automatic-failover", "--state"]).arg(state.path().join("state"));
    command.arg(link.endpoint().to_string()).env("NO_COLOR", "1");
    command.stdin(std::process::Stdio::null());
    command.stdout(std::process::Stdio::piped()).stderr(std::process::Stdio::piped());
    let guard = Guard::start(command);
    guard.wait_for("guarding");

    let sessions =
        "SELECT count(*) FROM pg_stat_activity WHERE application_name LIKE 'pgrig guard %'";
    assert_eq!(primary.value(sessions).unwrap().as_deref(), Some("1"));
    // It asks four times a second: an answer is under way when its own packets vanish, too.
    link.cut(Direction::From).unwrap();
    std::thread::sleep(Duration::from_secs(1));
    link.cut(Direction::Both).unwrap();
    let began = Instant::now();
    primary.poll_query_until(sessions, "0", PATIENCE).unwrap();
    println!("the session ended {:.1?} after the guard had vanished", began.elapsed());
    assert!(guard.narration().contains("guarding"));
}
