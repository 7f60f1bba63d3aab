//! Every command that takes a while: the first signal ends it within 10 s, the second one at once, and
//! nothing is left behind.

use std::fs;
use std::io::Read;
use std::net::TcpListener;
use std::os::unix::fs::PermissionsExt;
use std::process::Child;
use std::time::{Duration, Instant};

use lab::{Lab, Node};
use rustix::process::Signal;
use testing::servers::server;

use crate::ending::{ENDS_WITHIN, desk};
use crate::interruption::signal;
use crate::{Desk, names};

/// At once, on a machine that does other things as well.
const AT_ONCE: Duration = Duration::from_secs(5);

/// A server that takes connections and says nothing.
fn mute() -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    std::thread::spawn(move || listener.incoming().flatten().collect::<Vec<_>>());
    port
}

/// What is said until the end, and how it ended.
struct Ended {
    code: Option<i32>,
    took: Duration,
    said: String,
}

/// Lets a command work, then sends so many signals, half a second after each other.
fn signalled(desk: &Desk, arguments: &[&str], works: Duration, signals: usize) -> Ended {
    let mut command = desk.command(arguments);
    command.env("TMPDIR", desk.path("tmp"));
    let child: Child = command.spawn().unwrap();
    let mut child = child;
    let mut err = child.stderr.take().unwrap();
    let reader = std::thread::spawn(move || {
        let mut said = String::new();
        let _ = err.read_to_string(&mut said);
        said
    });
    std::thread::sleep(works);
    let first = Instant::now();
    signal(&child, Signal::TERM);
    let mut last = first;
    for _ in 1..signals {
        std::thread::sleep(Duration::from_millis(500));
        last = Instant::now();
        if child.try_wait().unwrap().is_none() {
            signal(&child, Signal::TERM);
        }
    }
    let code = child.wait().unwrap().code();
    Ended { code, took: last.elapsed(), said: reader.join().unwrap() }
}

/// Has a command end by one signal and by two.
fn check(desk: &Desk, arguments: &[&str], works_ms: u64, code: i32, is_clean: &dyn Fn()) {
    for (signals, most) in [(1, ENDS_WITHIN), (2, AT_ONCE)] {
        let ended = signalled(desk, arguments, Duration::from_millis(works_ms), signals);
        let what = format!("{arguments:?}, {signals} signals: {:?}: {}", ended.took, ended.said);
        println!("{:.1} s: pgrig {}", ended.took.as_secs_f64(), arguments[0]);
        // A command that has begun nothing yet is ended by the signal itself.
        let codes = [Some(code), Some(130), None];
        assert!(codes.contains(&ended.code), "{:?}: {what}", ended.code);
        assert!(ended.took < most, "{what}");
        assert!(!ended.said.contains("panicked"), "{what}");
        testing::until("no lab is left", || names(&desk.path("tmp")).is_empty());
        is_clean();
    }
}

#[test]
fn a_comparison_ends() {
    let desk = desk();
    crate::compare::write_work(&desk);
    let compare = [&crate::compare::ITSELF[..], &["--max-time", "60s"]].concat();
    for works_ms in [300, 4_000, 9_000] {
        check(&desk, &compare, works_ms, 130, &|| {});
    }
}

#[test]
fn a_run_on_a_target_ends_and_leaves_no_schema() {
    let (node, _lab) = server(&[("shared_buffers", "16MB"), ("fsync", "off")]);
    let desk = desk();
    desk.write_study("mine", "");
    let target = node.endpoint().to_string();
    let run = ["run", "mine", "--rounds", "20", "--target", &target, "--out", "record"];
    for works_ms in [400, 2_500, 5_000] {
        check(&desk, &run, works_ms, 130, &|| {
            if desk.path("record").exists() {
                desk.pgrig(&["show", "record"]).ended(0);
                fs::remove_dir_all(desk.path("record")).unwrap();
            }
            let left =
                || node.value("SELECT count(*) FROM pg_namespace WHERE nspname = 'pgrig'").unwrap();
            // What the second signal leaves there is dropped by the next run.
            let _ = left();
        });
    }
    let ended = signalled(&desk, &run, Duration::from_millis(2_500), 1);
    let left = node.value("SELECT count(*) FROM pg_namespace WHERE nspname = 'pgrig'").unwrap();
    assert_eq!(left.as_deref(), Some("0"), "{}", ended.said);
}

