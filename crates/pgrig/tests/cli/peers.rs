//! Hostile servers: what a connection string demands is kept before a secret is sent, and every
//! session ends, in little memory.

use std::io::{Read, Write};
use std::net::TcpListener;
use std::os::unix::net::UnixListener;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};

use crate::{Desk, Said};

/// The behaviour of a server.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Kind {
    /// Asks for the password in clear.
    AsksForPassword,
    /// Speaks protocol 3.0 only, and asks for the password in clear.
    IsOld,
    /// Says nothing at all.
    IsMute,
    /// Lets everybody in, and answers nothing.
    IsMuteAfterLogin,
    /// Lets everybody in, and answers with rows without end.
    SendsRows,
    /// Answers the login with an error of 1 GiB.
    SendsLargeError,
    /// Lets everybody in, and answers with an error of 1 GiB.
    AnswersWithLargeError,
    /// Answers SCRAM with nonsense.
    KnowsNoScram,
    /// Sends notices without end during the login.
    SendsNotices,
}

/// A server, and whether a password has reached it.
struct Peer {
    port: u16,
    has_password: Arc<AtomicBool>,
    directory: tempfile::TempDir,
}

impl Peer {
    fn start(kind: Kind) -> Peer {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let directory = tempfile::tempdir().unwrap();
        let has_password = Arc::new(AtomicBool::new(false));
        let told = Arc::clone(&has_password);
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let told = Arc::clone(&told);
                std::thread::spawn(move || drop(serve(stream, kind, &told)));
            }
        });
        let socket = UnixListener::bind(directory.path().join(format!(".s.PGSQL.{port}"))).unwrap();
        let told = Arc::clone(&has_password);
        std::thread::spawn(move || {
            for stream in socket.incoming().flatten() {
                let told = Arc::clone(&told);
                std::thread::spawn(move || drop(serve(stream, kind, &told)));
            }
        });
        Peer { port, has_password, directory }
    }

    fn conninfo(&self, options: &str) -> String {
        let place = if options.contains("requirepeer") {
            format!("host={}", self.directory.path().display())
        } else {
            "host=127.0.0.1".to_owned()
        };
        let port = self.port;
        format!("{place} port={port} user=u password=secret-word dbname=d {options}")
    }
}

fn message(tag: u8, body: &[u8]) -> Vec<u8> {
    let mut bytes = vec![tag];
    bytes.extend_from_slice(&(body.len() as u32 + 4).to_be_bytes());
    bytes.extend_from_slice(body);
    bytes
}

/// Serves one connection until the client leaves.
fn serve<S: Read + Write>(mut stream: S, kind: Kind, told: &AtomicBool) -> std::io::Result<()> {
    let mut length = [0; 4];
    loop {
        stream.read_exact(&mut length)?;
        let mut body = vec![0; (u32::from_be_bytes(length) as usize).saturating_sub(4)];
        stream.read_exact(&mut body)?;
        match body[..4] {
            // SSLRequest and GSSENCRequest: no encryption here.
            [4, 210, 22, 47 | 48] => stream.write_all(b"N")?,
            _ => break,
        }
    }
    match kind {
        Kind::AsksForPassword => stream.write_all(&message(b'R', &[0, 0, 0, 3]))?,
        Kind::IsOld => {
            stream.write_all(&message(b'v', &[0, 3, 0, 0, 0, 0, 0, 0]))?;
            stream.write_all(&message(b'R', &[0, 0, 0, 3]))?;
        }
        Kind::IsMute => {}
        Kind::SendsLargeError => large_error(&mut stream)?,
        Kind::KnowsNoScram => {
            stream.write_all(&message(b'R', b"\0\0\0\x0aSCRAM-SHA-256\0\0"))?;
            next(&mut stream, &AtomicBool::new(false))?;
            stream.write_all(&message(b'R', b"\0\0\0\x0br=x,s=,i=99999999999"))?;
        }
        Kind::SendsNotices => loop {
            stream.write_all(&message(b'N', b"SNOTICE\0C00000\0Mhello\0\0"))?;
        },
        Kind::IsMuteAfterLogin | Kind::SendsRows | Kind::AnswersWithLargeError => {
            stream.write_all(&message(b'R', &[0, 0, 0, 0]))?;
            stream.write_all(&message(b'S', b"server_version\x0015.4\0"))?;
            stream.write_all(&message(b'Z', b"I"))?;
        }
    }
    loop {
        let tag = next(&mut stream, told)?;
        match (kind, tag) {
            (Kind::SendsRows, b'Q' | b'S') => {
                let column = b"\0\x01?column?\0\0\0\0\0\0\0\0\0\0\x19\xff\xff\xff\xff\xff\xff\0\0";
                stream.write_all(&message(b'T', column))?;
                let mut row = vec![0, 1, 0, 0, 4, 0];
                row.resize(row.len() + 1024, b'x');
                let rows = message(b'D', &row).repeat(64);
                loop {
                    stream.write_all(&rows)?;
                }
            }
            (Kind::AnswersWithLargeError, b'Q' | b'S') => large_error(&mut stream)?,
            _ => {}
        }
    }
}

