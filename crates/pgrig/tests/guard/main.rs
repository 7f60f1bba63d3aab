//! `pgrig guard` on a real primary with real standbys that die, hang and return.

mod blocked;
mod by_hand;
mod confirming;
mod flapping;
mod full_disk;
mod kills;
mod patroni;
mod refusals;
mod rig;
mod schedules;
mod statuses;
mod study;

use std::io::{Read, Write};
use std::net::TcpStream;
use std::os::unix::net::UnixDatagram;
use std::path::Path;
use std::sync::mpsc::{self, Receiver};
use std::time::Duration;

use guard::WindowEvent;
use lab::Node;
use rig::{Guard, PATIENCE, Rig};
use testing::prometheus::Prometheus;

const GRACE: Duration = Duration::from_secs(2);

#[test]
fn commits_go_on_when_both_standbys_die_and_sync_mode_is_back_when_one_returns() {
    let mut rig = Rig::new("FIRST 1 (s1, s2)", 2);
    let guard = rig.guard(&["--grace", "2s"]);
    let writer = rig.writer();
    writer.wait_for_commit();

    // The other one takes over without anybody's help.
    rig.standbys[0].kill9().unwrap();
    std::thread::sleep(Duration::from_millis(500));
    assert_eq!(rig.setting(), "FIRST 1 (s1, s2)");
    assert!(rig.windows().is_empty());

    rig.standbys[1].kill9().unwrap();
    let (_, changing) = guard.wait_for("changing");
    assert_eq!(changing["to"], "");
    let (_, in_force) = guard.wait_for("in_force");
    assert_eq!(rig.setting(), "");
    assert_eq!(rig.value("SELECT current_setting('pgrig.guard_asked')"), "below FIRST 1 (s1, s2)");
    println!("commits released {} ms after the decision", in_force["after_ms"]);
    check_commits_went_on(&rig, writer.longest());
    writer.wait_for_commit();

    let caught_up = rig.start_and_catch_up(0);
    check_sync_is_back(&rig, &guard, caught_up);
    let auto = std::fs::read_to_string(rig.primary.data().join("postgresql.auto.conf")).unwrap();
    assert!(!auto.contains("synchronous_standby_names"), "{auto}");
    assert!(!auto.contains("pgrig"), "{auto}");

    let windows = rig.windows();
    let [window] = &windows[..] else { panic!("{windows:?}") };
    assert_eq!((window.opened.confirmations, window.confirmations()), (0, 0));
    let closed = window.closed.as_ref().unwrap();
    assert_eq!(closed.event, WindowEvent::Closed);
    assert!(lsn(&window.opened.confirmed_lsn) < lsn(&closed.confirmed_lsn));
    drop(writer);
    let (code, said) = guard.end();
    assert_eq!(code, Some(0), "{said}");
    assert!(said.contains("ended; the setting is as it was asked for"), "{said}");
}

#[test]
fn commits_go_on_when_the_standby_is_killed() {
    check_outage(|standby| standby.kill9(), |standby| standby.start().map(|()| 0));
}

/// Its WAL sender stays, and `pg_stat_replication` says "streaming" and "sync".
#[test]
fn commits_go_on_when_the_standby_is_paused() {
    check_outage(|standby| standby.pause(), |standby| standby.resume());
}

/// What is done to a standby, and to how many of its processes.
type Verb = fn(&mut Node) -> Result<usize, lab::Error>;

fn check_outage(begin: Verb, end: Verb) {
    let mut rig = Rig::new("FIRST 1 (s1)", 1);
    let guard = rig.guard(&["--grace", "2s"]);
    let writer = rig.writer();
    writer.wait_for_commit();
    begin(&mut rig.standbys[0]).unwrap();
    guard.wait_for("in_force");
    std::thread::sleep(Duration::from_millis(100));
    check_commits_went_on(&rig, writer.longest());
    end(&mut rig.standbys[0]).unwrap();
    let caught_up = rig.wait_until_caught_up(0);
    check_sync_is_back(&rig, &guard, caught_up);
}

/// What a grace of two seconds promises.
fn check_commits_went_on(rig: &Rig, longest: Duration) {
    println!("longest commit {longest:.2?} with a grace of {GRACE:?}");
    let most = rig.lag.allow(GRACE + Duration::from_secs(2));
    assert!(longest <= most, "a commit waited {longest:?}, more than {most:?}");
}

