//! Links of a lab between real servers. This program is their processes, too, by its first
//! argument.

use std::env;
use std::io::stdout;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use lab::{
    Direction, Error, Host, Lab, Link, LinkBy, LinkConfig, Listen, Node, NodeConfig, TrafficShape,
};
use os::command::{ChildProcess, ProcessCommand, ProcessOutput};
use os::user::SystemUser;
use rustix::process::{Pid, Signal, kill_process};
use testing::harness::say;
use testing::{servers, skip};

/// A busy machine may take this long for what takes milliseconds.
const LONG: Duration = Duration::from_secs(60);
const MS: Duration = Duration::from_millis(1);

fn main() -> ExitCode {
    let arguments: Vec<String> = env::args().skip(1).collect();
    match arguments.split_first() {
        Some((first, rest)) if first == "link" => {
            fault::link::serve(rest, &mut stdout()).expect("a relay");
            ExitCode::SUCCESS
        }
        Some((first, _)) if first == "rig" => rig(),
        Some((first, _)) if first == "plain" => plain(),
        _ => tests(),
    }
}

fn tests() -> ExitCode {
    let code = testing::run![
        commits_wait_for_a_slow_relay,
        a_relay_is_cut_healed_and_reset,
        a_relay_is_as_public_as_its_server,
        a_wire_drops_packets_without_a_word,
        a_rig_that_is_killed_leaves_no_network,
        a_plain_user_is_told_what_a_wire_needs,
    ];
    HOMES.lock().unwrap().clear();
    code
}

fn relay_to(lab: &Lab, primary: &Node, shape: TrafficShape) -> Link {
    let program = env::current_exe().unwrap();
    let (by, to) = (LinkBy::Relay, primary.endpoint());
    lab.link("wan", LinkConfig { program, by, to, shape }).unwrap()
}

fn primary(lab: &Lab, pairs: &[(&str, &str)]) -> Node {
    let mut primary = lab.node("primary", NodeConfig::new(servers::settings(pairs))).unwrap();
    primary.init().unwrap();
    primary.start().unwrap();
    primary.connect().unwrap().batch_execute("CREATE TABLE t (i int)").unwrap();
    primary
}

/// A standby that streams by `link`.
fn standby(lab: &Lab, primary: &Node, link: &Link) -> Node {
    let mut standby = lab.node("standby1", NodeConfig::new(servers::settings(&[]))).unwrap();
    standby.init_from_backup(primary, Some(link.endpoint())).unwrap();
    standby.start().unwrap();
    primary.wait_for_standby(&standby, None, LONG).unwrap();
    standby
}

