//! A server that knows one answer: what is left when nothing is asked of PostgreSQL.
//!
//! One thread with one epoll behind a Unix socket. It accepts every login, answers every statement
//! with the same row, and never is in a transaction block. It reads all that has arrived before it
//! answers: an answer wakes a client, which may take the CPU before the other questions are read.
//! What a generator does against it is the most that the generator, the kernel and this thread can
//! do together on this machine.

use std::io::{self, Write};
use std::ops::Range;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixListener, UnixStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};

use rustix::event::epoll::{self, EventData, EventFlags};
use rustix::io::Errno;
use rustix::net::{RecvFlags, recv};

/// The port in the socket's name.
pub const PORT: u16 = 5432;
/// The listener among the events; connections are counted from 0.
const LISTENER: u64 = u64::MAX;
/// Events that tell that a peer has closed.
const HUNG_UP: EventFlags = EventFlags::RDHUP.union(EventFlags::HUP).union(EventFlags::ERR);
/// Length of a frame's beginning: its tag and its length.
const HEADER: usize = 5;
/// Longer messages end the connection: no script has such.
const LONGEST: usize = 1 << 24;

/// A running one; dropping it ends it.
#[derive(Debug)]
pub struct NullServer {
    host: String,
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl NullServer {
    /// Starts one. Its socket is in the abstract namespace, so that nothing of it is on any disk, under a
    /// name that nobody can take beforehand.
    pub fn start() -> io::Result<NullServer> {
        let mut random = [0; 8];
        rustix::rand::getrandom(&mut random, rustix::rand::GetRandomFlags::empty())?;
        let host = format!("@pgrig-null-{:016x}", u64::from_ne_bytes(random));
        let listener = UnixListener::bind_addr(&address(&host)?)?;
        listener.set_nonblocking(true)?;
        let stop = Arc::new(AtomicBool::new(false));
        let asked = Arc::clone(&stop);
        let mut service = Service::new(listener)?;
        let thread = thread::Builder::new()
            .name("null server".to_owned())
            .spawn(move || while !asked.load(Ordering::Relaxed) && service.turn().is_ok() {})?;
        Ok(NullServer { host, stop, thread: Some(thread) })
    }

    /// Host to which clients connect.
    pub fn host(&self) -> &str {
        &self.host
    }
}

impl Drop for NullServer {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        // A connection wakes it.
        let _ = address(&self.host).and_then(|address| UnixStream::connect_addr(&address));
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

fn address(host: &str) -> io::Result<SocketAddr> {
    let name = host.trim_start_matches('@');
    SocketAddr::from_abstract_name(format!("{name}/.s.PGSQL.{PORT}"))
}

struct Service {
    epoll: std::os::fd::OwnedFd,
    listener: UnixListener,
    connections: Vec<Option<Connection>>,
    buffer: Vec<u8>,
    out: Vec<u8>,
    /// Part of `out` that goes to each connection.
    unsent: Vec<(usize, Range<usize>)>,
}

struct Connection {
    stream: UnixStream,
    has_started: bool,
    /// A frame that has arrived in part.
    rest: Vec<u8>,
}

impl Service {
    fn new(listener: UnixListener) -> io::Result<Service> {
        let epoll = epoll::create(epoll::CreateFlags::CLOEXEC)?;
        epoll::add(&epoll, &listener, EventData::new_u64(LISTENER), EventFlags::IN)?;
        Ok(Service {
            epoll,
            listener,
            connections: Vec::new(),
            buffer: vec![0; 64 * 1024],
            out: Vec::new(),
            unsent: Vec::new(),
        })
    }

    /// Waits for events and serves them.
    fn turn(&mut self) -> io::Result<()> {
        let mut events =
            [epoll::Event { flags: EventFlags::empty(), data: EventData::new_u64(0) }; 64];
        let count = match epoll::wait(&self.epoll, &mut events, None) {
            Ok(count) => count,
            Err(Errno::INTR) => 0,
            Err(error) => return Err(error.into()),
        };
        for event in &events[..count] {
            let (data, flags) = (event.data, event.flags);
            match data.u64() {
                LISTENER => self.accept()?,
                index => self.serve(index as usize, flags.intersects(HUNG_UP)),
            }
        }
        self.send();
        Ok(())
    }