fn check_sync_is_back(rig: &Rig, guard: &Guard, caught_up: std::time::Instant) {
    let (closed, _) = guard.wait_for("closed");
    let back = closed.saturating_duration_since(caught_up);
    println!("sync mode back, and all confirmed, {back:.2?} after catch-up");
    let most = rig.lag.allow(Duration::from_secs(5));
    assert!(back <= most, "sync mode was back {back:?} after catch-up, later than {most:?}");
    assert!(rig.setting().starts_with("FIRST 1"));
}

/// On a primary where nothing else writes, a lowered number shows its effect only with the next
/// reply of a standby.
#[test]
fn the_number_is_lowered_first_and_the_commit_that_waited_goes_on() {
    let mut rig = Rig::new("ANY 2 (s1, s2)", 2);
    let guard = rig.guard(&["--grace", "1s"]);
    rig.standbys[1].kill9().unwrap();
    let mut client = rig.primary.connect().unwrap();
    let began = std::time::Instant::now();
    client.batch_execute("INSERT INTO t VALUES (1)").unwrap();
    let took = began.elapsed();
    assert!(took <= rig.lag.allow(Duration::from_secs(3)), "{took:?}");
    let (_, changing) = guard.wait_for("changing");
    assert_eq!(changing["to"], "ANY 1 (s1, s2)");
    let (_, in_force) = guard.wait_for("in_force");
    assert_eq!(in_force["released"], 1);
    println!("released {} ms after the decision", in_force["after_ms"]);
    assert_eq!(rig.windows()[0].confirmations(), 1);
    rig.start_and_catch_up(1);
    guard.wait_for("closed");
    assert_eq!(rig.setting(), "ANY 2 (s1, s2)");
}

#[test]
fn a_guard_that_is_killed_at_any_moment_leaves_what_the_next_one_goes_on_from() {
    let mut rig = Rig::new("FIRST 1 (s1)", 1);
    rig.guard(&["--grace", "1s"]).kill9();
    rig.standbys[0].kill9().unwrap();
    // A commit waits all the time, whatever happens to guards.
    let writer = rig.writer();
    // From before the decision until after its effect, which comes 1 to 1.5 s after the start.
    for after_ms in [700, 1050, 1100, 1150, 1200, 1250, 1300, 1500] {
        let guard = Guard::start(rig.command(&["--grace", "1s"]));
        std::thread::sleep(Duration::from_millis(after_ms));
        guard.kill9();
        // Sync mode is off only inside a window that is in the record.
        let windows = rig.windows();
        assert!(windows.len() <= 1, "{windows:?}");
        if rig.setting().is_empty() {
            assert_eq!(windows.len(), 1);
        }
    }
    let guard = rig.guard(&["--grace", "1s"]);
    writer.longest();
    writer.wait_for_commit();
    assert_eq!(rig.setting(), "");
    rig.start_and_catch_up(0);
    guard.wait_for("closed");
    assert_eq!(rig.setting(), "FIRST 1 (s1)");
    let windows = rig.windows();
    assert_eq!(windows.len(), 1, "one exposure, however many guards: {windows:?}");
    assert_eq!(rig.value("SELECT current_setting('pgrig.guard_asked', true)"), "");
}

/// The files are gone, the server is not.
#[test]
fn a_guard_without_its_files_still_knows_what_to_restore() {
    let mut rig = Rig::new("FIRST 1 (s1)", 1);
    let mut client = rig.primary.connect().unwrap();
    client.batch_execute("SET synchronous_commit = local").unwrap();
    // As ALTER SYSTEM by hand: the setting stands in postgresql.auto.conf.
    client.batch_execute("ALTER SYSTEM SET synchronous_standby_names = 's1'").unwrap();
    client.batch_execute("SELECT pg_reload_conf()").unwrap();
    let guard = rig.guard(&["--grace", "1s"]);
    rig.standbys[0].kill9().unwrap();
    let writer = rig.writer();
    guard.wait_for("in_force");
    let (code, said) = guard.end();
    assert_eq!(code, Some(0));
    assert!(said.contains("left no sync mode in force; s1 is asked for"), "{said}");
    assert!(said.contains("exposure window 1 is open"), "{said}");
    std::fs::remove_dir_all(rig.state()).unwrap();

    // The primary's own restart changes nothing either.
    drop(writer);
    rig.primary.restart().unwrap();
    let guard = rig.guard(&["--grace", "1s"]);
    let windows = rig.windows();
    assert_eq!(windows[0].opened.confirmed_lsn, None, "nobody knows where it began");
    rig.start_and_catch_up(0);
    guard.wait_for("closed");
    assert_eq!(rig.setting(), "s1");
    let auto = std::fs::read_to_string(rig.primary.data().join("postgresql.auto.conf")).unwrap();
    assert!(auto.contains("synchronous_standby_names = 's1'"), "{auto}");
}

