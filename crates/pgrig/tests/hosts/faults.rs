//! Faults of the rig itself: hosts that are killed or hang, a conductor that is killed.

use std::io::{BufRead, BufReader, Read};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use testing::{harness::say, until};

use crate::desk::{Desk, PGRIG, doing, here};
use crate::network::sh;

/// How soon a host that is gone must be noticed.
const NOTICED: Duration = Duration::from_secs(5);

fn signal(pid: i32, signal: Signal) {
    kill_process(Pid::from_raw(pid).expect("a process id"), signal).expect("a process of ours");
}

/// Whether `pid` is below `ancestor`.
fn is_below(pid: i32, ancestor: i32) -> bool {
    let table = os::processes::all().expect("/proc");
    os::processes::tree(&table, ancestor).contains(&pid)
}

/// Those of a role below a process.
fn below(role: &str, ancestor: i32) -> Vec<i32> {
    doing(role).into_iter().filter(|pid| is_below(*pid, ancestor)).collect()
}

/// Starts a long load on three hosts and waits until it runs.
fn begin(desk: &Desk, words: &str) -> (std::process::Child, i32) {
    desk.execute("CREATE TABLE IF NOT EXISTS done (client int); TRUNCATE done");
    desk.write("insert.sql", "INSERT INTO done VALUES (:client_id);\n");
    desk.write("lab.toml", &here(&["a", "b", "c"]));
    let words =
        format!("-n -f insert.sql -c 6 --hosts=lab.toml --interval=100 --json=out.json {words}");
    let bench = desk.start(&desk.conninfo(), &words);
    let pid = bench.id().cast_signed();
    until("transactions of every client", || {
        desk.rows("SELECT FROM done GROUP BY client").len() == 6
    });
    (bench, pid)
}

fn expect_nothing(desk: &Desk, ids: &[i32]) {
    until("the end of every process", || {
        ids.iter().all(|pid| os::processes::of(*pid).is_none_or(|one| one.is_zombie()))
    });
    let clients = "SELECT FROM pg_stat_activity WHERE backend_type = 'client backend' AND pid <> pg_backend_pid()";
    until("the end of every session", || desk.rows(clients).is_empty());
}

pub(crate) fn a_host_that_is_killed_or_hangs_is_noticed() {
    let desk = Desk::new();
    // Killed: the generator, or `pgrig host`, or stopped for good.
    let cases = [("generator", Signal::KILL), ("host", Signal::KILL), ("host", Signal::STOP)];
    for (role, how) in cases {
        let (mut bench, pid) = begin(&desk, "-T 600");
        let all: Vec<i32> = below("host", pid).into_iter().chain(below("generator", pid)).collect();
        assert_eq!(all.len(), 6, "{all:?}");
        let victim = below(role, pid)[1];
        signal(victim, how);
        let began = Instant::now();
        let mut err = String::new();
        bench.stderr.take().unwrap().read_to_string(&mut err).unwrap();
        let code = bench.wait().unwrap().code();
        let noticed = began.elapsed();
        assert_eq!(code, Some(2), "{role} {how:?}: {err}");
        assert!(err.contains(" lost: ") && err.contains("host "), "{role} {how:?}: {err}");
        // What is slow on a busy machine is the end, not the notice.
        assert!(noticed < 2 * NOTICED, "{role} {how:?}: noticed after {noticed:?}");
        let json = desk.json("out.json");
        assert_eq!(json["end"], "host lost", "{role} {how:?}");
        let hosts = json["hosts"].as_array().unwrap();
        let lost = hosts.iter().filter(|host| !host["lost"].is_null()).count();
        assert_eq!(lost, 1, "{role} {how:?}: {hosts:?}");
        let measured = hosts.iter().filter(|host| host["transactions"].as_u64() > Some(0)).count();
        assert_eq!(measured, 2, "{role} {how:?}: what the others measured");
        expect_nothing(&desk, &all);
    }

    let (mut bench, pid) = begin(&desk, "-T 4 --on-host-loss=go-on");
    let all: Vec<i32> = below("host", pid).into_iter().chain(below("generator", pid)).collect();
    signal(below("host", pid)[0], Signal::KILL);
    let mut err = String::new();
    bench.stderr.take().unwrap().read_to_string(&mut err).unwrap();
    assert_eq!(bench.wait().unwrap().code(), Some(2), "{err}");
    assert!(err.contains("is lost, the others go on: "), "{err}");
    let json = desk.json("out.json");
    assert_eq!(json["end"], "completed");
    let seconds = json.pointer("/window/seconds").unwrap().as_f64().unwrap();
    assert!((seconds - 4.0).abs() < 0.5, "{seconds}");
    expect_nothing(&desk, &all);
}

