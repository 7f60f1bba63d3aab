//! Hostile requests beside those of the page's owner: slow ones, endless ones, huge ones and odd ones.

use std::io::{BufRead, BufReader, ErrorKind, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpStream};
use std::process::{Child, ChildStdout, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use web::{HostNames, PageRequest, PageServer, PageSource, WebResponse};

/// A page of a megabyte behind a path that others do not know.
struct Owned;

impl PageSource for Owned {
    fn answer(&self, request: PageRequest<'_>) -> WebResponse {
        match request.path {
            "/owner" => WebResponse::found("text/html", "x".repeat(1 << 20)),
            _ => WebResponse::refused(404, "nothing"),
        }
    }
}

/// The variable of the environment that makes a test program the server.
const IS_SERVER: &str = "PGRIG_TEST_IS_SERVER";

/// Is the server where another test has asked for one: its memory is then its own.
#[test]
fn server() {
    if std::env::var_os(IS_SERVER).is_none() {
        return;
    }
    let any = ([127, 0, 0, 1], 0).into();
    let server = PageServer::open(any, HostNames::default(), Arc::new(Owned)).unwrap();
    writeln!(std::io::stdout(), "\nlistens at {}", server.address()).unwrap();
    std::io::stdin().read_to_end(&mut Vec::new()).unwrap();
}

struct ServerProcess {
    child: Child,
    /// Open as long as it lives: it says in the end how its test ended.
    _said: BufReader<ChildStdout>,
    address: SocketAddr,
}

impl ServerProcess {
    fn start() -> ServerProcess {
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "server", "--nocapture"])
            .env(IS_SERVER, "1")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut said = BufReader::new(child.stdout.take().unwrap());
        let mut lines = said.by_ref().lines();
        let address = lines.find_map(|line| Some(line.ok()?.strip_prefix("listens at ")?.parse()));
        ServerProcess { child, address: address.expect("an address").unwrap(), _said: said }
    }

    /// The most memory that it has had, in bytes.
    fn memory_max(&self) -> u64 {
        let status = format!("/proc/{}/status", self.child.id());
        let status = std::fs::read_to_string(status).expect("it lives");
        let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
        line.trim().trim_end_matches(" kB").parse::<u64>().unwrap() * 1024
    }

    fn owner_asks(&self) -> Duration {
        let began = Instant::now();
        let answer = self.ask("GET /owner HTTP/1.1\r\nHost: localhost\r\n\r\n");
        assert!(answer.starts_with("HTTP/1.1 200"), "{answer:.200}");
        assert!(answer.len() > 1 << 20, "{} bytes of the page", answer.len());
        began.elapsed()
    }

    fn ask(&self, request: &str) -> String {
        let mut stream = TcpStream::connect(self.address).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
        stream.write_all(request.as_bytes()).unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        answer
    }
}

impl Drop for ServerProcess {
    fn drop(&mut self) {
        // It ends with its input.
        self.child.stdin.take();
        let _ = self.child.wait();
    }
}

const HEAD: &str = "GET /owner HTTP/1.1\r\nHost: localhost\r\n";