#[test]
fn a_standby_is_left_alone_until_it_is_promoted() {
    let mut rig = Rig::new("", 1);
    let standby = rig.standbys[0].endpoint().to_string();
    let guard = Guard::start(rig.command_to(&standby, &["--grace", "1s"]));
    guard.wait_for("standby");
    rig.primary.stop(lab::StopMode::Fast).unwrap();
    rig.standbys[0].promote().unwrap();
    let (_, guarding) = guard.wait_for("guarding");
    assert_eq!(guarding["asked"], "");
    guard.wait_for("nothing_asked");
    // From now on there is something to guard.
    let promoted = &rig.standbys[0];
    promoted.value("ALTER SYSTEM SET synchronous_standby_names = 'nobody'").unwrap();
    promoted.value("SELECT pg_reload_conf()").unwrap();
    let (_, adopted) = guard.wait_for("adopted");
    assert_eq!(adopted["setting"], "nobody");
    promoted.value("CREATE TABLE after_promotion ()").unwrap();
    guard.wait_for("in_force");
    assert_eq!(rig.windows()[0].opened.timeline, 2);
}

/// Everybody who watches a guard: a person, a monitor, Prometheus, systemd, and the operator's command.
#[test]
fn those_who_watch_a_guard_see_what_is_exposed() {
    let mut rig = Rig::new("FIRST 1 (s1, s2)", 1);
    let place = tempfile::tempdir().unwrap();
    let (socket, log) = (place.path().join("notify"), place.path().join("log"));
    let systemd = Systemd::listen(&socket);
    let exec = format!("{{ echo $PGRIG_EVENT; cat; }} >>{}", log.display());
    let mut command = rig.command(&["--grace", "1s", "--metrics", "127.0.0.1:0", "--exec", &exec]);
    command.env("NOTIFY_SOCKET", &socket);
    let guard = Guard::start(command);
    guard.wait_for("guarding");
    let said = guard.narration();
    let metrics = said.split("http://").nth(1).and_then(|rest| rest.split('/').next()).unwrap();
    let prometheus = Prometheus::scraping(place.path(), metrics);
    for words in ["READY=1", "WATCHDOG=1", "STATUS=commits wait for FIRST 1 (s1, s2)"] {
        systemd.hears(words);
    }
    let (code, said) = rig.status(&[]);
    assert_eq!(code, 0, "{said}");
    assert!(said.contains("guard      runs: process "), "{said}");
    assert!(said.contains("sync mode  FIRST 1 (s1, s2), as asked for"), "{said}");
    assert!(said.contains("standbys   s1, streams, "), "{said}");
    assert!(said.contains("           s2, is not connected"), "{said}");
    assert!(said.contains("exposure   none is recorded"), "{said}");
    await_figure(metrics, "pgrig_guard_exposed 0");

    rig.standbys[0].kill9().unwrap();
    let writer = rig.writer();
    guard.wait_for("in_force");
    systemd.hears("STATUS=EXPOSED since ");
    systemd.hears("WATCHDOG=1");
    let (code, said) = rig.status(&[]);
    assert_eq!(code, 1, "{said}");
    assert!(said.contains("sync mode  off; FIRST 1 (s1, s2) is asked for"), "{said}");
    assert!(said.contains("standbys   s1, is not connected"), "{said}");
    assert!(said.contains("1 window recorded, the last open: since "), "{said}");
    let (code, said) = rig.status(&["--json"]);
    let json: serde_json::Value = serde_json::from_str(&said).unwrap();
    check_schema(&json);
    assert_eq!((code, &json["verdict"]), (1, &"exposed".into()));
    assert_eq!(
        (&json["server"]["in_force"], &json["server"]["missing"][1]),
        (&"".into(), &"s2".into())
    );
    assert_eq!(json["windows"][0]["opened"]["confirmations"], 0);
    for figure in [
        "pgrig_guard_exposed 1",
        "pgrig_guard_confirmations_asked 1",
        "pgrig_guard_confirmations_in_force 0",
        "pgrig_guard_events_total{event=\"changing\"} 1",
    ] {
        await_figure(metrics, figure);
    }
    let board = include_str!("../../../../docs/grafana/pgrig-guard.json");
    match &prometheus {
        // Only a standby that streams is behind by so many bytes.
        Some(prometheus) => prometheus.answers(board, &["pgrig_guard_standby_behind_bytes"]),
        None => testing::skip::because("there is no prometheus"),
    }
    drop(writer);
    rig.start_and_catch_up(0);
    guard.wait_for("closed");
    await_figure(metrics, "pgrig_guard_exposed 0");
    let (exit, said) = guard.end();
    assert_eq!(exit, Some(0), "{said}");
    if let Some(prometheus) = prometheus {
        // The port is closed.
        prometheus.shows(board, "Endpoint", "0");
    }
    systemd.hears("STOPPING=1");
    let log = std::fs::read_to_string(log).unwrap();
    let kinds: Vec<&str> = log.lines().step_by(2).collect();
    assert_eq!(kinds, ["changing", "changing", "closed"], "{log}");
    assert!(log.contains("\"window\":1"), "{log}");

    // The server notices a moment later.
    let no_guard = "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory'";
    rig.primary.poll_query_until(no_guard, "0", PATIENCE).unwrap();
    let (code, said) = rig.status(&[]);
    assert!(code == 4 && said.contains("guard      none runs"), "{said}");
    rig.primary.stop(lab::StopMode::Fast).unwrap();
    let (code, said) = rig.status(&["--json"]);
    let json: serde_json::Value = serde_json::from_str(&said).unwrap();
    assert_eq!(
        (code, &json["verdict"], &json["server"]),
        (2, &"unreachable".into(), &None::<()>.into())
    );
    check_schema(&json);
    assert_eq!(rig.status(&["--nonsense"]).0, 2);
}

