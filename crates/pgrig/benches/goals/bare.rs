//! What the least possible generator costs: a loop of `epoll_wait`, `recv` and `send` that counts
//! answers and parses nothing.
//!
//! It is a process of its own, which this program becomes (`goals bare …`), so that the kernel
//! accounts for it as for the others. Server and client share one core: across cores every `send`
//! pays the hypervisor for a wake-up, whatever the program (docs/measurements/generator-cost.md).

use std::io::{self, Read, Write};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use rustix::event::epoll::{self, EventData, EventFlags};
use rustix::process::Pid;
use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};
use rustix::time::{ClockId, clock_gettime};
use stats::Prng;

use crate::measure::{Program, pairs, run};
use crate::server::Server;
use crate::{Measured, SELECT_ONLY, Size};

/// The argument that makes this program the loop.
pub(crate) const ARGUMENT: &str = "serve-bare-loop";
/// Clients, as in [`SELECT_ONLY`].
const CLIENTS: usize = 8;
/// The statement of pgbench's select-only script.
const STATEMENT: &[u8] = b"SELECT abalance FROM pgbench_accounts WHERE aid = $1";

#[derive(Clone, Copy)]
enum Side {
    Pgrig,
    Bare,
}

/// CPU a transaction of `pgrig bench` ÷ that of the bare loop, all on one core.
pub(crate) fn against_bare_loop(server: &Server, size: &Size) -> Result<Measured, String> {
    let _pinned = Pinned::to_one_core(server)?;
    let seconds = size.seconds.to_string();
    let time = ["-T".to_owned(), seconds.clone()];
    pairs(size.pairs, [Side::Pgrig, Side::Bare], |side| match side {
        Side::Pgrig => Ok(run(server, Program::Pgrig, SELECT_ONLY, &time)?.window_cpu_us),
        Side::Bare => {
            let program = std::env::current_exe().map_err(|error| error.to_string())?;
            let mut command = Command::new(program);
            command.args([ARGUMENT, &server.socket(), &server.user(), &seconds]);
            let output = command.output().map_err(|error| error.to_string())?;
            let said = String::from_utf8_lossy(&output.stdout);
            said.trim().parse().map_err(|_| String::from_utf8_lossy(&output.stderr).into_owned())
        }
    })
    .map(|pairs| pairs.measured("µs"))
}

/// This process, its children and the server on one core, until it is dropped.
struct Pinned {
    before: CpuSet,
    server: Option<Pid>,
}

impl Pinned {
    fn to_one_core(server: &Server) -> Result<Pinned, String> {
        let failed = |errno: rustix::io::Errno| format!("choosing a core: {errno}");
        let before = sched_getaffinity(None).map_err(failed)?;
        let server = server.pid().and_then(Pid::from_raw);
        let first = (0..CpuSet::MAX_CPU).find(|core| before.is_set(*core)).unwrap_or(0);
        let mut one = CpuSet::new();
        one.set(first);
        let pinned = Pinned { before, server };
        for process in [None, server] {
            sched_setaffinity(process, &one).map_err(failed)?;
        }
        Ok(pinned)
    }
}

impl Drop for Pinned {
    fn drop(&mut self) {
        for process in [None, self.server] {
            // The next goal says so if it matters.
            let _ = sched_setaffinity(process, &self.before);
        }
    }
}

/// Becomes the loop: prints the microseconds of CPU that a transaction took.
pub(crate) fn serve(arguments: &[String]) -> io::Result<()> {
    let [socket, user, seconds] = arguments else {
        return Err(io::Error::other("bare SOCKET USER SECONDS"));
    };
    let length = Duration::from_secs(seconds.parse().map_err(io::Error::other)?);
    let connect = |_| connect(Path::new(socket), user);
    let mut clients: Vec<UnixStream> = (0..CLIENTS).map(connect).collect::<io::Result<_>>()?;
    let epoll = epoll::create(epoll::CreateFlags::CLOEXEC)?;
    for (index, client) in clients.iter().enumerate() {
        client.set_nonblocking(true)?;
        epoll::add(&epoll, client, EventData::new_u64(index as u64), EventFlags::IN)?;
    }
    let mut keys = Prng::new(42);
    let mut request = Vec::new();
    let mut answer = [0; 4096];
    for client in &mut clients {
        ask(client, &mut keys, &mut request)?;
    }
    let (began, before) = (Instant::now(), cpu_ns());
    let mut answers = 0_u64;
    let mut events = Vec::with_capacity(CLIENTS);
    while began.elapsed() < length {
        events.clear();
        epoll::wait(&epoll, rustix::buffer::spare_capacity(&mut events), None)?;
        for event in &events {
            let client = &mut clients[event.data.u64() as usize];
            let count = client.read(&mut answer)?;
            // ReadyForQuery is the last message of an answer.
            if count >= 6 && answer[count - 6] == b'Z' {
                answers += 1;
                ask(client, &mut keys, &mut request)?;
            }
        }
    }
    println!("{}", (cpu_ns() - before) as f64 / answers as f64 / 1e3);
    Ok(())
}

fn cpu_ns() -> u64 {
    let time = clock_gettime(ClockId::ProcessCPUTime);
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

/// A session with the statement prepared.
fn connect(socket: &Path, user: &str) -> io::Result<UnixStream> {
    let mut stream = UnixStream::connect(socket)?;
    let mut startup = 196_608_i32.to_be_bytes().to_vec();
    for text in ["user", user, "database", "postgres", ""] {
        startup.extend(text.as_bytes());
        startup.push(0);
    }
    stream.write_all(&(startup.len() as i32 + 4).to_be_bytes())?;
    stream.write_all(&startup)?;
    await_ready(&mut stream)?;
    let mut parse: Vec<u8> = b"s\0".to_vec();
    parse.extend(STATEMENT);
    parse.extend(b"\0\0\0");
    let mut out = Vec::new();
    message(&mut out, b'P', &parse);
    message(&mut out, b'S', &[]);
    stream.write_all(&out)?;
    await_ready(&mut stream)?;
    Ok(stream)
}

fn await_ready(stream: &mut UnixStream) -> io::Result<()> {
    let mut said: Vec<u8> = Vec::new();
    let mut part = [0; 4096];
    while said.len() < 6 || said[said.len() - 6] != b'Z' {
        match stream.read(&mut part)? {
            0 => return Err(io::Error::other("the server closed the connection")),
            count => said.extend(&part[..count]),
        }
    }
    Ok(())
}

/// Sends Bind, Execute and Sync for a random account.
fn ask(client: &mut UnixStream, keys: &mut Prng, out: &mut Vec<u8>) -> io::Result<()> {
    let key = (keys.below(ACCOUNTS) + 1).to_string();
    let mut bind = b"\0s\0\0\0\0\x01".to_vec();
    bind.extend((key.len() as i32).to_be_bytes());
    bind.extend(key.as_bytes());
    bind.extend(b"\0\0");
    out.clear();
    message(out, b'B', &bind);
    message(out, b'E', b"\0\0\0\0\0");
    message(out, b'S', &[]);
    client.write_all(out)
}

fn message(out: &mut Vec<u8>, tag: u8, body: &[u8]) {
    out.push(tag);
    out.extend((body.len() as i32 + 4).to_be_bytes());
    out.extend(body);
}

/// Rows of the server's pgbench_accounts.
const ACCOUNTS: usize = 1_500_000;
