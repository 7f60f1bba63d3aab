//! Links by relay: this program is the relay and the echo, too, by its first argument.

use std::env;
use std::io::{Read, Write, stdout};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitCode};
use std::thread;
use std::time::{Duration, Instant};

use fault::link::{Direction, LinkAddress, RelayControl, RelaySockets, RoundTrips, TrafficShape};
use os::user::SystemUser;
use testing::harness::say;

const LONG: Duration = Duration::from_secs(30);

/// Round trips of which the least is taken.
const TRIPS: u32 = 20;
const MS: Duration = Duration::from_millis(1);

fn main() -> ExitCode {
    let arguments: Vec<String> = env::args().skip(1).collect();
    match arguments.split_first() {
        Some((first, rest)) if first == "link" => {
            fault::link::serve(rest, &mut stdout()).expect("a relay");
            ExitCode::SUCCESS
        }
        _ => testing::run![
            a_relay_delays_by_what_it_is_told,
            a_relay_passes_no_more_than_its_bandwidth,
            a_relay_that_holds_loses_nothing,
            a_relay_resets_its_connections,
            the_end_of_a_stream_passes_in_each_direction,
            a_server_that_is_not_there_closes_the_connection,
            a_relay_follows_no_link_to_a_socket_of_root,
        ],
    }
}

/// A process of this program, killed when it is dropped.
struct Process(Child);