fn commits_wait_for_a_slow_relay() {
    let lab = servers::lab();
    let mut primary = primary(&lab, &[]);
    let mut link = relay_to(&lab, &primary, TrafficShape::default());
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

/// Cuts the link in each direction, heals it, and resets its connection.
fn cut_heal_and_reset(primary: &Node, standby: &Node, link: &mut Link) {
    for direction in [Direction::Both, Direction::To, Direction::From] {
        say(&link.cut(direction).unwrap());
        // Nobody is told; the primary notices by its timeout.
        assert_eq!(primary.replication().unwrap().len(), 1, "{direction:?}");
        let gone = || primary.replication().map(|rows| rows.is_empty().then_some(()));
        assert!(lab::wait_until(LONG, gone).unwrap().is_some(), "{direction:?}");
        say(&link.heal().unwrap());
        primary.wait_for_standby(standby, None, LONG).unwrap();
    }
    assert_eq!(link.reset().unwrap(), "1 connection was reset");
    primary.wait_for_standby(standby, None, LONG).unwrap();
}

fn a_relay_is_cut_healed_and_reset() {
    let lab = servers::lab();
    let primary = primary(&lab, &[("wal_sender_timeout", "2s")]);
    let mut link = relay_to(&lab, &primary, TrafficShape::default());
    let standby = standby(&lab, &primary, &link);
    cut_heal_and_reset(&primary, &standby, &mut link);
    primary.wait_for_catchup(&standby, LONG).unwrap();
    drop(standby);
    // The relay hears of the standby's end in its own time.
    let refused = lab::wait_until(LONG, || Ok::<_, lab::Error>(link.reset().err()));
    let error = refused.unwrap().expect("a reset without a connection is refused").to_string();
    assert_eq!(error, "resetting link wan: no connection goes by it");
}

fn a_relay_is_as_public_as_its_server() {
    let lab = servers::lab();
    let config = NodeConfig { listen: Listen::Loopback, ..NodeConfig::new(servers::settings(&[])) };
    let mut node = lab.node("primary", config).unwrap();
    node.init().unwrap();
    node.start().unwrap();
    let link = relay_to(&lab, &node, TrafficShape { delay: 5 * MS, bytes_per_s: None });
    let endpoint = link.endpoint();
    assert_eq!(endpoint.host, Host::Tcp("127.0.0.1".into()));
    let log_in = |password: &str| {
        let endpoint = lab::Endpoint { password: Some(password.into()), ..endpoint.clone() };
        let config: postgres::Config = endpoint.to_string().parse().unwrap();
        config.connect(postgres::NoTls)
    };
    assert!(log_in("wrong").is_err(), "the server's own password is asked for");
    let mut client = log_in(endpoint.password.as_ref().unwrap().reveal()).unwrap();
    let began = Instant::now();
    client.simple_query("SELECT 1").unwrap();
    assert!(began.elapsed() >= 10 * MS);

    let (program, by, to) = ("/nonexistent".into(), LinkBy::Relay, node.endpoint());
    let again = LinkConfig { program, by, to, shape: link.shape() };
    let error = lab.link("lan", again).unwrap_err().to_string();
    assert!(error.starts_with("running /nonexistent in "), "{error}");
}

/// A node with a network of its own.
fn apart(lab: &Lab, name: &str, pairs: &[(&str, &str)]) -> Result<Node, Error> {
    let config = NodeConfig { own_network: true, ..NodeConfig::new(servers::settings(pairs)) };
    lab.node(name, config)
}

fn wire(lab: &Lab, from: &Node, to: &Node) -> Link {
    let networks = [from, to].map(|node| node.network().unwrap().clone());
    let [from, to_network] = networks;
    let by = LinkBy::Namespace { from, to: to_network };
    let (program, shape) = (env::current_exe().unwrap(), TrafficShape::default());
    lab.link("wan", LinkConfig { program, by, to: to.endpoint(), shape }).unwrap()
}

/// A primary and a standby that streams by a wire.
fn pair(lab: &Lab) -> (Node, Node, Link) {
    let mut primary = apart(lab, "primary", &[("wal_sender_timeout", "2s")]).unwrap();
    primary.init().unwrap();
    primary.start().unwrap();
    let receiver = [("wal_receiver_timeout", "2s"), ("wal_retrieve_retry_interval", "200ms")];
    let mut standby = apart(lab, "standby1", &receiver).unwrap();
    let link = wire(lab, &standby, &primary);
    standby.init_from_backup(&primary, Some(link.endpoint())).unwrap();
    standby.start().unwrap();
    primary.wait_for_standby(&standby, None, LONG).unwrap();
    (primary, standby, link)
}

fn a_wire_drops_packets_without_a_word() {
    if !SystemUser::current().is_root() {
        return skip::no_root(); // What others are told has a test of its own.
    }
    let lab = servers::lab();
    let (primary, standby, mut link) = pair(&lab);
    let cost = link.measure().unwrap();
    say(&format!("a round trip takes {}", cost.in_words()));
    let address = "SELECT host(client_addr) FROM pg_stat_replication";
    let address = primary.value(address).unwrap().unwrap();
    assert!(address.starts_with("198.18."), "{address}");
    cut_heal_and_reset(&primary, &standby, &mut link);
    let counters = link.counters().unwrap();
    assert!(counters.to_packets > 0 && counters.from_bytes > counters.from_packets);
    link.bandwidth(Some(12_500_000)).unwrap();
    link.bandwidth(None).unwrap();
    match link.delay(5 * MS) {
        Ok(said) => say(&said),
        Err(error) => {
            let text = error.to_string();
            assert!(text.contains("this kernel has no netem"), "{text}");
            assert!(error.hint().unwrap().contains("by = \"relay\""));
        }
    }
    primary.wait_for_catchup(&standby, LONG).unwrap();
    let config = NodeConfig {
        own_network: true,
        listen: Listen::Loopback,
        ..NodeConfig::new(servers::settings(&[]))
    };
    let error = lab.node("third", config).unwrap_err().to_string();
    assert!(error.starts_with("node third cannot listen on loopback"), "{error}");
}

/// Not a test of its own: a rig with a wire, for another test to kill.
fn rig() -> ExitCode {
    let lab = servers::lab();
    let (primary, standby, mut link) = pair(&lab);
    link.cut(Direction::Both).unwrap();
    let (one, other) = (primary.host_pid().unwrap(), standby.host_pid().unwrap());
    say(&format!("\nrig {one} {other}"));
    std::thread::sleep(Duration::from_secs(600));
    ExitCode::SUCCESS
}

fn a_rig_that_is_killed_leaves_no_network() {
    if !SystemUser::current().is_root() {
        return skip::no_root();
    }
    let mut rig = helper("rig", SystemUser::current());
    let said = first_line(&mut rig, "rig ");
    let pids: Vec<i32> = said.split(' ').map(|pid| pid.parse().unwrap()).collect();
    let init = os::processes::of(pids[0]).unwrap().parent;
    let family = os::processes::tree(&os::processes::all().unwrap(), init);
    let networks: Vec<_> = pids.iter().map(|pid| network_of(*pid).unwrap()).collect();
    assert!(!networks.contains(&network_of(init).unwrap()));

    kill_process(Pid::from_raw(rig.id().cast_signed()).unwrap(), Signal::KILL).unwrap();
    rig.wait().unwrap();

    let is_gone = |pid: &i32| os::processes::of(*pid).is_none_or(|process| process.is_zombie());
    let gone = || Ok::<_, Error>(family.iter().all(is_gone).then_some(()));
    assert!(lab::wait_until(LONG, gone).unwrap().is_some(), "{family:?} have not ended");
    // Nobody is in the networks any more, and the interfaces never were in this one.
    let everybody = os::processes::all().unwrap();
    let left = everybody.iter().filter_map(|process| network_of(process.pid));
    assert_eq!(left.filter(|network| networks.contains(network)).count(), 0);
    assert!(!std::fs::read_to_string("/proc/net/dev").unwrap().contains("wire"));
    assert!(!std::fs::read_to_string("/proc/self/mountinfo").unwrap().contains("nsfs"));
}

fn network_of(pid: i32) -> Option<std::path::PathBuf> {
    std::fs::read_link(format!("/proc/{pid}/ns/net")).ok()
}

/// Not a test of its own: what a plain user is told.
fn plain() -> ExitCode {
    let error = apart(&servers::lab(), "standby1", &[]).unwrap_err();
    say(&format!("\nplain {error}; {}", error.hint().unwrap()));
    ExitCode::SUCCESS
}

fn a_plain_user_is_told_what_a_wire_needs() {
    let user = match SystemUser::current() {
        root if root.is_root() => SystemUser::named("nobody").unwrap().expect("a user nobody"),
        user => user,
    };
    let expected = "making a network namespace for node standby1: only root may; \
        run as root, or make the link by = \"relay\"";
    assert_eq!(first_line(&mut helper("plain", user), "plain "), expected);
}

/// A copy of this program, in a place where any user may run it.
fn helper(role: &str, user: SystemUser) -> ChildProcess {
    use std::os::unix::fs::PermissionsExt;
    let home = tempfile::Builder::new().prefix("links").tempdir_in("/tmp").unwrap();
    let program = home.path().join("links");
    let mut copy = ProcessCommand::new("/bin/cp")
        .args([&env::current_exe().unwrap(), &program])
        .spawn()
        .unwrap();
    assert!(copy.wait().unwrap().success());
    for (path, mode) in [(home.path(), 0o755), (&program, 0o755)] {
        std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).unwrap();
    }
    // It is executed by then, and needs its file only where it starts itself again.
    let command = ProcessCommand::new(&program).arg(role).user(user).env("PATH", "/usr/bin:/bin");
    let child = command.stdout(ProcessOutput::Pipe).spawn().unwrap();
    HOMES.lock().unwrap().push(home);
    child
}

/// Where the copies are, until the tests have ended.
static HOMES: std::sync::Mutex<Vec<tempfile::TempDir>> = std::sync::Mutex::new(Vec::new());

/// What stands behind `word` in the first line that begins with it.
fn first_line(child: &mut ChildProcess, word: &str) -> String {
    use std::io::{BufRead, BufReader};
    let lines = BufReader::new(child.stdout().unwrap()).lines().map_while(Result::ok);
    let mut found = lines.filter_map(|line| Some(line.strip_prefix(word)?.to_owned()));
    found.next().expect("the helper says something")
}