/// Sends a hostile request; what is returned stays open.
fn hostile(number: usize, address: SocketAddr) -> Option<TcpStream> {
    let mut stream = TcpStream::connect(address).ok()?;
    // A server that does not read would stop this client.
    stream.set_write_timeout(Some(Duration::from_millis(200))).ok()?;
    let round = number / KINDS;
    let size = [0, 1, 5000, i64::MAX as u64, u64::MAX, 100_000_000_000_000_000][round % 6];
    let text = match number % KINDS {
        // Slow: nothing, or a part of a head.
        0 => String::new(),
        1 => "GET /metr".to_owned(),
        2 => HEAD.to_owned(),
        3 => format!("{HEAD}X: a"),
        4 => "\r\n\r\n\r\n".to_owned(),
        // Bodies that never come.
        5 => format!("{HEAD}Content-Length: {size}\r\n\r\n"),
        6 => format!("POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: {size}\r\n\r\nabc"),
        7 => format!("{HEAD}Transfer-Encoding: chunked\r\n\r\nffffffffffffffff\r\n"),
        8 => format!("{HEAD}Expect: 100-continue\r\nContent-Length: {size}\r\n\r\n"),
        9 => format!("GET / HTTP/1.1\r\nHost: evil.example\r\nContent-Length: {size}\r\n\r\n"),
        // Endless.
        10 => format!("GET /{}", "a".repeat(1 << 20)),
        11 => format!("{HEAD}X: {}", "b".repeat(1 << 20)),
        12 => format!("{HEAD}{}", "X: y\r\n".repeat(200_000)),
        13 => "\r\n".repeat(500_000),
        14 => format!("{HEAD}Transfer-Encoding: chunked\r\n\r\n{}", "1\r\na\r\n".repeat(100_000)),
        15 => format!("{HEAD}Content-Length: {}\r\n\r\n{}", 1 << 30, "c".repeat(1 << 20)),
        16 => format!("{HEAD}\r\n").repeat(10_000),
        // Odd.
        17 => "\0\u{1}\u{2}\u{7f}".repeat(1 + round % 4000),
        18 => "\u{16}\u{3}\u{1}\u{2}\0\u{1}\0\u{1}\u{fc}\u{3}\u{3}".to_owned(),
        19 => "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".to_owned(),
        20 => "GET /owner\r\n".to_owned(),
        21 => "GET /owner HTTP/1.0\r\n\r\n".to_owned(),
        22 => "GET http://evil.example/owner HTTP/1.1\r\nHost: localhost\r\n\r\n".to_owned(),
        23 => "CONNECT evil.example:443 HTTP/1.1\r\nHost: localhost\r\n\r\n".to_owned(),
        24 => "OPTIONS * HTTP/1.1\r\nHost: localhost\r\n\r\n".to_owned(),
        25 => format!("{HEAD}Host: localhost\r\n\r\n"),
        26 => format!("{HEAD}Upgrade: websocket\r\nConnection: Upgrade\r\n\r\n"),
        27 => format!("{HEAD}Content-Length: -1\r\n\r\n"),
        28 => format!("{HEAD}Content-Length: 1\r\nContent-Length: 2\r\n\r\na"),
        29 => format!("{HEAD}Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n"),
        30 => format!("{HEAD} folded: a\r\n\r\n"),
        31 => format!("GET /{} HTTP/1.1\r\nHost: localhost\r\n\r\n", "../".repeat(round % 3000)),
        32 => "GET /\u{202e}\u{fffd} HTTP/1.1\r\nHost: localhost\r\n\r\n".to_owned(),
        33 => "GET /%00%ff%zz HTTP/1.1\r\nHost: localhost\r\n\r\n".to_owned(),
        34 => "GET /0123456789abcdef/page HTTP/1.1\r\nHost: localhost\r\n\r\n".to_owned(),
        _ => "GET / HTTP/9.9\r\nHost: localhost\r\n\r\n".to_owned(),
    };
    // The server may have closed the connection, or may not read all of it.
    let _ = stream.write_all(text.as_bytes());
    match round % 4 {
        // Gone at once, with or without what was answered.
        0 => None,
        1 => {
            let _ = stream.shutdown(Shutdown::Write);
            Some(stream)
        }
        // Open, and never read.
        _ => Some(stream),
    }
}

/// Kinds of hostile requests.
const KINDS: usize = 36;

/// Connections that one attacker holds open.
const HELD: usize = 200;

/// Attacks with so many requests by four clients, whose open connections get a byte now and then. Returns the longest
/// time that the owner has waited for the page, and the bytes by which the server's memory has grown.
fn attack(requests: usize) -> (Duration, u64) {
    let server = ServerProcess::start();
    for _ in 0..20 {
        server.owner_asks();
    }
    let before = server.memory_max();
    let is_over = AtomicBool::new(false);
    let longest = thread::scope(|scope| {
        let owner = scope.spawn(|| {
            let mut longest = Duration::ZERO;
            while !is_over.load(Ordering::Relaxed) {
                longest = longest.max(server.owner_asks());
                thread::sleep(Duration::from_millis(5));
            }
            longest
        });
        let attackers: Vec<_> = (0..4)
            .map(|attacker| {
                let address = server.address;
                scope.spawn(move || {
                    let mut held = Vec::new();
                    for number in (attacker..requests).step_by(4) {
                        held.extend(hostile(number, address));
                        if held.len() > HELD {
                            held.remove(0);
                        }
                        if number % 64 < 4 {
                            drip(&mut held);
                        }
                    }
                    // Those that are slow go on for a while.
                    for _ in 0..10 {
                        drip(&mut held);
                        thread::sleep(Duration::from_millis(50));
                    }
                })
            })
            .collect();
        attackers.into_iter().for_each(|attacker| attacker.join().unwrap());
        is_over.store(true, Ordering::Relaxed);
        owner.join().unwrap()
    });
    (longest, server.memory_max() - before)
}