#[test]
fn a_run_with_power_cuts_ends() {
    if !rustix::process::geteuid().is_root() {
        return testing::skip::no_root();
    }
    let desk = desk();
    desk.write_study("cuts", CUTS);
    let run = ["run", "cuts", "--rounds", "9", "--out", "record"];
    for works_ms in [2_500, 6_000, 9_000] {
        check(&desk, &run, works_ms, 130, &|| {
            if desk.path("record/record.json").exists() {
                desk.pgrig(&["show", "record"]).ended(0);
            }
            let _ = fs::remove_dir_all(desk.path("record"));
        });
    }
    let mounts = fs::read_to_string("/proc/mounts").unwrap();
    assert!(!mounts.contains(&desk.path("tmp").display().to_string()), "{mounts}");
}

/// A server that loses its power.
const CUTS: &str = r#"
[topologies.cut.nodes.primary]
disk = { cut = "filesystem", size = "1GB" }
[variants.cut]
topology = "cut"
[scenarios.cut]
run = ["insert"]
variants = ["cut"]
on_loss = "reconnect"
timeline = [{ at = "300ms", power_cut = "primary" }]
"#;

#[test]
fn a_guard_and_a_load_end_whatever_their_server_does() {
    let desk = desk();
    let port = mute();
    let nowhere = format!("host=127.0.0.1 port={port} user=u dbname=d connect_timeout=60");
    let state = desk.path("state").display().to_string();
    let guard = ["guard", "--no-automatic-failover", "--state", &state, &nowhere];
    fs::create_dir(desk.path("state")).unwrap();
    fs::set_permissions(desk.path("state"), fs::Permissions::from_mode(0o700)).unwrap();
    check(&desk, &guard, 700, 130, &|| {});
    check(&desk, &["bench", "-n", "-S", &nowhere], 700, 1, &|| {});
    let (node, _lab) = server(&[("shared_buffers", "16MB"), ("fsync", "off")]);
    let conninfo = node.endpoint().to_string();
    desk.write("wait.sql", "SELECT pg_sleep(600);\n");
    for works_ms in [300, 2_000] {
        check(
            &desk,
            &["bench", "-n", "-f", "wait.sql", "-T", "600", &conninfo],
            works_ms,
            1,
            &|| {},
        );
        check(&desk, &["bench", "-i", "-s", "60", "-q", &conninfo], works_ms, 1, &|| {});
    }
    let sessions = "SELECT count(*) FROM pg_stat_activity \
                    WHERE backend_type = 'client backend' AND pid <> pg_backend_pid()";
    testing::until("no session is left", || node.value(sessions).unwrap().as_deref() == Some("0"));
}

#[test]
fn a_cluster_that_is_changed_ends() {
    let settings = [("shared_buffers", "16MB"), ("wal_level", "logical")];
    let servers: Vec<(Node, Lab)> = (0..4).map(|_| server(&settings)).collect();
    let place: Vec<String> = servers.iter().map(|(node, _)| node.endpoint().to_string()).collect();
    let (proxy, a, b, c) = (&*place[0], &*place[1], &*place[2], &*place[3]);
    let desk = desk();
    desk.write(
        "bucket.sql",
        "CREATE TABLE {bucket}.t (id int PRIMARY KEY);\n\
         CREATE FUNCTION {bucket}.put(key int) RETURNS void LANGUAGE plpgsql AS $$\n\
         BEGIN INSERT INTO {bucket}.t VALUES (key); END $$;\n",
    );
    let create = ["create", "--node", a, "--node", b, "--template", "bucket.sql", "--buckets", "8"];
    desk.pgrig(&[&["shard"], &create[..], &["--proxy", proxy]].concat()).ended(0);
    // A slot waits for every transaction that had begun before it.
    let mut holders: Vec<_> = servers[1..3].iter().map(|one| one.0.connect().unwrap()).collect();
    for holder in &mut holders {
        holder.batch_execute("BEGIN; SELECT txid_current()").unwrap();
    }
    let add = ["shard", "add", c, "--grace", "0", "--proxy", proxy];
    check(&desk, &add, 3_000, 130, &|| {
        let said = desk.pgrig(&["shard", "status", "--proxy", proxy]).ended(0);
        assert!(said.out.contains("8 buckets"), "{}", said.out);
    });
    drop(holders);
    desk.pgrig(&add).ended(0);
}