/// So many hosts are killed, each at a random moment of a load; `PGRIG_HOST_KILLS` asks for more.
pub(crate) fn hosts_killed_at_random_moments_are_noticed() {
    let kills = std::env::var("PGRIG_HOST_KILLS").ok().and_then(|text| text.parse().ok());
    let kills: u32 = kills.unwrap_or(3);
    let mut prng = stats::Prng::new(u64::from(std::process::id()));
    let desk = Desk::new();
    let mut slowest = Duration::ZERO;
    for _ in 0..kills {
        let (mut bench, pid) = begin(&desk, "-T 600");
        let all: Vec<i32> = below("host", pid).into_iter().chain(below("generator", pid)).collect();
        // The moment is what the test varies.
        std::thread::sleep(Duration::from_millis(prng.below(1_500) as u64));
        let how = if prng.below(3) == 0 { Signal::STOP } else { Signal::KILL };
        let hosts = below("host", pid);
        signal(hosts[prng.below(hosts.len())], how);
        let began = Instant::now();
        let mut said = BufReader::new(bench.stderr.take().unwrap()).lines();
        let noticed = said.find_map(|line| line.ok().filter(|line| line.contains(" lost: ")));
        slowest = slowest.max(began.elapsed());
        assert!(noticed.is_some(), "it ended without a word about the host");
        assert_eq!(bench.wait().unwrap().code(), Some(2));
        expect_nothing(&desk, &all);
    }
    say(&format!("{kills} hosts were killed or stopped: noticed within {slowest:.1?} at most"));
    assert!(slowest < 2 * NOTICED, "noticed after {slowest:?}");
}

pub(crate) fn nothing_is_left_when_the_rig_is_killed() {
    let desk = Desk::new();
    let (mut bench, pid) = begin(&desk, "-T 600");
    let all: Vec<i32> = below("host", pid).into_iter().chain(below("generator", pid)).collect();
    assert_eq!(all.len(), 6, "{all:?}");
    bench.kill().unwrap();
    bench.wait().unwrap();
    expect_nothing(&desk, &all);
}

/// The act of a trial's watchdog: every caller that waits for a server gets an error, on a host as well.
pub(crate) fn servers_of_labs_can_be_killed_while_a_statement_runs() {
    if testing::skip::is_root() {
        // The namespace of these tests is new.
        sh("ip link set lo up");
    }
    let here = testing::servers::lab();
    let program = host::Program {
        path: PGRIG.into(),
        version: env!("CARGO_PKG_VERSION").to_owned(),
        push: false,
    };
    let inventory = host::Inventory::parse("[hosts.h]\n").expect("an inventory");
    let is_interrupted: host::Interrupted = std::sync::Arc::new(|| false);
    let hosts = host::reach(&inventory.hosts, &program, &is_interrupted).expect("a host");
    let address = "127.0.0.1".parse().expect("an address");
    let there =
        lab::Lab::on_host(&hosts[0], address, &"secret".into(), None).expect("a lab opens there");
    let nodes = [(&here, "here"), (&there, "there")].map(|(lab, name)| {
        let mut config = lab::NodeConfig::new(lab::Settings::default());
        if name == "there" {
            let access = lab::RemoteAccess { address, clients: vec![address], tls: false };
            config.remote = Some(access);
        }
        let mut node = lab.node(name, config).expect("a node is made");
        node.init().expect("initdb works");
        node.start().expect("the server starts");
        node
    });
    std::thread::scope(|scope| {
        let waiting = nodes.each_ref().map(|node| {
            let mut session = node.connect().expect("connects");
            scope.spawn(move || session.batch_execute("SELECT pg_sleep(600)").is_err())
        });
        lab::kill_servers();
        for waits in waiting {
            assert!(waits.join().expect("no panic"), "the server is gone");
        }
    });
    assert!(there.is_alive() && here.is_alive(), "the labs stay");
    until("the end of the servers", || nodes.iter().all(|node| !node.is_running().expect("it")));
}