impl Process {
    fn start(arguments: &[&str]) -> Self {
        let program = env::current_exe().unwrap();
        Self(Command::new(program).arg("link").args(arguments).spawn().unwrap())
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// A relay to `to`, ready.
struct Relay {
    control: RelayControl,
    sockets: RelaySockets,
    address: LinkAddress,
    _process: Process,
}

fn relay(directory: &Path, listen: LinkAddress, to: &LinkAddress) -> Relay {
    relay_of(SystemUser::current(), directory, listen, to)
}

fn relay_of(user: SystemUser, directory: &Path, listen: LinkAddress, to: &LinkAddress) -> Relay {
    let sockets = RelaySockets(directory.join("rig"));
    let process = Process::start(&[
        "relay",
        &listen.to_string(),
        &to.to_string(),
        sockets.0.to_str().unwrap(),
        &user.to_string(),
    ]);
    let control = patiently(|| RelayControl::connect(&sockets).ok());
    Relay { control, sockets, address: listen, _process: process }
}

/// What `get` gives as soon as it gives something.
fn patiently<T>(mut get: impl FnMut() -> Option<T>) -> T {
    let deadline = Instant::now() + LONG;
    loop {
        match get() {
            Some(value) => return value,
            None => assert!(Instant::now() < deadline, "waited in vain"),
        }
        thread::sleep(2 * MS);
    }
}

fn unix(directory: &Path, name: &str) -> (PathBuf, LinkAddress) {
    let path = directory.join(name);
    (path.clone(), LinkAddress::Unix(path))
}

fn free_tcp_address() -> SocketAddr {
    TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap().local_addr().unwrap()
}

fn a_relay_delays_by_what_it_is_told() {
    let directory = tempfile::tempdir().unwrap();
    let (path, echo_at) = unix(directory.path(), "echo");
    let _echo = Process::start(&["echo", &echo_at.to_string()]);
    patiently(|| UnixStream::connect(&path).ok());
    let mut relay = relay(directory.path(), unix(directory.path(), "relay").1, &echo_at);
    // A machine that is busy with something else adds to a round trip, and never takes from it. One trip is
    // measured after one that is not, so that two bytes are sent.
    let one = |to: &LinkAddress| RoundTrips::measure(to, 1, LONG).unwrap().median;
    let least = |to: &LinkAddress| (0..TRIPS).map(|_| one(to)).min().unwrap();
    let mut asked = 0;
    for delay in [Duration::from_micros(200), MS, 5 * MS] {
        patiently(|| {
            relay.control.shape(TrafficShape::default()).unwrap();
            let (direct, through) = (least(&echo_at), least(&relay.address));
            relay.control.shape(TrafficShape { delay, bytes_per_s: None }).unwrap();
            let measured = least(&relay.address).saturating_sub(through) / 2;
            asked += 2 * 2 * u64::from(TRIPS);
            say(&format!(
                "round trip {direct:?}, {through:?} by relay; a delay of {delay:?} is {measured:?}"
            ));
            (through > direct && measured.abs_diff(delay) < 300 * MS / 1000).then_some(())
        });
    }
    let counters = relay.control.counters().unwrap();
    assert_eq!((counters.to_bytes, counters.from_bytes), (asked, asked));
    assert_eq!((counters.to_packets, counters.from_packets), (asked, asked));
    // The relay's own echo tells the same and is not counted.
    let (direct, through) = (relay.sockets.echo(), relay.sockets.probe());
    assert!(least(&direct) < 5 * MS && least(&through) >= 10 * MS);
    relay.control.hold(Some(Direction::From)).unwrap();
    assert!(RoundTrips::measure(&through, 1, 100 * MS).is_err());
    relay.control.hold(None).unwrap();
    assert_eq!(relay.control.counters().unwrap().to_bytes, asked);
}

/// A connection to a Unix socket, and its address.
fn path_of(address: &LinkAddress) -> (UnixStream, PathBuf) {
    match address {
        LinkAddress::Unix(path) => (UnixStream::connect(path).unwrap(), path.clone()),
        LinkAddress::Tcp(_) => panic!("no Unix socket"),
    }
}

fn a_relay_passes_no_more_than_its_bandwidth() {
    let directory = tempfile::tempdir().unwrap();
    let (path, server_at) = unix(directory.path(), "server");
    let server = UnixListener::bind(path).unwrap();
    let mut relay = relay(directory.path(), unix(directory.path(), "relay").1, &server_at);
    relay
        .control
        .shape(TrafficShape { delay: Duration::ZERO, bytes_per_s: Some(2_000_000) })
        .unwrap();
    let (mut client, _) = path_of(&relay.address);
    let (mut accepted, _) = server.accept().unwrap();
    let sender = thread::spawn(move || client.write_all(&vec![7; 1_000_000]).unwrap());
    let began = Instant::now();
    let mut bytes = Vec::new();
    accepted.read_to_end(&mut bytes).unwrap();
    let taken = began.elapsed();
    sender.join().unwrap();
    assert_eq!(bytes, vec![7; 1_000_000]);
    say(&format!("1 MB at 2 MB/s takes {taken:?}"));
    assert!(taken > 480 * MS && taken < 2000 * MS, "{taken:?}");
}

fn a_relay_that_holds_loses_nothing() {
    let directory = tempfile::tempdir().unwrap();
    let (path, server_at) = unix(directory.path(), "server");
    let server = UnixListener::bind(path).unwrap();
    let mut relay = relay(directory.path(), unix(directory.path(), "relay").1, &server_at);
    let (mut client, _) = path_of(&relay.address);
    let (mut accepted, _) = server.accept().unwrap();
    client.set_read_timeout(Some(300 * MS)).unwrap();
    accepted.set_read_timeout(Some(300 * MS)).unwrap();
    let mut got = [0; 2];
    let mut check = |held: Option<Direction>, to: bool, from: bool| {
        relay.control.hold(held).unwrap();
        client.write_all(b"to").unwrap();
        assert_eq!(accepted.read_exact(&mut got).is_ok(), to, "{held:?}");
        accepted.write_all(b"fr").unwrap();
        assert_eq!(client.read_exact(&mut got).is_ok(), from, "{held:?}");
        // What was held comes as soon as it may.
        relay.control.hold(None).unwrap();
        if !to {
            accepted.read_exact(&mut got).unwrap();
            assert_eq!(&got, b"to");
        }
        if !from {
            client.read_exact(&mut got).unwrap();
            assert_eq!(&got, b"fr");
        }
    };
    check(None, true, true);
    check(Some(Direction::To), false, true);
    check(Some(Direction::From), true, false);
    check(Some(Direction::Both), false, false);
    assert!(relay.control.counters().unwrap().connections == 1);
}

fn a_relay_resets_its_connections() {
    let directory = tempfile::tempdir().unwrap();
    let server = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let server_at = LinkAddress::Tcp(server.local_addr().unwrap());
    let listen = free_tcp_address();
    let mut relay = relay(directory.path(), LinkAddress::Tcp(listen), &server_at);
    let mut client = TcpStream::connect(listen).unwrap();
    let (mut accepted, _) = server.accept().unwrap();
    client.write_all(b"x").unwrap();
    accepted.read_exact(&mut [0]).unwrap();
    assert_eq!(relay.control.reset().unwrap().resets, 1);
    for stream in [&mut client, &mut accepted] {
        let error = stream.read(&mut [0]).unwrap_err();
        assert_eq!(error.kind(), std::io::ErrorKind::ConnectionReset);
    }
    // The next one finds its way.
    let mut client = TcpStream::connect(listen).unwrap();
    let (mut accepted, _) = server.accept().unwrap();
    client.write_all(b"y").unwrap();
    accepted.read_exact(&mut [0]).unwrap();
}

fn the_end_of_a_stream_passes_in_each_direction() {
    let directory = tempfile::tempdir().unwrap();
    let (path, server_at) = unix(directory.path(), "server");
    let server = UnixListener::bind(path).unwrap();
    let mut relay = relay(directory.path(), unix(directory.path(), "relay").1, &server_at);
    let (mut client, _) = path_of(&relay.address);
    let (mut accepted, _) = server.accept().unwrap();
    client.write_all(b"last words").unwrap();
    client.shutdown(std::net::Shutdown::Write).unwrap();
    let mut text = String::new();
    accepted.read_to_string(&mut text).unwrap();
    assert_eq!(text, "last words");
    accepted.write_all(b"farewell").unwrap();
    drop(accepted);
    text.clear();
    client.read_to_string(&mut text).unwrap();
    assert_eq!(text, "farewell");
    patiently(|| (relay.control.counters().unwrap().connections == 0).then_some(()));
}

fn a_server_that_is_not_there_closes_the_connection() {
    let directory = tempfile::tempdir().unwrap();
    let (_, nobody) = unix(directory.path(), "nobody");
    let mut relay = relay(directory.path(), unix(directory.path(), "relay").1, &nobody);
    let (mut client, _) = path_of(&relay.address);
    assert_eq!(client.read(&mut [0]).unwrap(), 0);
    assert_eq!(relay.control.counters().unwrap().connections, 0);
}

/// Its servers' user may put a link in the place of a server's socket, as to one that root alone may use.
fn a_relay_follows_no_link_to_a_socket_of_root() {
    if !SystemUser::current().is_root() {
        return testing::skip::no_root();
    }
    let nobody = SystemUser::named("nobody").unwrap().unwrap();
    let (own, sockets) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    std::os::unix::fs::chown(sockets.path(), Some(nobody.uid), Some(nobody.gid)).unwrap();
    let closed = std::os::unix::fs::PermissionsExt::from_mode(0o700);
    std::fs::set_permissions(own.path(), closed).unwrap();
    let (path, echo_at) = unix(own.path(), "of root");
    let _echo = Process::start(&["echo", &echo_at.to_string()]);
    patiently(|| UnixStream::connect(&path).ok());
    let (server, server_at) = unix(sockets.path(), "server");
    std::os::unix::fs::symlink(&path, &server).unwrap();
    let (near, near_at) = unix(sockets.path(), "relay");
    let _relay = relay_of(nobody, own.path(), near_at, &server_at);
    let mut client = UnixStream::connect(&near).unwrap();
    // The relay may have closed it already.
    let _ = client.write_all(b"x");
    client.set_read_timeout(Some(LONG)).unwrap();
    let heard = client.read(&mut [0]);
    assert!(!matches!(heard, Ok(1..)), "root's socket has answered");
    // Its servers' user cannot give it orders.
    let orders = own.path().join("rig.o");
    let owner = std::os::unix::fs::MetadataExt::uid(&std::fs::metadata(&near).unwrap());
    assert_eq!(owner, nobody.uid);
    let mode =
        std::os::unix::fs::PermissionsExt::mode(&std::fs::metadata(&orders).unwrap().permissions());
    assert_eq!(mode & 0o777, 0o700);
}