/// One more byte on each connection; the closed ones go.
fn drip(held: &mut Vec<TcpStream>) {
    held.retain_mut(|stream| match stream.write_all(b"a") {
        Ok(()) => true,
        Err(error) => matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut),
    });
}

/// The server's memory may grow by so much.
const MEMORY_MAX: u64 = 20 << 20;

#[test]
fn hostile_requests_cost_no_memory_and_keep_nobody_out() {
    let (_, grown) = attack(20 * KINDS);
    assert!(grown <= MEMORY_MAX, "{grown} bytes more");
}

/// `cargo test -p web --test hostile -- --ignored --nocapture`, on a machine with nothing else to do.
#[test]
#[ignore = "a campaign: 10,000 hostile requests, with a limit on time"]
fn ten_thousand_hostile_requests_delay_the_owner_by_less_than_a_second() {
    let (longest, grown) = attack(10_000);
    let mut out = std::io::stdout();
    writeln!(out, "the page came within {longest:?}; memory grew by {grown} bytes").unwrap();
    assert!(grown <= MEMORY_MAX, "{grown} bytes more");
    assert!(longest < Duration::from_secs(1), "{longest:?}");
}

#[test]
fn a_refusal_says_why() {
    let server = ServerProcess::start();
    let check = |request: &str, expected: &str| {
        let answer = server.ask(&format!("{request}\r\n\r\n"));
        assert!(answer.starts_with(&format!("HTTP/1.1 {expected}")), "{request}: {answer:.300}");
        assert!(answer.to_ascii_lowercase().contains("connection: close"), "{answer:.300}");
    };
    let many = format!("{HEAD}{}X: y", "X: y\r\n".repeat(100));
    let long = format!("{HEAD}X: {}", "a".repeat(15_000));
    let longer = format!("{HEAD}X: {}", "a".repeat(17_000));
    check(HEAD.trim_end(), "200");
    check(&long, "200");
    check(&longer, "431");
    check(&many, "431");
    check("GET /else HTTP/1.1\r\nHost: [::1]:80", "404");
    check("GET /owner HTTP/1.1\r\nHost: evil.example", "421");
    check("GET /owner HTTP/1.1\r\nX: y", "400");
    check("GET /owner HTTP/1.1\r\nHost: localhost\r\nHost: evil.example", "400");
    check("GET http://localhost/owner HTTP/1.1\r\nHost: localhost", "400");
    check("POST /owner HTTP/1.1\r\nHost: localhost", "405");
    check("GET /owner HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1000000000000000", "413");
    check("GET /owner HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked", "413");
}

#[test]
fn a_head_that_does_not_end_is_not_waited_for() {
    let server = ServerProcess::start();
    let mut slow = TcpStream::connect(server.address).unwrap();
    slow.set_read_timeout(Some(Duration::from_millis(200))).unwrap();
    let began = Instant::now();
    loop {
        // A byte now and then does not lengthen the time; the server closes the connection.
        let _ = slow.write_all(b"G");
        match slow.read(&mut [0; 100]) {
            Err(error) if error.kind() == ErrorKind::WouldBlock => {}
            _ => break,
        }
        assert!(began.elapsed() < Duration::from_secs(120), "it is still open");
    }
    server.owner_asks();
}

#[test]
fn the_last_page_is_sent_before_the_server_goes() {
    let any = ([127, 0, 0, 1], 0).into();
    let server = PageServer::open(any, HostNames::default(), Arc::new(Owned)).unwrap();
    let mut stream = TcpStream::connect(server.address()).unwrap();
    stream.write_all(format!("{HEAD}\r\n").as_bytes()).unwrap();
    // The page has begun, and is longer than what the sockets hold.
    stream.read_exact(&mut [0; 12]).unwrap();
    let reading = thread::spawn(move || {
        thread::sleep(Duration::from_millis(100));
        let mut rest = Vec::new();
        stream.read_to_end(&mut rest).map(|_| rest.len())
    });
    let address = server.address();
    drop(server);
    assert!(reading.join().unwrap().unwrap() > 1 << 20);
    assert!(TcpStream::connect(address).is_err(), "nobody listens any more");
}