fn large_error(stream: &mut impl Write) -> std::io::Result<()> {
    stream.write_all(&[b'E', 0x3f, 0xff, 0xff, 0xff])?;
    stream.write_all(b"SERROR\0C42000\0M")?;
    let piece = [b'x'; 65_536];
    loop {
        stream.write_all(&piece)?;
    }
}

/// Reads one message; tells whether it is a password.
fn next(stream: &mut impl Read, told: &AtomicBool) -> std::io::Result<u8> {
    let mut header = [0; 5];
    stream.read_exact(&mut header)?;
    let length = u32::from_be_bytes([header[1], header[2], header[3], header[4]]);
    let mut body = vec![0; (length as usize).saturating_sub(4)];
    stream.read_exact(&mut body)?;
    told.fetch_or(header[0] == b'p', Ordering::Relaxed);
    Ok(header[0])
}

/// Each command that connects to a server of the user's.
fn commands(conninfo: &str) -> Vec<Vec<String>> {
    let lines: [&[&str]; 10] = [
        &["bench", "-n", "-t", "1", conninfo],
        &["bench", "-i", conninfo],
        &["compare", "--a-conninfo", conninfo, "--b-conninfo", conninfo, "-S", "--self"],
        &["run", "mine", "--target", conninfo],
        &["run", "mine", "--target", conninfo, "--dry-run"],
        &["run", "sharding", "--only", "p4/query_pk", "--node"],
        &["guard", conninfo, "--no-automatic-failover", "--state", "state"],
        &["guard", "status", conninfo],
        &["shard", "status", "--proxy", conninfo],
        &["shard", "create", "--proxy", conninfo, "--node", conninfo, "--template", "bucket.sql"],
    ];
    let owned = |line: &&[&str]| {
        let mut line: Vec<String> = line.iter().map(|word| (*word).to_owned()).collect();
        if line.last().is_some_and(|word| word == "--node") {
            line.push(format!("shard1={conninfo}"));
        }
        line
    };
    lines.iter().map(owned).collect()
}

fn desk() -> Desk {
    let desk = Desk::new();
    desk.write_study("mine", "");
    desk.write("bucket.sql", "CREATE TABLE t (a int);\n");
    desk
}

/// pgrig with at most 200 MB of memory of its own.
fn within_memory(desk: &Desk, arguments: &[String]) -> Command {
    let mut command = Command::new("sh");
    command.args(["-c", "ulimit -d 200000; exec \"$0\" \"$@\"", env!("CARGO_BIN_EXE_pgrig")]);
    command.args(arguments).current_dir(desk.path(""));
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command.env("NO_COLOR", "1");
    command
}

