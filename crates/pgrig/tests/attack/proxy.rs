//! A proxy that takes a server's place at its socket and acknowledges some commits without passing them
//! on.

use std::collections::HashSet;
use std::io::{self, Read, Write};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use crate::victim::Victim;

/// The number of its lies.
#[derive(Clone, Debug, Default)]
pub(crate) struct Proxy(Arc<AtomicUsize>);

impl Proxy {
    /// True if it has lied at all, given a while.
    pub(crate) fn lies(&self) -> bool {
        let has_lied = || self.0.load(Ordering::Relaxed) > 0;
        for _ in 0..100 {
            if has_lied() {
                break;
            }
            thread::sleep(std::time::Duration::from_millis(20));
        }
        has_lied()
    }
}

/// Takes the place of a server at its socket, for those that connect from now on.
pub(crate) fn put_before(victim: &Victim) -> Option<Proxy> {
    let (directory, port) = victim.socket()?;
    let socket = directory.join(format!(".s.PGSQL.{port}"));
    let real = directory.join(format!("real.{port}"));
    std::fs::rename(&socket, &real).ok()?;
    let listener = UnixListener::bind(&socket).ok()?;
    let mode = std::os::unix::fs::PermissionsExt::from_mode(0o777);
    std::fs::set_permissions(&socket, mode).ok()?;
    let proxy = Proxy::default();
    let counter = proxy.clone();
    thread::spawn(move || {
        for client in listener.incoming().flatten() {
            let (real, counter) = (real.clone(), counter.clone());
            thread::spawn(move || drop(serve(client, real, &counter)));
        }
    });
    Some(proxy)
}

fn serve(mut client: UnixStream, real: PathBuf, counter: &Proxy) -> io::Result<()> {
    let mut server = UnixStream::connect(real)?;
    // The start-up packet has no tag.
    let startup = packet(&mut client)?;
    server.write_all(&startup)?;
    let (mut from_server, mut to_client) = (server.try_clone()?, client.try_clone()?);
    let is_cancel = startup.len() == 16;
    if is_cancel {
        return Ok(());
    }
    // Until the first ReadyForQuery the server is only passed on; from then on each request is waited for.
    pass_answer(&mut from_server, &mut to_client)?;
    let mut commits: HashSet<Vec<u8>> = HashSet::new();
    let mut ledger = false;
    let mut number = 0_usize;
    loop {
        let (flight, is_commit) = flight(&mut client, &mut commits, &mut ledger)?;
        number += usize::from(is_commit);
        // A session that has written into the ledger, every fourth commit of it.
        if is_commit && ledger && number.is_multiple_of(4) {
            server.write_all(b"Q\0\0\0\x0dROLLBACK\0")?;
            let swallowed = answer(&mut from_server)?;
            drop(swallowed);
            let is_simple = flight[0] == b'Q';
            let mut lie = Vec::new();
            if !is_simple {
                lie.extend_from_slice(b"2\0\0\0\x04");
                lie.extend_from_slice(b"n\0\0\0\x04");
            }
            lie.extend_from_slice(b"C\0\0\0\x0bCOMMIT\0");
            lie.extend_from_slice(b"Z\0\0\0\x05I");
            to_client.write_all(&lie)?;
            counter.0.fetch_add(1, Ordering::Relaxed);
            continue;
        }
        server.write_all(&flight)?;
        if flight[0] == b'X' {
            return Ok(());
        }
        pass_answer(&mut from_server, &mut to_client)?;
    }
}

/// Messages of a client up to the one that asks for ReadyForQuery, and whether they are a commit.
fn flight(
    client: &mut UnixStream,
    commits: &mut HashSet<Vec<u8>>,
    ledger: &mut bool,
) -> io::Result<(Vec<u8>, bool)> {
    let (mut flight, mut is_commit) = (Vec::new(), false);
    loop {
        let message = message(client)?;
        let body = &message[5..];
        let is = |text: &[u8]| {
            let text = String::from_utf8_lossy(text).to_ascii_lowercase();
            text.starts_with("commit") || text.starts_with("end")
        };
        let name = |bytes: &[u8]| bytes.split(|byte| *byte == 0).next().unwrap_or(b"").to_vec();
        match message[0] {
            b'Q' => is_commit = is(body),
            b'P' => {
                let statement = name(body);
                let text = name(&body[statement.len() + 1..]);
                let lower = String::from_utf8_lossy(&text).to_ascii_lowercase();
                *ledger |= lower.contains("insert into written") || lower.contains("writes_log");
                if is(&text) {
                    commits.insert(statement);
                } else {
                    commits.remove(&statement);
                }
            }
            b'B' => {
                let portal = name(body);
                is_commit = commits.contains(&name(&body[portal.len() + 1..]));
            }
            _ => {}
        }
        if message[0] == b'Q' {
            let lower = String::from_utf8_lossy(body).to_ascii_lowercase();
            *ledger |= lower.contains("insert into written") || lower.contains("writes_log");
        }
        let ends = [b'Q', b'S', b'X', b'p'].contains(&message[0]);
        flight.extend(message);
        if ends {
            return Ok((flight, is_commit));
        }
    }
}

/// Passes on what the server says, up to its next ReadyForQuery.
fn pass_answer(server: &mut UnixStream, client: &mut UnixStream) -> io::Result<()> {
    loop {
        let message = message(server)?;
        client.write_all(&message)?;
        if message[0] == b'Z' {
            return Ok(());
        }
    }
}

fn answer(server: &mut UnixStream) -> io::Result<Vec<u8>> {
    loop {
        let message = message(server)?;
        if message[0] == b'Z' {
            return Ok(message);
        }
    }
}

fn message(stream: &mut UnixStream) -> io::Result<Vec<u8>> {
    let mut tag = [0_u8];
    stream.read_exact(&mut tag)?;
    let mut message = tag.to_vec();
    message.extend(packet(stream)?);
    Ok(message)
}

fn packet(stream: &mut UnixStream) -> io::Result<Vec<u8>> {
    let mut length = [0_u8; 4];
    stream.read_exact(&mut length)?;
    let mut packet = length.to_vec();
    packet.resize(u32::from_be_bytes(length).max(4) as usize, 0);
    stream.read_exact(&mut packet[4..])?;
    Ok(packet)
}
