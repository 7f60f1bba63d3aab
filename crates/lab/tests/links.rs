//! Links of a lab between real servers. This program is their processes, too, by its first
//! argument.

use std::env;
use std::io::{Write, stderr, stdout};
use std::panic::catch_unwind;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use lab::{
    Direction, Host, Lab, LabConfig, Link, LinkConfig, Listen, Node, NodeConfig, Settings, Shape,
};

/// A busy machine may take this long for what takes milliseconds.
const LONG: Duration = Duration::from_secs(60);
const MS: Duration = Duration::from_millis(1);

fn main() -> ExitCode {
    let arguments: Vec<String> = env::args().skip(1).collect();
    match arguments.split_first() {
        Some((first, rest)) if first == "link" => match fault::link::serve(rest, &mut stdout()) {
            Ok(()) => ExitCode::SUCCESS,
            Err(why) => {
                say(&why);
                ExitCode::FAILURE
            }
        },
        _ => tests(&arguments),
    }
}

/// As the usual harness does: what fails is named, and makes the program fail.
fn tests(arguments: &[String]) -> ExitCode {
    const TESTS: [(&str, fn()); 3] = [
        ("commits_wait_for_a_slow_relay", commits_wait_for_a_slow_relay),
        ("a_relay_is_cut_healed_and_reset", a_relay_is_cut_healed_and_reset),
        ("a_relay_is_as_public_as_its_server", a_relay_is_as_public_as_its_server),
    ];
    let wanted: Vec<_> = arguments.iter().filter(|word| !word.starts_with('-')).collect();
    let mut code = ExitCode::SUCCESS;
    for (name, test) in TESTS {
        if !wanted.is_empty() && !wanted.iter().any(|word| name.contains(word.as_str())) {
            continue;
        }
        let verdict = if catch_unwind(test).is_ok() { "ok" } else { "FAILED" };
        say(&format!("test {name} ... {verdict}"));
        if verdict != "ok" {
            code = ExitCode::FAILURE;
        }
    }
    code
}

fn say(text: &str) {
    writeln!(stderr(), "{text}").expect("somebody to tell");
}

fn open() -> Lab {
    let installation = lab::find::find(None).expect("the tests need an installed PostgreSQL");
    Lab::open(LabConfig::new(installation)).unwrap()
}

fn settings(pairs: &[(&str, &str)]) -> Settings {
    let small = [("shared_buffers", "16MB"), ("max_connections", "20")];
    small.iter().chain(pairs).copied().collect()
}

fn relay_to(lab: &Lab, primary: &Node, shape: Shape) -> Link {
    let program = env::current_exe().unwrap();
    lab.link("wan", LinkConfig { program, to: primary.endpoint(), shape }).unwrap()
}

fn primary(lab: &Lab, pairs: &[(&str, &str)]) -> Node {
    let mut primary = lab.node("primary", NodeConfig::new(settings(pairs))).unwrap();
    primary.init().unwrap();
    primary.start().unwrap();
    primary.connect().unwrap().batch_execute("CREATE TABLE t (i int)").unwrap();
    primary
}

/// A standby that streams by `link`.
fn standby(lab: &Lab, primary: &Node, link: &Link) -> Node {
    let mut standby = lab.node("standby1", NodeConfig::new(settings(&[]))).unwrap();
    standby.init_from_backup(primary, Some(link.endpoint())).unwrap();
    standby.start().unwrap();
    primary.wait_for_standby(&standby, None, LONG).unwrap();
    standby
}

fn commits_wait_for_a_slow_relay() {
    let lab = open();
    let mut primary = primary(&lab, &[]);
    let mut link = relay_to(&lab, &primary, Shape::default());
    let standby = standby(&lab, &primary, &link);
    primary.append_conf("synchronous_standby_names = 'standby1'");
    primary.reload().unwrap();
    primary.wait_for_standby(&standby, Some("sync"), LONG).unwrap();
    let mut client = primary.connect().unwrap();
    let mut commit = || {
        let began = Instant::now();
        client.batch_execute("INSERT INTO t VALUES (1)").unwrap();
        began.elapsed()
    };
    let quickest = (0..10).map(|_| commit()).min().unwrap();
    say(&link.delay(20 * MS).unwrap());
    let slow = (0..5).map(|_| commit()).min().unwrap();
    say(&format!("a commit takes {quickest:?}, and {slow:?} by a link with a delay of 20 ms"));
    assert!(slow >= 40 * MS, "{slow:?}");
    assert!(link.counters().unwrap().to_bytes > 0);
    assert!(link.host_pid().is_some());
    link.delay(Duration::ZERO).unwrap();
    primary.wait_for_catchup(&standby, LONG).unwrap();
}

fn a_relay_is_cut_healed_and_reset() {
    let lab = open();
    let primary = primary(&lab, &[("wal_sender_timeout", "2s")]);
    let mut link = relay_to(&lab, &primary, Shape::default());
    let standby = standby(&lab, &primary, &link);
    for direction in [Direction::Both, Direction::To, Direction::From] {
        say(&link.cut(direction).unwrap());
        // Nobody is told; the primary notices by its timeout.
        assert_eq!(primary.replication().unwrap().len(), 1, "{direction:?}");
        let gone = || primary.replication().map(|rows| rows.is_empty().then_some(()));
        assert!(lab::wait_until(LONG, gone).unwrap().is_some(), "{direction:?}");
        say(&link.heal().unwrap());
        primary.wait_for_standby(&standby, None, LONG).unwrap();
    }
    assert_eq!(link.reset().unwrap(), "1 connection was reset");
    primary.wait_for_standby(&standby, None, LONG).unwrap();
    primary.wait_for_catchup(&standby, LONG).unwrap();
    drop(standby);
    let error = link.reset().unwrap_err().to_string();
    assert_eq!(error, "resetting link wan: no connection goes by it");
}

fn a_relay_is_as_public_as_its_server() {
    let lab = open();
    let config = NodeConfig { listen: Listen::Loopback, ..NodeConfig::new(settings(&[])) };
    let mut node = lab.node("primary", config).unwrap();
    node.init().unwrap();
    node.start().unwrap();
    let link = relay_to(&lab, &node, Shape { delay: 5 * MS, bytes_per_s: None });
    let endpoint = link.endpoint();
    assert_eq!(endpoint.host, Host::Tcp("127.0.0.1".into()));
    let log_in = |password: &str| {
        let endpoint = lab::Endpoint { password: Some(password.into()), ..endpoint.clone() };
        let config: postgres::Config = endpoint.to_string().parse().unwrap();
        config.connect(postgres::NoTls)
    };
    assert!(log_in("wrong").is_err(), "the server's own password is asked for");
    let mut client = log_in(endpoint.password.as_ref().unwrap()).unwrap();
    let began = Instant::now();
    client.simple_query("SELECT 1").unwrap();
    assert!(began.elapsed() >= 10 * MS);

    let again = LinkConfig { program: "/nonexistent".into(), ..link.config().clone() };
    let error = lab.link("lan", again).unwrap_err().to_string();
    assert!(error.starts_with("running /nonexistent in "), "{error}");
}