    /// Sends every answer; a connection that does not take its answer is closed.
    fn send(&mut self) {
        for (index, range) in self.unsent.drain(..) {
            let Some(connection) = &mut self.connections[index] else { continue };
            if connection.stream.write_all(&self.out[range]).is_err() {
                self.connections[index] = None;
            }
        }
        self.out.clear();
    }

    fn accept(&mut self) -> io::Result<()> {
        let stream = match self.listener.accept() {
            Ok((stream, _)) => stream,
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(()),
            Err(error) => return Err(error),
        };
        let index = self.connections.iter().position(Option::is_none);
        let index = index.unwrap_or_else(|| {
            self.connections.push(None);
            self.connections.len() - 1
        });
        // Edge-triggered: the kernel need not look again at what has been read.
        let flags = EventFlags::IN | EventFlags::RDHUP | EventFlags::ET;
        epoll::add(&self.epoll, &stream, EventData::new_u64(index as u64), flags)?;
        self.connections[index] = Some(Connection { stream, has_started: false, rest: Vec::new() });
        Ok(())
    }

    /// Reads what has arrived on a connection, and notes the answers; one that misbehaves is closed.
    fn serve(&mut self, index: usize, has_hung_up: bool) {
        let Some(connection) = self.connections.get_mut(index).and_then(Option::as_mut) else {
            // It was closed by an earlier event of the same look.
            return;
        };
        let start = self.out.len();
        let stays = loop {
            let read = match recv(&connection.stream, &mut self.buffer, RecvFlags::DONTWAIT) {
                Ok((read @ 1.., _)) => read,
                Err(Errno::INTR) => continue,
                Err(Errno::AGAIN) => break true,
                Ok(_) | Err(_) => break false,
            };
            if !connection.take(&self.buffer[..read], &mut self.out) {
                // The answer may say why.
                let _ = connection.stream.write_all(&self.out[start..]);
                break false;
            }
            // A read that does not fill the buffer has emptied the socket, unless its end follows.
            if read < self.buffer.len() && !has_hung_up {
                break true;
            }
        };
        match stays {
            true => self.unsent.push((index, start..self.out.len())),
            false => self.connections[index] = None,
        }
    }
}

impl Connection {
    /// Appends the answers to whole messages. Whether the connection goes on.
    fn take(&mut self, bytes: &[u8], out: &mut Vec<u8>) -> bool {
        let joined;
        let mut bytes = bytes;
        if !self.rest.is_empty() {
            self.rest.extend_from_slice(bytes);
            joined = std::mem::take(&mut self.rest);
            bytes = &joined;
        }
        loop {
            let tag = usize::from(self.has_started);
            let Some(length) = bytes.get(tag..tag + 4).and_then(|bytes| bytes.try_into().ok())
            else {
                break;
            };
            let length = u32::from_be_bytes(length) as usize;
            if !(4..=LONGEST).contains(&length) {
                return false;
            }
            let Some(message) = bytes.get(..tag + length) else { break };
            bytes = &bytes[tag + length..];
            let goes_on = if self.has_started {
                answer(message, out)
            } else {
                self.has_started = start(message, out);
                true
            };
            if !goes_on {
                return false;
            }
        }
        self.rest = bytes.to_vec();
        true
    }
}

/// A start-up packet, or a question for encryption before it. Whether the session begins.
fn start(packet: &[u8], out: &mut Vec<u8>) -> bool {
    let code =
        // No request has the code 0: a packet that is too short is refused like an unknown one.
        packet.get(4..8).and_then(|bytes| bytes.try_into().ok()).map_or(0, u32::from_be_bytes);
    // SSLRequest and GSSENCRequest.
    if matches!(code, 80_877_103 | 80_877_104) {
        out.push(b'N');
        return false;
    }
    frame(out, b'R', &0_u32.to_be_bytes());
    for (name, value) in [
        ("server_version", "15.0"),
        ("server_encoding", "UTF8"),
        ("client_encoding", "UTF8"),
        ("standard_conforming_strings", "on"),
        ("DateStyle", "ISO"),
        ("integer_datetimes", "on"),
    ] {
        frame(out, b'S', format!("{name}\0{value}\0").as_bytes());
    }
    frame(out, b'K', &[0; 8]);
    frame(out, b'Z', b"I");
    true
}

/// The answer to one message. Whether the connection goes on.
fn answer(message: &[u8], out: &mut Vec<u8>) -> bool {
    match message[0] {
        b'Q' => {
            let text = &message[HEADER..];
            let value: &[u8] = match text {
                text if text.starts_with(b"show server_version_num") => b"150000",
                text if text.starts_with(b"show server_version") => b"15.0",
                _ => b"0",
            };
            description(out);
            row(out, value);
            frame(out, b'Z', b"I");
        }
        b'P' => frame(out, b'1', b""),
        b'B' => frame(out, b'2', b""),
        b'C' => frame(out, b'3', b""),
        b'D' if message.get(HEADER) == Some(&b'P') => description(out),
        b'D' => {
            frame(out, b't', &[0, 0]);
            description(out);
        }
        b'E' => row(out, b"0"),
        b'S' => frame(out, b'Z', b"I"),
        b'H' => {}
        _ => return false,
    }
    true
}

/// One column, an integer called `abalance`.
fn description(out: &mut Vec<u8>) {
    const BODY: &[u8] = b"\0\x01abalance\0\0\0\0\0\0\0\0\0\0\x17\0\x04\xff\xff\xff\xff\0\0";
    frame(out, b'T', BODY);
}

fn row(out: &mut Vec<u8>, value: &[u8]) {
    let mut body = [0; 32];
    body[1] = 1;
    body[5] = value.len() as u8;
    body[6..6 + value.len()].copy_from_slice(value);
    frame(out, b'D', &body[..6 + value.len()]);
    frame(out, b'C', b"SELECT 1\0");
}

fn frame(out: &mut Vec<u8>, tag: u8, body: &[u8]) {
    out.push(tag);
    out.extend_from_slice(&(body.len() as u32 + 4).to_be_bytes());
    out.extend_from_slice(body);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_answers_however_bytes_arrive() {
        let startup =
            [&16_u32.to_be_bytes()[..], &196_608_u32.to_be_bytes(), b"user\0x\0\0"].concat();
        let mut startup = startup;
        let length = startup.len() as u32;
        startup[..4].copy_from_slice(&length.to_be_bytes());
        let mut query = Vec::new();
        frame(&mut query, b'Q', b"select 1\0");
        let mut extended = Vec::new();
        for (tag, body) in [(b'P', &b"\0x\0\0\0"[..]), (b'B', b"\0\0\0\0\0\0\0\0"), (b'D', b"P\0")]
        {
            frame(&mut extended, tag, body);
        }
        frame(&mut extended, b'E', b"\0\0\0\0\0");
        frame(&mut extended, b'S', b"");
        let all = [startup, query, extended].concat();
        let answers = |pieces: &mut dyn Iterator<Item = &[u8]>| {
            let (stream, _other) = UnixStream::pair().unwrap();
            let mut connection = Connection { stream, has_started: false, rest: Vec::new() };
            let mut out = Vec::new();
            pieces.for_each(|piece| assert!(connection.take(piece, &mut out)));
            out
        };
        let whole = answers(&mut std::iter::once(&all[..]));
        assert_eq!(answers(&mut all.chunks(1)), whole);
        let mut tags = String::new();
        let mut rest = &whole[..];
        while let Some(tag) = rest.first() {
            tags.push(char::from(*tag));
            let length = u32::from_be_bytes(rest[1..5].try_into().unwrap()) as usize;
            rest = &rest[1 + length..];
        }
        assert_eq!(tags, "RSSSSSSKZTDCZ12TDCZ");
    }

    #[test]
    fn one_that_is_dropped_is_gone() {
        let server = NullServer::start().unwrap();
        let address = address(server.host()).unwrap();
        assert!(UnixStream::connect_addr(&address).is_ok());
        drop(server);
        assert!(UnixStream::connect_addr(&address).is_err());
    }
}