/// The other end of the socket that `NOTIFY_SOCKET` names.
struct Systemd(Receiver<String>);

impl Systemd {
    fn listen(path: &Path) -> Systemd {
        let socket = UnixDatagram::bind(path).unwrap();
        let (heard, words) = mpsc::channel();
        // It reads at once, as systemd does: a full socket takes no more.
        std::thread::spawn(move || {
            let mut line = [0; 500];
            while let Ok(length) = socket.recv(&mut line) {
                let words = String::from_utf8_lossy(&line[..length]).into_owned();
                if heard.send(words).is_err() {
                    return;
                }
            }
        });
        Systemd(words)
    }

    /// Waits for words that have not been waited for.
    #[track_caller]
    fn hears(&self, words: &str) {
        while !self.0.recv_timeout(PATIENCE).expect(words).starts_with(words) {}
    }
}

#[track_caller]
fn check_schema(status: &serde_json::Value) {
    let schema = include_str!("../../../../docs/guard-status.schema.json");
    let schema = serde_json::from_str(schema).unwrap();
    assert_eq!(testing::schema::faults(&schema, status), Vec::<String>::new());
}

/// Waits until the guard shows a figure: its look takes a moment.
#[track_caller]
fn await_figure(address: &str, figure: &str) {
    let deadline = std::time::Instant::now() + PATIENCE;
    loop {
        let mut stream = TcpStream::connect(address).unwrap();
        stream.write_all(b"GET /metrics HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n").unwrap();
        let mut text = String::new();
        stream.read_to_string(&mut text).unwrap();
        if text.lines().any(|line| line == figure) {
            return;
        }
        assert!(std::time::Instant::now() < deadline, "no {figure} in {text}");
        std::thread::sleep(Duration::from_millis(50));
    }
}

fn lsn(text: &Option<String>) -> guard::Lsn {
    text.as_deref().unwrap().parse().unwrap()
}