#[test]
fn a_demand_is_kept_by_every_command_before_a_secret_is_sent() {
    let desk = desk();
    let mut wrong = Vec::new();
    let mut check = |kind: Kind, options: &str, variables: &[(&str, &str)]| {
        let peer = Peer::start(kind);
        for arguments in commands(&peer.conninfo(options)) {
            let mut command = within_memory(&desk, &arguments);
            let said = Said::of(&command.envs(variables.iter().copied()).output().unwrap());
            let case = format!("{kind:?} {options} {variables:?} {arguments:?}\n{}", said.err);
            let was_sent = peer.has_password.swap(false, Ordering::Relaxed);
            let is_shown = said.err.contains("secret-word");
            let is_refused = matches!(said.code, Some(1 | 2)) && said.err.contains("failed: ");
            if was_sent || is_shown || !is_refused {
                wrong.push(format!("{:?}, sent: {was_sent}, {case}", said.code));
            }
        }
    };
    check(Kind::AsksForPassword, "require_auth=scram-sha-256", &[]);
    check(Kind::AsksForPassword, "require_auth=!password", &[]);
    check(Kind::AsksForPassword, "", &[("PGREQUIREAUTH", "scram-sha-256")]);
    check(Kind::AsksForPassword, "channel_binding=require", &[]);
    check(Kind::AsksForPassword, "sslmode=require", &[]);
    check(Kind::AsksForPassword, "", &[("PGSSLMODE", "require")]);
    check(Kind::AsksForPassword, "sslcertmode=require", &[]);
    check(Kind::AsksForPassword, "requirepeer=somebody-else", &[]);
    check(Kind::IsOld, "min_protocol_version=3.2 max_protocol_version=latest", &[]);
    check(Kind::IsOld, "max_protocol_version=3.2", &[("PGMINPROTOCOLVERSION", "3.2")]);
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn a_server_that_asks_gets_the_password_where_nothing_is_demanded() {
    let desk = desk();
    let peer = Peer::start(Kind::AsksForPassword);
    let line = ["bench", "-i", &peer.conninfo("connect_timeout=2")].map(str::to_owned);
    let said = Said::of(&within_memory(&desk, &line).output().unwrap()).ended(1);
    assert!(peer.has_password.load(Ordering::Relaxed), "the other test could not fail: {said:?}");
}

#[test]
fn a_session_with_any_server_ends_in_time_and_in_little_memory() {
    // Those that send nothing cost nothing; of the others two at once keep two CPUs busy.
    for kinds in [
        &[Kind::IsMute, Kind::IsMuteAfterLogin, Kind::KnowsNoScram][..],
        &[Kind::SendsRows, Kind::SendsLargeError],
        &[Kind::AnswersWithLargeError, Kind::SendsNotices],
    ] {
        std::thread::scope(|scope| {
            for kind in kinds {
                scope.spawn(|| sessions_end(*kind));
            }
        });
    }
}

/// Has every command talk to a server of this kind, all at once.
fn sessions_end(kind: Kind) {
    let (desk, peer) = (desk(), Peer::start(kind));
    std::thread::scope(|scope| {
        for arguments in commands(&peer.conninfo("connect_timeout=2")) {
            let mut child = within_memory(&desk, &arguments).spawn().unwrap();
            scope.spawn(move || {
                let (began, mut is_told) = (Instant::now(), false);
                // A server that answers nothing is left at the first signal.
                while child.try_wait().unwrap().is_none() {
                    std::thread::sleep(Duration::from_millis(20));
                    let elapsed_s = began.elapsed().as_secs();
                    if elapsed_s >= 6 && !is_told {
                        is_told = true;
                        // One that has just ended needs none.
                        let _ = kill_process(Pid::from_child(&child), Signal::INT);
                    } else if elapsed_s >= 18 {
                        // The time that it took fails the test.
                        let _ = child.kill();
                    }
                }
                let said = Said::of(&child.wait_with_output().unwrap());
                let took_s = began.elapsed().as_secs();
                let case = format!("{kind:?} {arguments:?} after {took_s} s\n{}", said.err);
                // A command without a handler of its own is ended by the signal, which shells call 130.
                let is_documented = matches!(said.code, None | Some(1 | 2 | 3 | 130));
                assert!(is_documented, "{:?} {case}", said.code);
                assert!(took_s < 16, "{case}");
                assert!(said.err.len() < 20_000, "{case}");
            });
        }
    });
}
